/**
 * Inspect: the keys of locks, oldest first, and what is left of the leases of their holders. Changes nothing.
 */
import type { LockInfo, LockQuery } from '@guard/core';
import type { IKeyValue } from 'etcd3';
import type { EtcdConnection } from './connection.js';
import { readValue } from './lock-value.js';
import { found, MAX_STEPS, oldest, type Step } from './statements/txn.js';

/** How many keys one step of a listing looks at. */
const PAGE = 500;

type Below = Exclude<LockQuery, { readonly keys: readonly string[] }>;

/** What is known about each of these locks. */
export async function inspectKeys(
  connection: EtcdConnection,
  keys: readonly string[],
): Promise<readonly LockInfo[]> {
  const locks: Found[] = [];
  for (let at = 0; at < keys.length; at += MAX_STEPS) {
    const some = keys.slice(at, at + MAX_STEPS);
    const step: Step = { success: some.map((key) => oldest(connection.names.lock(key), 0)) };
    const { response } = await connection.txn(step);
    const revision = response.header.revision;
    some.forEach((key, n) => locks.push({ key, kvs: found(response.responses[n]), revision }));
  }
  return withTimes(connection, locks);
}

/** Held locks below a prefix. */
export async function inspectBelow(
  connection: EtcdConnection,
  { prefix, after, limit }: Below,
): Promise<readonly LockInfo[]> {
  const range = connection.names.locksBelow(prefix, after);
  const locks = new Map<string, IKeyValue[]>();
  let from = range.key;
  let revision = '0';
  for (let more = true; more && locks.size <= limit;) {
    const page = await connection.range({ ...range, key: from, limit: PAGE });
    revision = page.header.revision;
    for (const kv of page.kvs) {
      const { key } = connection.names.parseClaim(kv.key);
      locks.set(key, [...(locks.get(key) ?? []), kv]);
    }
    more = page.more;
    const last = page.kvs.at(-1);
    if (last !== undefined) from = Buffer.concat([last.key, Buffer.from([0])]);
  }
  const listed = [...locks].slice(0, limit).map(([key, kvs]) => ({ key, kvs: kvs.sort(byAge), revision }));
  return withTimes(connection, listed);
}

interface Found {
  readonly key: string;
  /** Oldest first. */
  readonly kvs: readonly IKeyValue[];
  readonly revision: string;
}

async function withTimes(connection: EtcdConnection, locks: readonly Found[]): Promise<readonly LockInfo[]> {
  const leases = [...new Set(locks.flatMap(({ kvs: [head] }) => (head === undefined ? [] : [head.lease])))];
  const left = new Map(
    await Promise.all(
      leases.map(async (lease) => [lease, Number((await connection.timeToLive(lease)).TTL)] as const),
    ),
  );
  return locks.map((lock) => infoOf(lock, left));
}

function infoOf({ key, kvs, revision }: Found, left: ReadonlyMap<string, number>): LockInfo {
  const [head, ...waiting] = kvs;
  if (head === undefined) return { key, held: false, token: BigInt(revision), waiting: 0 };
  const { claim = '', session = '', holder } = readValue(head.value) ?? {};
  const token = BigInt(head.create_revision);
  return {
    ...{ key, held: true, token, waiting: waiting.length },
    ...(holder === undefined ? undefined : { holder }),
    // The server tells whole seconds.
    expiresInMs: Math.max(1, (left.get(head.lease) ?? 0) * 1_000),
    lease: { key, claim, token, session },
  };
}

function byAge(a: IKeyValue, b: IKeyValue): number {
  return Number(BigInt(a.create_revision) - BigInt(b.create_revision));
}
