/** A cluster whose members hang, are promoted and demoted, while locks are handed over and a watch listens. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Duration, Guard } from '@guard/core';
import { everydayUse, startTcpProxy, until } from '@guard/testing';
import { startRedisCluster, type RedisCluster, type TestServer } from '@guard/testing/servers';
import { Cluster as Cluster5 } from 'ioredis';
import { Cluster } from 'ioredis6';
import { createCluster as createCluster5 } from 'redis';
import { createCluster } from 'redis6';
import { redisLocks, type RedisLocksOptions } from '../../src/index.js';
import { fromIoredis } from '../../src/ioredis.js';
import { fromNodeRedis } from '../../src/node-redis.js';
import { slotOf, TAGS } from '../../src/slot.js';
import { viaIoredis6, viaNodeRedis6, type Client, type Via } from '../support/clients.js';
import { failOver, keysIn, messengers, ownerOf, slotOfKey, startMove } from '../support/cluster.js';
import { Stage } from '../support/stage.js';

jest.setTimeout(120_000);

const LIBRARIES: [string, Via][] = [
  ['ioredis', viaIoredis6],
  ['node-redis', viaNodeRedis6],
];

/** Ends a client with the stage. */
const endsWith =
  (stage: Stage) =>
  (client: Client): Client => {
    stage.ends(() => client.end());
    return client;
  };

let cluster: RedisCluster;
beforeAll(async () => {
  const args = ['--cluster-require-full-coverage', 'no'];
  cluster = await startRedisCluster({ appendOnly: false, nodeTimeoutMs: 2_000, args });
}, 60_000);
afterAll(() => cluster.stop());

async function guardOf(
  stage: Stage,
  via: Via,
  namespace?: string,
  locks: RedisLocksOptions = {},
): Promise<Guard> {
  const client = await via({ cluster });
  stage.ends(() => client.end());
  return stage.guard(client.connection, { locks, ...(namespace === undefined ? {} : { namespace }) });
}

/** Hands one lock to and fro between guards until it is stopped, and says how often. */
function handOvers(guards: readonly Guard[], key: string, ttl: Duration = '4s') {
  const seen = { count: 0, last: 0n, backwards: 0, faults: [] as string[] };
  let goesOn = true;
  const work = guards.map(async (guard) => {
    while (goesOn) {
      try {
        const lock = await guard.acquire(key, { ttl, wait: '20s' });
        seen.count += 1;
        if (lock.token <= seen.last) seen.backwards += 1;
        seen.last = lock.token;
        await sleep(20);
        await lock.release();
      } catch (error) {
        seen.faults.push(String(error));
        await sleep(50);
      }
    }
  });
  const stop = async (): Promise<void> => {
    goesOn = false;
    await Promise.all(work);
  };
  return { seen, stop };
}

const portOf = ({ host, port }: TestServer): { host: string; port: number } => ({ host, port });
const silent = (): void => undefined;

it('[S1] clients of ioredis that read from replicas read what was written last, after fail-overs there and back too', async () => {
  await using stage = new Stage();
  const writer = await guardOf(stage, viaNodeRedis6);
  const slot = slotOfKey(`${writer.namespace}/state/e`);
  const readers = [Cluster5, Cluster].flatMap((make) =>
    (['slave', 'all'] as const).map((scaleReads) => {
      const client = new make(cluster.nodes.map(portOf), { scaleReads });
      client.on('error', silent);
      stage.ends(() => client.disconnect());
      return stage.guard(fromIoredis(client), { namespace: writer.namespace });
    }),
  );
  for (let round = 0; round < 3; round += 1) {
    if (round > 0) await failOver(stage, cluster, slot);
    await writer.state.set('e', round);
    for (const reader of readers) {
      expect((await reader.state.get('e'))?.value).toBe(round);
      await reader.state.set('e', round);
    }
  }
});

it('works where every address is translated: natMap of ioredis, nodeAddressMap of node-redis', async () => {
  await using stage = new Stage();
  const map: Record<string, { host: string; port: number }> = {};
  for (const target of cluster.nodes.map(portOf)) {
    const proxy = await startTcpProxy({ target });
    stage.ends(() => proxy.close());
    map[`${target.host}:${target.port}`] = { host: '127.0.0.1', port: proxy.port };
  }
  const seeds = Object.values(map);
  const clusters = [Cluster5, Cluster].map((make) => new make(seeds, { natMap: map }));
  for (const client of clusters) client.on('error', silent);
  clusters.forEach((client) => stage.ends(() => client.disconnect()));
  const rootNodes = seeds.map(({ host, port }) => ({ url: `redis://${host}:${port}` }));
  const options = { rootNodes, nodeAddressMap: map };
  const others = [createCluster5(options), createCluster(options)];
  for (const client of others) {
    client.on('error', silent);
    await client.connect();
    stage.ends(() => client.destroy());
  }
  for (const connection of [
    ...clusters.map((one) => fromIoredis(one)),
    ...others.map((one) => fromNodeRedis(one)),
  ]) {
    const first = stage.guard(connection);
    await everydayUse(first, stage.guard(connection, { namespace: first.namespace }));
  }
});

describe.each(LIBRARIES)('A cluster whose members fail, %s', (_, via) => {
  it('[L1] a slot that is open for a second costs no lock of three, nor one that is asked for meanwhile', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage, via);
    const slot = slotOfKey(`${guard.namespace}/lock/moves`);
    const [held, wanted] = keysIn(slot, guard.namespace, 'lock', 2);
    const lost: string[] = [];
    guard.on('lock-lost', ({ key }) => void lost.push(key));
    const lock = await guard.acquire(held!, { ttl: '3s' });
    const takenMs = performance.now();
    const move = await startMove(stage, cluster, slot);
    await move.keysNow((await move.keys()).slice(0, 1));
    const asked = guard.acquire(wanted!, { ttl: '3s', wait: '5s' });
    // Renewals are due after a third of the ttl.
    await sleep(1_500 - (performance.now() - takenMs));
    await move.keysNow();
    await move.finish();
    const second = await asked;
    await sleep(3_500 - (performance.now() - takenMs));
    expect([lock.isHeld(), second.isHeld(), lost]).toEqual([true, true, []]);
    expect(await lock.release()).toBe('released');
    expect(await second.release()).toBe('released');
  });

  it('[C4] [L2] locks whose replicas have to confirm are handed over as fast as they do, without a fault', async () => {
    await using stage = new Stage();
    const locks = { acks: { replicas: 1, timeoutMs: 1_000 } };
    const first = await guardOf(stage, via, undefined, locks);
    const second = await guardOf(stage, via, first.namespace, locks);
    const running = ['a', 'b', 'c'].map((key) => handOvers([first, second], key));
    await sleep(2_000);
    await Promise.all(running.map(({ stop }) => stop()));
    for (const { seen } of running) {
      expect(seen).toMatchObject({ backwards: 0, faults: [] });
      expect(seen.count).toBeGreaterThan(15);
    }
  });

  it('[L2] while slots move to and fro, a watch hears of every write, and a list names each lock once', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage, via);
    const other = await guardOf(stage, via, guard.namespace);
    const slot = slotOfKey(`${guard.namespace}/state/moves`);
    const entries = keysIn(slot, guard.namespace, 'state', 3);
    const keys = keysIn(slot, guard.namespace, 'lock', 3);
    const heard = new Set<string>();
    const watch = await other.state.watch<number>(
      '',
      ({ key, entry }) => void heard.add(`${key}=${entry?.value}`),
    );
    stage.ends(() => watch.close());
    const held = await Promise.all(keys.map((key) => guard.acquire(key, { ttl: '20s' })));
    const backend = redisLocks((await via({ cluster }).then(endsWith(stage))).connection);
    for (let round = 0; round < 4; round += 1) {
      const move = await startMove(stage, cluster, slot);
      const writes = entries.map((entry) => guard.state.set(entry, round));
      await move.keysNow();
      await move.finish();
      await Promise.all(writes);
      const listed = await backend.inspect({ prefix: `${guard.namespace}/`, limit: 10 });
      expect(listed.map(({ key }) => key)).toEqual(
        keys.map((key) => `${guard.namespace}/lock/${key}`).sort(),
      );
      await until('all is heard', () => entries.every((entry) => heard.has(`${entry}=${round}`)));
    }
    expect(await Promise.all(held.map((lock) => lock.release()))).toEqual(keys.map(() => 'released'));
  });

  it('[S3] [L2] locks that are handed over go on after their shard was failed over by force, with ever larger tokens', async () => {
    await using stage = new Stage();
    const first = await guardOf(stage, via);
    const second = await guardOf(stage, via, first.namespace);
    const key = 'forced';
    const slot = slotOfKey(`${first.namespace}/lock/${key}`);
    const { seen, stop } = handOvers([first, second], key, '1s');
    for (const how of ['FORCE', 'TAKEOVER'] as const) {
      await until(
        'it is handed over',
        (
          (from) => () =>
            seen.count > from + 5
        )(seen.count),
      );
      await failOver(stage, cluster, slot, [how]);
      await until(
        'it goes on',
        (
          (from) => () =>
            seen.count > from + 10
        )(seen.count),
        20_000,
      );
    }
    await stop();
    expect(seen.backwards).toBe(0);
  });

  it('[B38] [L2] [L3] a member that hangs slows the hand-overs of the others for three seconds at most, also where messages came by it', async () => {
    await using stage = new Stage();
    const first = await guardOf(stage, via);
    const second = await guardOf(stage, via, first.namespace);
    // One lock of each master, and entries beside them.
    const apart = new Map<TestServer, number>();
    // Other tests have moved slots.
    for (const slot of TAGS.map(slotOf)) {
      if (apart.size < 3) apart.set(await ownerOf(stage, cluster, slot), slot);
    }
    const [owners, slots] = [[...apart.keys()], [...apart.values()]];
    expect(owners).toHaveLength(3);
    const keys = slots.map((slot) => keysIn(slot, first.namespace, 'lock', 1)[0]!);
    const entries = slots.map((slot) => keysIn(slot, first.namespace, 'state', 1)[0]!);
    const heard = new Set<string>();
    const watch = await second.state.watch<number>(
      '',
      ({ key, entry }) => void heard.add(`${key}=${entry?.value}`),
    );
    stage.ends(() => watch.close());
    const running = keys.map((key) => handOvers([first, second], key));
    const counts = async (overMs: number): Promise<number[]> => {
      const before = running.map(({ seen }) => seen.count);
      await sleep(overMs);
      return running.map(({ seen }, n) => seen.count - before[n]!);
    };
    await sleep(500);
    const quiet = await counts(1_500);
    const [victim] = await messengers(stage, cluster);
    await victim!.pause();
    try {
      await sleep(3_500);
      const after = await counts(1_500);
      const healthy = [0, 1, 2].filter((n) => owners[n] !== victim);
      for (const n of healthy)
        expect([n, after[n]! * 3 > quiet[n]!, after, quiet]).toEqual([n, true, after, quiet]);
      await Promise.all(healthy.map((n) => first.state.set(entries[n]!, 1)));
      await sleep(500);
      expect(healthy.filter((n) => !heard.has(`${entries[n]}=1`))).toEqual([]);
    } finally {
      await victim!.resume();
      await Promise.all(running.map(({ stop }) => stop()));
    }
    expect(running.map(({ seen }) => seen.backwards)).toEqual([0, 0, 0]);
  });
});
