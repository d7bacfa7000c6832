/** What the tests on real faults share: guards on clients, a plain client to do things to the server, and patience. */
import { createGuard, systemRandom, type Guard, type LockBackend, type StateStore } from '@guard/core';
import { Etcd3, type IOptions } from 'etcd3';
import { etcdLocks, etcdState, type EtcdClient } from '../../src/index.js';

/** A guard with what it stands on. */
export interface Process {
  readonly guard: Guard;
  readonly locks: LockBackend;
  readonly state: StateStore;
  readonly client: Etcd3;
}

/** What a test made, ended in the reverse order. */
export class Stage implements AsyncDisposable {
  readonly namespace = `t-${systemRandom.id()}`;
  readonly #ends: (() => unknown)[] = [];

  /** Ends this with the test. */
  ends(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** A guard on a client of its own. All guards of a test share a namespace. */
  process(urls: readonly string[], options: Partial<IOptions> = {}): Process {
    const client = this.client(urls, options);
    return { client, ...guardOn(this, client) };
  }

  client(urls: readonly string[], options: Partial<IOptions> = {}): Etcd3 {
    const client = new Etcd3({ ...options, hosts: [...urls] });
    this.ends(() => client.close());
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends.reverse()) await end();
  }
}

/** A guard on a client that the test has already, or on a namespace of one. */
export function guardOn(stage: Stage, client: EtcdClient): Omit<Process, 'client'> {
  const locks = etcdLocks(client);
  const state = etcdState(client);
  stage.ends(() => Promise.all([locks.close(), state.close()]));
  const guard = createGuard({ locks, state, namespace: stage.namespace, grace: '1s' });
  stage.ends(() => guard.close());
  return { guard, locks, state };
}

/** The keys of a lock, oldest first. */
export async function keysOf(client: Etcd3, namespace: string, key: string): Promise<string[]> {
  const prefix = `guard/l/${namespace}/lock/${key}\0`;
  const { kvs } = await client.getAll().prefix(prefix).sort('Create', 'Ascend').exec();
  return kvs.map((kv) => kv.key.toString());
}
