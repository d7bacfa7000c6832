/**
 * Locks that replicas confirm, on a cluster whose slots change their masters, by a move and by a planned fail-over. One
 * slot is moved for clients of all libraries at once: each has a lock of its own there.
 */
import { systemRandom, type Claim, type LeaseRef, type LockBackend } from '@guard/core';
import { until } from '@guard/testing';
import { startRedisCluster, type RedisCluster, type TestServer } from '@guard/testing/servers';
import { redisLocks } from '../src/index.js';
import { slotOf, TAGS, tagOf } from '../src/slot.js';
import {
  viaIoredis,
  viaIoredis6,
  viaNodeRedis,
  viaNodeRedis6,
  type Client,
  type Via,
} from './support/clients.js';
import { Stage } from './support/stage.js';

const VIAS: readonly Via[] = [viaIoredis, viaIoredis6, viaNodeRedis, viaNodeRedis6];
const [TAG] = TAGS as readonly [string];
const SLOT = slotOf(TAG);

let cluster: RedisCluster;
let clients: Client[];
beforeAll(async () => {
  cluster = await startRedisCluster({ appendOnly: false, masters: 2 });
  clients = await Promise.all(VIAS.map((via) => via({ cluster })));
});
afterAll(async () => {
  for (const client of clients) client.end();
  await cluster.stop();
});

interface Party {
  readonly locks: LockBackend;
  readonly lease: LeaseRef;
}

/** What each library's own lock of the slot was answered, in their order. */
async function answers<A>(
  ask: (party: Party) => Promise<readonly A[]>,
  parties: readonly Party[],
): Promise<A[]> {
  return (await Promise.all(parties.map(ask))).flat();
}

/** Each library has taken a lock of its own, so all of them know the way. */
function holders(): Promise<Party[]> {
  return Promise.all(
    clients.map(async ({ connection }) => {
      const locks = redisLocks(connection, { acks: { replicas: 1, timeoutMs: '10s' } });
      const claim = newClaim();
      const [answer] = await locks.acquire([claim]);
      if (answer?.status !== 'granted') throw new Error(`not granted: ${JSON.stringify(answer)}`);
      const { key, id, session } = claim;
      return { locks, lease: { key, claim: id, session, token: answer.token } };
    }),
  );
}

function newClaim(): Claim {
  let key: string;
  do key = `t/lock/${systemRandom.id()}`;
  while (tagOf(key) !== TAG);
  const [id, session] = [systemRandom.id(), systemRandom.id()];
  return { key, id, session, ttlMs: 30_000, wait: false, ticketTtlMs: 6_000, holder: { label: 'test' } };
}

/** The master that has the slot, once all members say the same. */
async function masterOf(stage: Stage): Promise<TestServer> {
  let ports: number[] = [];
  await until('all members know whose the slot is', async () => {
    const seen = cluster.nodes.map(async (node) => {
      const slots = (await stage.admin(node).call('CLUSTER', 'SLOTS')) as [
        number,
        number,
        [string, number],
      ][];
      return slots.find(([from, to]) => from <= SLOT && SLOT <= to)![2][1];
    });
    ports = await Promise.all(seen);
    return new Set(ports).size === 1;
  });
  return cluster.nodes.find(({ port }) => port === ports[0])!;
}

/** Moves the slot with its keys to the other master, at once. */
async function move(stage: Stage): Promise<void> {
  const source = await masterOf(stage);
  const target = (await cluster.masters()).find((node) => node !== source)!;
  const [from, to] = [stage.admin(source), stage.admin(target)];
  const [sourceId, targetId] = (await Promise.all(
    [from, to].map((node) => node.call('CLUSTER', 'MYID')),
  )) as string[];
  await to.call('CLUSTER', 'SETSLOT', SLOT, 'IMPORTING', sourceId!);
  await from.call('CLUSTER', 'SETSLOT', SLOT, 'MIGRATING', targetId!);
  const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', SLOT, 1_000)) as string[];
  await from.call('MIGRATE', target.host, target.port, '', 0, 5_000, 'KEYS', ...keys);
  for (const node of [to, from]) await node.call('CLUSTER', 'SETSLOT', SLOT, 'NODE', targetId!);
}

/** A replica becomes the master of the slot, and its master a replica. */
async function failOver(stage: Stage): Promise<void> {
  const master = await masterOf(stage);
  const roles = cluster.nodes.map(async (node) => (await stage.admin(node).call('ROLE')) as unknown[]);
  const isReplica = ([role, , port]: unknown[]): boolean => role === 'slave' && port === master.port;
  const replica = cluster.nodes[(await Promise.all(roles)).findIndex(isReplica)]!;
  await until('the replica has it all', async () => (await stage.admin(master).wait(1, 500)) === 1);
  await stage.admin(replica).call('CLUSTER', 'FAILOVER');
  await until('it has taken over', async () => (await masterOf(stage)) === replica);
}

const RENEWED = { status: 'renewed' };

it('[S1] [L3] with acks, locks are renewed after their slot moved to another master', async () => {
  await using stage = new Stage();
  const parties = await holders();
  await move(stage);
  expect(await answers(({ locks, lease }) => locks.renew([{ ...lease, ttlMs: 30_000 }]), parties)).toEqual(
    parties.map(() => RENEWED),
  );
});

it('[S1] [L3] with acks, locks are taken after their slot moved to another master', async () => {
  await using stage = new Stage();
  const parties = await holders();
  await move(stage);
  expect(await answers(({ locks }) => locks.acquire([newClaim()]), parties)).toEqual(
    parties.map(() => ({ status: 'granted', token: expect.any(BigInt) as bigint })),
  );
});

it('[S1] [L3] with acks, locks are renewed after a planned fail-over', async () => {
  await using stage = new Stage();
  const parties = await holders();
  await failOver(stage);
  expect(await answers(({ locks, lease }) => locks.renew([{ ...lease, ttlMs: 30_000 }]), parties)).toEqual(
    parties.map(() => RENEWED),
  );
});
