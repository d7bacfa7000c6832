/** What the tests do to a cluster: who owns a slot, a slot that moves, a fail-over that was asked for. */
import { until } from '@guard/testing';
import type { RedisCluster, TestServer } from '@guard/testing/servers';
import { slotOf, tagOf } from '../../src/slot.js';
import type { Stage } from './stage.js';

/** The slot of all that belongs to a key, as the backends name it: `namespace/section/key`. */
export function slotOfKey(fullKey: string): number {
  return slotOf(tagOf(fullKey));
}

/** Keys whose locks, and entries, share one slot. */
export function keysIn(slot: number, namespace: string, section: 'lock' | 'state', count: number): string[] {
  const found: string[] = [];
  for (let n = 0; found.length < count; n += 1) {
    if (slotOfKey(`${namespace}/${section}/k${n}`) === slot) found.push(`k${n}`);
  }
  return found;
}

/** The master of a slot. */
export async function ownerOf(stage: Stage, cluster: RedisCluster, slot: number): Promise<TestServer> {
  const [alive] = await cluster.masters();
  const slots = (await stage.admin(alive!).call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
  const [, , [, port]] = slots.find(([from, to]) => from <= slot && slot <= to)!;
  return cluster.nodes.find((node) => node.port === port)!;
}

/** A slot on its way from one master to another. */
export interface Move {
  readonly keys: () => Promise<string[]>;
  /** Moves the keys that are there, in one step or one by one. */
  readonly keysNow: (keys?: readonly string[]) => Promise<unknown>;
  readonly finish: () => Promise<void>;
}

/** Begins to move a slot from its master to another one, step by step. */
export async function startMove(stage: Stage, cluster: RedisCluster, slot: number): Promise<Move> {
  const source = await ownerOf(stage, cluster, slot);
  const target = (await cluster.masters()).find((node) => node !== source)!;
  const [from, to] = [stage.admin(source), stage.admin(target)];
  const [sourceId, targetId] = (await Promise.all(
    [from, to].map((node) => node.call('CLUSTER', 'MYID')),
  )) as string[];
  await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId!);
  await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId!);
  const keys = async () => (await from.call('CLUSTER', 'GETKEYSINSLOT', slot, 1_000)) as string[];
  return {
    keys,
    keysNow: async (some) =>
      from.call('MIGRATE', target.host, target.port, '', 0, 5_000, 'KEYS', ...(some ?? (await keys()))),
    finish: async () => {
      for (const node of [to, from]) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId!);
    },
  };
}

/** Makes a replica of a slot's master the master, in one of the ways that Redis has. */
export async function failOver(
  stage: Stage,
  cluster: RedisCluster,
  slot: number,
  how: readonly ('FORCE' | 'TAKEOVER')[] = [],
): Promise<void> {
  const owner = await ownerOf(stage, cluster, slot);
  const admin = stage.admin(owner);
  const id = String(await admin.call('CLUSTER', 'MYID'));
  let port = 0;
  await until('its master has a replica', async () => {
    const lines = String(await admin.call('CLUSTER', 'NODES')).split('\n');
    const line = lines.find((one) => one.includes('slave') && one.includes(id) && !one.includes('fail'));
    port = Number(/:(\d+)@/.exec(line ?? '')?.[1] ?? 0);
    return port > 0;
  });
  const replica = stage.admin(cluster.nodes.find((node) => node.port === port)!);
  await until('the replica follows', async () =>
    (await replica.info('replication')).includes('master_link_status:up'),
  );
  const isMaster = async (): Promise<boolean> => (await replica.role())[0] === 'master';
  // So soon after the last one, masters may not vote for it yet.
  const tryIt = async (): Promise<boolean> => {
    await replica.call('CLUSTER', 'FAILOVER', ...how).catch(() => undefined);
    await until('it is the master', isMaster, 1_000).catch(() => undefined);
    return isMaster();
  };
  await until('it is the master after a while', tryIt, 20_000);
  // Without a vote, members may disagree for a while.
  if (how.length > 0) return;
  await until('all know it', async () => (await ownerOf(stage, cluster, slot)).port === port, 10_000);
}

/** The member that hands messages to a client, which is there while somebody listens. */
export async function messengers(stage: Stage, cluster: RedisCluster): Promise<TestServer[]> {
  const lists = await Promise.all(
    cluster.nodes.map((node) => stage.admin(node).call('CLIENT', 'LIST', 'TYPE', 'pubsub')),
  );
  return cluster.nodes.filter((_, n) => String(lists[n]).trim() !== '');
}
