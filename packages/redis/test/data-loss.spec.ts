/** What Redis acknowledged and lost: tokens go on all the same (S2), and whoever held a lock is told. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Claim, ClaimAnswer } from '@guard/core';
import { until } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { redisLocks } from '../src/index.js';
import { lockNames } from '../src/names.js';
import { viaIoredis6, viaNodeRedis6, type Client } from './support/clients.js';
import { Stage } from './support/stage.js';

describe('Lost data', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startRedis({ appendOnly: false });
  });
  afterAll(() => server.stop());

  async function two(stage: Stage): Promise<[Client, Client]> {
    const first = await viaIoredis6({ single: server });
    const second = await viaNodeRedis6({ single: server });
    stage.ends(() => (first.end(), second.end()));
    return [first, second];
  }

  const LOSSES: [string, () => Promise<void>][] = [
    ['FLUSHALL', async () => run((admin) => admin.flushall())],
    [
      'FLUSHALL and SCRIPT FLUSH',
      async () => run((admin) => admin.flushall().then(() => admin.script('FLUSH'))),
    ],
    ['a restart without its data', () => server.restart({ keepData: false })],
  ];

  async function run(act: (admin: ReturnType<Stage['admin']>) => Promise<unknown>): Promise<void> {
    await using stage = new Stage();
    await act(stage.admin(server));
  }

  it.each(LOSSES)(
    '[S2] [S1-assumption] [B38] tokens and versions go on after %s, and the old holder is told',
    async (_, lose) => {
      await using stage = new Stage();
      const [one, two_] = await two(stage);
      const first = stage.guard(one.connection);
      const second = stage.guard(two_.connection, { namespace: first.namespace });
      const old = await first.acquire('k', { ttl: '1s' });
      const version = await first.state.create('e', 1);
      await lose();
      const next = await second.acquire('k', { ttl: '5s', wait: '5s' });
      expect(next.token).toBeGreaterThan(old.token);
      await until('the old holder is told', () => old.signal.aborted, 2_000);
      expect(old.isHeld()).toBe(false);
      expect(await old.release()).toBe('lost');
      expect(next.isHeld()).toBe(true);
      const again = await second.state.create('e', 2);
      expect(BigInt(again!)).toBeGreaterThan(BigInt(version!));
      expect(await first.state.update('e', version!, 3)).toBeNull();
    },
  );

  it.each(LOSSES)('[B103] every process that waits gets the lock in its turn after %s', async (_, lose) => {
    await using stage = new Stage();
    const [one, other] = await two(stage);
    const holder = stage.guard(one.connection);
    const { namespace } = holder;
    const waiters = [one, other, other].map(({ connection }) => stage.guard(connection, { namespace }));
    const held = await holder.acquire('k', { ttl: '1s' });
    const tokens: bigint[] = [];
    let inside = 0;
    const turns = waiters.map(async (guard) => {
      const lock = await guard.acquire('k', { ttl: '1s', wait: '30s' });
      tokens.push(lock.token);
      inside += 1;
      expect(inside).toBe(1);
      await sleep(20);
      inside -= 1;
      expect(await lock.release()).toBe('released');
    });
    await until('all wait', async () => (await holder.inspect('k')).waiting === waiters.length);
    await lose();
    await Promise.all(turns);
    expect(tokens).toHaveLength(waiters.length);
    const all = [held.token, ...tokens];
    expect(all).toEqual([...new Set(all)].sort((a, b) => (a < b ? -1 : 1)));
  });

  it('[L2] [B103] when its record alone is lost, a lock goes to no claim that is over, and nobody is counted who does not wait', async () => {
    await using stage = new Stage();
    const [{ connection }] = await two(stage);
    const locks = redisLocks(connection);
    const key = 'lost-record/lock/k';
    const claim = (id: string): Claim => {
      const terms = { ttlMs: 30_000, wait: true, ticketTtlMs: 30_000, holder: { label: 'test' } };
      return { key, id, session: `of ${id}`, ...terms };
    };
    const acquire = async (id: string): Promise<ClaimAnswer> => (await locks.acquire([claim(id)]))[0]!;
    const release = async (id: string, answer: ClaimAnswer): Promise<unknown> => {
      if (answer.status !== 'granted') throw new Error(`${id} has no lock: ${answer.status}`);
      return locks.release([{ key, claim: id, session: `of ${id}`, token: answer.token }]);
    };
    await acquire('a');
    for (const id of ['b', 'c']) expect(await acquire(id)).toMatchObject({ status: 'queued' });
    await stage.admin(server).del(lockNames(key).record);
    const taken = await acquire('b');
    expect(await locks.inspect({ keys: [key] })).toMatchObject([{ held: true, waiting: 0 }]);
    await release('b', taken);
    const next = await acquire('c');
    expect(await acquire('d')).toMatchObject({ status: 'queued', ahead: 0, fresh: true });
    expect(await locks.inspect({ keys: [key] })).toMatchObject([{ held: true, waiting: 1 }]);
    await release('c', next);
    expect(await locks.inspect({ keys: [key] })).toMatchObject([{ lease: { claim: 'd' }, waiting: 0 }]);
  });

  it('[S2] tokens grow when only the record of a free lock is lost, and when it is kept', async () => {
    await using stage = new Stage();
    const [{ connection }] = await two(stage);
    const guard = stage.guard(connection);
    const admin = stage.admin(server);
    let last = 0n;
    for (let round = 0; round < 6; round += 1) {
      const lock = await guard.acquire('k');
      expect(lock.token).toBeGreaterThan(last);
      last = lock.token;
      await lock.release();
      if (round % 2 === 0) await admin.flushall();
    }
  });

  it.each(['allkeys-lru', 'volatile-ttl'])(
    '[B54] tells the holder of every lock that another process got after an eviction (%s)',
    async (policy) => {
      await using stage = new Stage();
      const [one, other] = await two(stage);
      const first = stage.guard(one.connection);
      const second = stage.guard(other.connection, { namespace: first.namespace });
      const admin = stage.admin(server);
      await admin.flushall();
      const keys = Array.from({ length: 100 }, (_, n) => `e${n}`);
      const held = await Promise.all(keys.map((key) => first.acquire(key, { ttl: '2s' })));
      await admin.config('SET', 'maxmemory-policy', policy);
      await admin.config('SET', 'maxmemory', '5mb');
      stage.ends(async () => {
        await admin.config('SET', 'maxmemory', '0');
        await admin.config('SET', 'maxmemory-policy', 'noeviction');
      });
      const filler = 'x'.repeat(10_000);
      for (let batch = 0; batch < 20; batch += 1) {
        const pipeline = admin.pipeline();
        for (let n = 0; n < 50; n += 1) pipeline.set(`cache:${batch}:${n}`, filler, 'EX', 3);
        await pipeline.exec();
      }
      const taken = await Promise.all(keys.map((key) => second.tryAcquire(key).catch(() => null)));
      expect(taken.some((lock) => lock !== null)).toBe(true);
      await until(
        'every loser is told',
        () => taken.every((lock, n) => lock === null || held[n]!.signal.aborted),
        3_000,
      );
      taken.forEach((lock, n) => lock === null || expect(lock.token).toBeGreaterThan(held[n]!.token));
    },
  );
});
