/** A cluster whose members hang, are promoted and demoted, while locks are handed over and a watch listens. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Guard } from '@guard/core';
import { startRedisCluster, type RedisCluster } from '@guard/testing/servers';
import { viaIoredis6, viaNodeRedis6, type Via } from '../support/clients.js';
import { keysIn, messengers, ownerOf, slotOfKey, startMove } from '../support/cluster.js';
import { Stage } from '../support/stage.js';
import { TAGS, slotOf } from '../../src/slot.js';

jest.setTimeout(120_000);

const LIBRARIES: [string, Via][] = [
  ['ioredis', viaIoredis6],
  ['node-redis', viaNodeRedis6],
];

let cluster: RedisCluster;
beforeAll(async () => {
  const args = ['--cluster-require-full-coverage', 'no'];
  cluster = await startRedisCluster({ appendOnly: false, nodeTimeoutMs: 2_000, args });
}, 60_000);
afterAll(() => cluster.stop());

async function guardOf(stage: Stage, via: Via, namespace?: string): Promise<Guard> {
  const client = await via({ cluster });
  stage.ends(() => client.end());
  return stage.guard(client.connection, namespace === undefined ? {} : { namespace });
}

/** Hands one lock to and fro between guards until it is stopped, and says how often. */
function handOvers(guards: readonly Guard[], key: string) {
  const seen = { count: 0, last: 0n, backwards: 0, faults: [] as string[] };
  let goesOn = true;
  const work = guards.map(async (guard) => {
    while (goesOn) {
      try {
        const lock = await guard.acquire(key, { ttl: '4s', wait: '20s' });
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

  it('[B38] [L2] [L3] a member that hangs slows the hand-overs of the others for three seconds at most, also where messages came by it', async () => {
    await using stage = new Stage();
    const first = await guardOf(stage, via);
    const second = await guardOf(stage, via, first.namespace);
    // One lock of each master, and entries beside them.
    const slots = [TAGS[5]!, TAGS[30]!, TAGS[60]!].map(slotOf);
    const owners = await Promise.all(slots.map((slot) => ownerOf(stage, cluster, slot)));
    expect(new Set(owners).size).toBe(3);
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
