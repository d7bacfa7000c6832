/** What tests of losses share: the lease of a lock, the losses that a guard tells, and what watches have been told. */
import type { Guard } from '@guard/core';
import { until } from '@guard/testing';
import type { Etcd3 } from 'etcd3';
import { countsOf } from './counts.js';
import { keysOf } from './stage.js';

/** The lease that the oldest key of a lock stands under. */
export async function leaseOf(client: Etcd3, namespace: string, key: string): Promise<string> {
  const [name] = await keysOf(client, namespace, key);
  const { kvs } = await client.getAll().prefix(name!).exec();
  return kvs[0]!.lease;
}

/** The keys of locks that a guard says are lost, each as often as it says so. */
export function lossesOf(guard: Guard): string[] {
  const lost: string[] = [];
  guard.on('lock-lost', ({ key }) => void lost.push(key));
  return lost;
}

/** What was told to watches so far: the first word to each is that it sees. */
export async function watched(url: string): Promise<number> {
  return (await countsOf(url)).Watched;
}

/** Waits until one watch more sees than `before`. */
export async function sees(url: string, before: number): Promise<void> {
  await until('the watch', async () => (await watched(url)) > before);
}
