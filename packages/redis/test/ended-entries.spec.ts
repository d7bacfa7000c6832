/** What is left in Redis of entries that ended by their ttl: sessions come and go for ever. */
import { setTimeout as sleep } from 'node:timers/promises';
import { FENCE_KEPT_MS, type Guard } from '@guard/core';
import { startRedis, type TestServer } from '@guard/testing/servers';
import type { Redis } from 'ioredis6';
import { viaIoredis6 } from './support/clients.js';
import { Stage } from './support/stage.js';

describe('Entries that ended', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startRedis({ appendOnly: false });
  });
  afterAll(() => server.stop());

  async function place(stage: Stage): Promise<{ readonly guard: Guard; readonly admin: Redis }> {
    const client = await viaIoredis6({ single: server });
    stage.ends(() => client.end());
    const admin = stage.admin(server);
    await admin.flushall();
    return { guard: stage.guard(client.connection), admin };
  }

  const indexed = (admin: Redis): Promise<readonly number[]> =>
    Promise.all(['guard:index', 'guard:index-ends'].map((name) => admin.zcard(name)));

  async function listed(guard: Guard): Promise<readonly string[]> {
    const keys: string[] = [];
    for await (const { key } of guard.state.list('')) keys.push(key);
    return keys;
  }

  const create = (guard: Guard, names: readonly string[], ttl: number): Promise<unknown> =>
    Promise.all(names.map((name) => guard.state.create(name, 1, { ttl })));
  const sessions = Array.from({ length: 100 }, (_, n) => `session:${n}`);

  it('[L3] leave the index with the reads that miss them', async () => {
    await using stage = new Stage();
    const { guard, admin } = await place(stage);
    await create(guard, sessions, 1_000);
    expect(await indexed(admin)).toEqual([100, 100]);
    await sleep(1_100);
    for (const name of sessions) expect(await guard.state.get(name)).toBeNull();
    expect(await indexed(admin)).toEqual([0, 0]);
  });

  it('[L3] leave it with the writes of others, twice as fast as these come', async () => {
    await using stage = new Stage();
    const { guard, admin } = await place(stage);
    await create(guard, sessions, 1_000);
    await sleep(1_100);
    for (let n = 0; n < 50; n += 1) await guard.state.create(`next:${n}`, 1, { ttl: 60_000 });
    expect(await indexed(admin)).toEqual([50, 50]);
    await create(guard, sessions, 1_000);
    await sleep(1_100);
    await Promise.all(sessions.map((_, n) => guard.state.set(`lasting:${n}`, 1)));
    expect(await indexed(admin)).toEqual([150, 50]);
  });

  it('take no key along that was written again, whatever end it has now', async () => {
    await using stage = new Stage();
    const { guard, admin } = await place(stage);
    const names = ['again', 'longer', 'unended', 'kept', 'deleted'];
    await create(guard, names, 1_500);
    await guard.state.set('longer', 2, { ttl: '1m' });
    await guard.state.delete('deleted');
    expect(await indexed(admin)).toEqual([4, 4]);
    // What the hour after an end leaves of an entry, or an eviction.
    for (const hash of await admin.keys('guard:*:s:*/unended')) await admin.del(hash);
    await guard.state.set('unended', 2);
    await guard.state.set('kept', 2);
    await sleep(1_600);
    await guard.state.set('again', 2);
    for (let n = 0; n < 10; n += 1) await guard.state.get('none');
    expect(await listed(guard)).toEqual(['again', 'longer', 'unended']);
    expect(await indexed(admin)).toEqual([3, 1]);
    const [hash] = await admin.keys('guard:*:s:*/kept');
    expect(await admin.pttl(hash!)).toBeGreaterThan(FENCE_KEPT_MS - 60_000);
  });

  it('[C1] cost nobody a command: a read is one, and so is a write', async () => {
    await using stage = new Stage();
    const { guard, admin } = await place(stage);
    await create(guard, sessions, 1_000);
    await guard.state.get('warm');
    await sleep(1_100);
    await admin.config('RESETSTAT');
    for (let n = 0; n < 20; n += 1) {
      await guard.state.set(`w${n}`, n, { ttl: '1m' });
      await guard.state.get(`w${n}`);
    }
    const stats = await admin.info('commandstats');
    expect(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1]).toBe('40');
    expect(stats).not.toMatch(/cmdstat_eval:/);
  });

  it('[S6] do not keep a demoted master from showing what it has', async () => {
    await using stage = new Stage();
    const { guard, admin } = await place(stage);
    await create(guard, sessions, 1_000);
    const version = await guard.state.set('kept', 1);
    await sleep(1_100);
    await admin.replicaof('127.0.0.1', 1);
    try {
      expect(await guard.state.get('kept')).toEqual({ value: 1, version });
      expect(await guard.state.get('session:1')).toBeNull();
    } finally {
      await admin.replicaof('NO', 'ONE');
    }
  });
});
