/** What the tests of entries share: single writes, what the server says of a key, and clients that are watched. */
import { systemRandom, type StateStore, type StateWrite } from '@guard/core';
import type { Etcd3 } from 'etcd3';
import type { EtcdClient } from '../../src/index.js';

/** A write of whatever is there, which keeps its time. */
export function wish(key: string, value: string | null, over: Partial<StateWrite> = {}): StateWrite {
  return { key, value, expect: 'any', writeId: systemRandom.id(), ttl: 'keep', ...over };
}

/** Carries a write out, and says its version. */
export async function written(store: StateStore, write: StateWrite): Promise<string> {
  const [answer] = await store.write([write]);
  if (answer?.status !== 'written') throw new Error(`a write was answered ${JSON.stringify(answer?.status)}`);
  return answer.version;
}

/** The lease that a key stands under, `'0'` for none; `undefined`: it is not there. */
export async function leaseOf(client: Etcd3, name: string): Promise<string | undefined> {
  const { kvs } = await client.kv.range({ key: Buffer.from(name) });
  return kvs[0]?.lease;
}

/** How many seconds a key will last; `Infinity` without a lease, `undefined`: it is not there. */
export async function secondsOf(client: Etcd3, name: string): Promise<number | undefined> {
  const lease = await leaseOf(client, name);
  if (lease === undefined) return undefined;
  return lease === '0' ? Infinity : Number((await client.leaseClient.leaseTimeToLive({ ID: lease })).TTL);
}

/** The client, with something that happens before it asks for the time of a lease. */
export function beforeTimes(client: Etcd3, act: () => Promise<unknown>): EtcdClient {
  const leaseTimeToLive: Etcd3['leaseClient']['leaseTimeToLive'] = async (...args) => {
    await act();
    return client.leaseClient.leaseTimeToLive(...args);
  };
  return { ...partsOf(client), leaseClient: over(client.leaseClient, { leaseTimeToLive }) };
}

/** The client, with a count of the most transactions that were on their way at once. */
export function countingTxns(client: Etcd3): { readonly client: EtcdClient; readonly peak: () => number } {
  let [current, peak] = [0, 0];
  const txn: Etcd3['kv']['txn'] = async (...args) => {
    peak = Math.max(peak, (current += 1));
    try {
      return await client.kv.txn(...args);
    } finally {
      current -= 1;
    }
  };
  return { client: { ...partsOf(client), kv: over(client.kv, { txn }) }, peak: () => peak };
}

function partsOf({ kv, leaseClient, watchClient, prefix }: Etcd3): EtcdClient {
  return { kv, leaseClient, watchClient, prefix };
}

function over<T extends object>(from: T, methods: Partial<T>): T {
  return Object.assign(Object.create(from) as T, methods);
}
