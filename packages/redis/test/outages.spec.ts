/** One server in trouble: what it refuses is told with its own words, and nothing is ever taken for "busy". */
import { setTimeout as sleep } from 'node:timers/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis6';
import { systemRandom, type Claim } from '@guard/core';
import { failureOf, reasons, until } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { redisLocks } from '../src/index.js';
import { fromIoredis } from '../src/ioredis.js';
import { viaIoredis6, viaNodeRedis6, type Client, type Via } from './support/clients.js';
import { Stage } from './support/stage.js';

const LIBRARIES: [string, Via][] = [
  ['ioredis', viaIoredis6],
  ['node-redis', viaNodeRedis6],
];

describe('A server in trouble', () => {
  let server: TestServer;
  beforeAll(async () => {
    // Protected settings are changed below; keys are loaded slowly, so that loading can be met.
    const args = [
      '--enable-protected-configs',
      'yes',
      '--key-load-delay',
      '400',
      '--busy-reply-threshold',
      '100',
    ];
    server = await startRedis({ args });
  });
  afterAll(() => server.stop());

  async function connect(stage: Stage, via: Via): Promise<Client> {
    const client = await via({ single: server });
    stage.ends(() => client.end());
    return client;
  }

  describe.each(LIBRARIES)('%s', (_, via) => {
    it('[B38] [S6] is asked again with the whole script where it forgot it: every call succeeds at once', async () => {
      await using stage = new Stage();
      const { connection } = await connect(stage, via);
      const guard = stage.guard(connection);
      const admin = stage.admin(server);
      const troubles: unknown[] = [];
      guard.on('backend-unavailable', ({ cause }) => void troubles.push(cause));
      await admin.script('FLUSH');
      const lock = await guard.tryAcquire('k');
      await admin.script('FLUSH');
      await lock?.extend('1m');
      await admin.script('FLUSH');
      expect(await lock?.release()).toBe('released');
      await admin.script('FLUSH');
      expect(await guard.state.create('e', 1)).not.toBeNull();
      await admin.script('FLUSH');
      expect((await guard.state.get('e'))?.value).toBe(1);
      expect(troubles).toEqual([]);
    });

    it('[B55] [S6] says "out of memory" at once, and still renews and gives back what was taken before', async () => {
      await using stage = new Stage();
      const { connection } = await connect(stage, via);
      const guard = stage.guard(connection);
      const admin = stage.admin(server);
      const lock = await guard.acquire('before');
      await admin.config('SET', 'maxmemory', '1');
      stage.ends(() => admin.config('SET', 'maxmemory', '0'));
      const error = await failureOf(guard.tryAcquire('after'));
      expect(error.code).toBe('unavailable');
      expect(reasons(error)).toMatch(/OOM/);
      await lock.extend('1m');
      expect(await lock.release()).toBe('released');
      await admin.config('SET', 'maxmemory', '0');
      const again = await guard.tryAcquire('before');
      expect(again!.token).toBeGreaterThan(lock.token);
    });

    it('[B55] [L2] hands locks over that somebody waits for, alone and many at once, while the memory is used up', async () => {
      await using stage = new Stage();
      const holder = stage.guard((await connect(stage, via)).connection);
      const waiter = stage.guard((await connect(stage, via)).connection, { namespace: holder.namespace });
      const admin = stage.admin(server);
      const keys = ['lone', 'a', 'b', 'c'];
      const held = await Promise.all(keys.map((key) => holder.acquire(key, { ttl: '1m' })));
      const waiting = keys.map((key) => waiter.acquire(key, { ttl: '1m', wait: '20s' }));
      await until('all wait', async () =>
        (await Promise.all(keys.map((key) => holder.inspect(key)))).every((info) => info.waiting === 1),
      );
      await admin.config('SET', 'maxmemory', '1');
      stage.ends(() => admin.config('SET', 'maxmemory', '0'));
      await held[1]!.extend('2m');
      const [lone, ...others] = held;
      expect(await lone!.release()).toBe('released');
      expect(await Promise.all(others.map((lock) => lock.release()))).toEqual(others.map(() => 'released'));
      const got = await Promise.all(waiting);
      expect(got.map((lock, index) => lock.token > held[index]!.token)).toEqual(keys.map(() => true));
    });

    it('[B55] [S4] grants a claim what it holds already, when it asks again while the memory is used up', async () => {
      await using stage = new Stage();
      const { connection } = await connect(stage, via);
      const locks = redisLocks(connection);
      const session = systemRandom.id();
      const claim = (id: string): Claim => ({
        ...{ key: `held/${session}`, id, session, ttlMs: 20_000, ticketTtlMs: 6_000, wait: true },
        holder: { label: id },
      });
      const [granted] = await locks.acquire([claim('first')]);
      expect(await locks.acquire([claim('second')])).toMatchObject([{ status: 'queued' }]);
      const admin = stage.admin(server);
      await admin.config('SET', 'maxmemory', '1');
      stage.ends(() => admin.config('SET', 'maxmemory', '0'));
      expect(await locks.acquire([claim('first')])).toEqual([granted]);
    });

    it('[B55] [L2] keeps the places of those that wait while the memory is used up for longer than a ticket lasts', async () => {
      await using stage = new Stage();
      const holder = stage.guard((await connect(stage, via)).connection);
      const waiter = stage.guard((await connect(stage, via)).connection, { namespace: holder.namespace });
      const admin = stage.admin(server);
      const held = await holder.acquire('k', { ttl: '20s' });
      const waiting = ['first', 'second'].map((name) =>
        waiter.withLock('k', { ttl: '1s', wait: '20s' }, () => name),
      );
      await until('both wait', async () => (await holder.inspect('k')).waiting === 2);
      await admin.config('SET', 'maxmemory', '1');
      stage.ends(() => admin.config('SET', 'maxmemory', '0'));
      await sleep(3_500);
      expect((await holder.inspect('k')).waiting).toBe(2);
      expect(await held.release()).toBe('released');
      expect(await Promise.all(waiting)).toEqual(['first', 'second']);
      expect((await failureOf(holder.tryAcquire('new'))).code).toBe('unavailable');
    });

    it('[B55] [S6] says that snapshots fail (MISCONF), and goes on when they succeed', async () => {
      await using stage = new Stage();
      const { connection } = await connect(stage, via);
      const guard = stage.guard(connection);
      const admin = stage.admin(server);
      const [, dir] = (await admin.config('GET', 'dir')) as [string, string];
      const held = await guard.acquire('before', { ttl: '2s' });
      const gone = mkdtempSync(join(tmpdir(), 'guard-gone-'));
      await admin.config('SET', 'save', '3600 1');
      await admin.config('SET', 'dir', gone);
      rmSync(gone, { recursive: true });
      await admin.bgsave();
      await until('the snapshot has failed', async () =>
        (await admin.info('persistence')).includes('rdb_last_bgsave_status:err'),
      );
      expect(held.isHeld()).toBe(true);
      const given = held.release();
      const error = await failureOf(guard.tryAcquire('k'));
      // It may be held until the lease is over, and it may have been given back: nobody knows, least of all "lost".
      expect(await given).toBe('unknown');
      await admin.config('SET', 'dir', dir);
      await admin.config('SET', 'save', '');
      expect(error.code).toBe('unavailable');
      expect(reasons(error)).toMatch(/MISCONF/);
      expect(await guard.acquire('k', { wait: '5s' })).toMatchObject({ key: 'k' });
      expect((await guard.acquire('before', { wait: '5s' })).token).toBeGreaterThan(held.token);
      await admin.bgsave();
      await until('a snapshot has succeeded', async () =>
        (await admin.info('persistence')).includes('rdb_last_bgsave_status:ok'),
      );
    });

    it('[B55] [S6] says that a script keeps it busy (BUSY), and waits through it', async () => {
      await using stage = new Stage();
      const { connection } = await connect(stage, via);
      const guard = stage.guard(connection);
      const admin = stage.admin(server);
      const endless = stage.admin(server);
      const spinning = endless.eval('while true do end', 0).catch(() => undefined);
      await sleep(150);
      const error = await failureOf(guard.tryAcquire('k'));
      const waiting = guard.acquire('k', { wait: '10s' });
      await admin.script('KILL');
      await spinning;
      expect(error.code).toBe('unavailable');
      expect(reasons(error)).toMatch(/BUSY/);
      expect((await waiting).isHeld()).toBe(true);
    });

    it('[B40] [S6] says READONLY while it is a replica, renews nothing, and recovers by itself', async () => {
      await using stage = new Stage();
      const { connection } = await connect(stage, via);
      const guard = stage.guard(connection);
      const admin = stage.admin(server);
      const held = await guard.acquire('ro', { ttl: '1s' });
      const old = await guard.state.create('e', 1);
      await guard.state.set('e', 2);
      // Of nobody: what it has stays an old copy.
      await admin.replicaof('127.0.0.1', 1);
      stage.ends(() => admin.replicaof('NO', 'ONE'));
      const error = await failureOf(guard.acquire('ro2', { wait: '500ms' }));
      expect(error.code).toBe('unavailable');
      expect(reasons(error)).toMatch(/READONLY/);
      // Its copy is an old one: it is no ground for "lost", nor for "somebody was faster".
      const gone = { key: 'ro', claim: 'c', session: 's', token: 1n };
      await expect(redisLocks(connection).release([gone])).rejects.toThrow(/READONLY/);
      expect(reasons(await failureOf(guard.state.update('e', old!, 3)))).toMatch(/READONLY/);
      await until('the holder is told', () => held.signal.aborted, 2_000);
      await admin.replicaof('NO', 'ONE');
      expect((await guard.acquire('ro2', { wait: '5s' })).isHeld()).toBe(true);
    });

    it('[B40] [S6] gives no answer from the copy that it has as a replica: not busy, lost or free, nor granted or renewed', async () => {
      await using stage = new Stage();
      const locks = redisLocks((await connect(stage, via)).connection);
      const admin = stage.admin(server);
      const session = 'demoted';
      const claimOf = (id: string, ttlMs: number): Claim => {
        return {
          key: 'copy/k',
          id,
          session,
          ttlMs,
          wait: false,
          ticketTtlMs: 1_000,
          holder: { label: 'test' },
        };
      };
      const [granted] = await locks.acquire([claimOf('own', 60_000)]);
      const { token } = granted as { token: bigint };
      await locks.release([{ cancel: true, key: 'copy/gone', claim: 'dead', session, tombstoneMs: 60_000 }]);
      stage.ends(() => admin.flushall());
      await admin.replicaof('127.0.0.1', 1);
      stage.ends(() => admin.replicaof('NO', 'ONE'));
      const own = { key: 'copy/k', claim: 'own', session, token };
      const foreign = { ...own, claim: 'foreign' };
      const calls: Record<string, () => Promise<unknown>> = {
        // While a tombstone stands, the first look at a lock is no write.
        'a busy try': () => locks.acquire([claimOf('other', 1_000)]),
        'a re-sent acquire of a longer lease': () => locks.acquire([claimOf('own', 1_000)]),
        'a renewal of a longer lease': () => locks.renew([{ ...own, ttlMs: 1_000 }]),
        'a foreign renewal': () => locks.renew([{ ...foreign, ttlMs: 1_000 }]),
        'a foreign release': () => locks.release([foreign]),
        'a look at a free lock': () => locks.inspect({ keys: ['copy/never'] }),
      };
      for (const [what, call] of Object.entries(calls)) {
        const outcome = await call().then((answer) => answer, reasons);
        expect([what, outcome]).toEqual([what, expect.stringMatching(/READONLY/)]);
      }
    });

    it('[B55] [S6] waits through loading, and keeps its data', async () => {
      await using stage = new Stage();
      const { connection } = await connect(stage, via);
      const guard = stage.guard(connection);
      const admin = stage.admin(server);
      // With its ready check on, a client waits for the end of loading, and is never told of it.
      const asking = stage.admin(server, { enableReadyCheck: false });
      const lock = await guard.acquire('through', { ttl: '1m' });
      await admin.eval(`for i = 1, 4000 do redis.call('SET', 'load:' .. i, i) end`, 0);
      const restarted = server.restart({ keepData: true });
      await until('it is loading', () => asking.ping().then(() => false, reasonIsLoading));
      const next = guard.acquire('next', { wait: '20s' });
      expect((await next).isHeld()).toBe(true);
      await restarted;
      expect(await guard.tryAcquire('through')).toBeNull();
      expect(await lock.release()).toBe('released');
      await admin.flushall();
    });

    it('[B52] [S4] leaves nothing of a claim that was given up while the server was away', async () => {
      await using stage = new Stage();
      const { connection } = await connect(stage, via);
      const guard = stage.guard(connection);
      const admin = stage.admin(server);
      await server.kill();
      const error = await failureOf(guard.acquire('ghost', { ttl: '60s', wait: '500ms' }));
      expect(error.code).toBe('unavailable');
      await server.restart({ keepData: true });
      await until('the claim is taken back', async () => {
        const status = await guard.inspect('ghost').catch(() => undefined);
        return status?.held === false;
      });
      // Whatever the client kept for later has been carried out by now, and a second client sees nothing of it.
      await sleep(300);
      const second = await connect(stage, via);
      const other = stage.guard(second.connection, { namespace: guard.namespace });
      expect(await other.tryAcquire('ghost')).not.toBeNull();
      expect(await admin.ping()).toBe('PONG');
    });
  });

  it('[B38] forgets scripts under automatic pipelining too', async () => {
    await using stage = new Stage();
    const client = new Redis({ host: server.host, port: server.port, enableAutoPipelining: true });
    stage.ends(() => client.disconnect());
    const guard = stage.guard(fromIoredis(client));
    await stage.admin(server).script('FLUSH');
    const keys = Array.from({ length: 20 }, (_, n) => `k${n}`);
    const locks = await Promise.all(keys.map((key) => guard.acquire(key)));
    await stage.admin(server).script('FLUSH');
    expect(await Promise.all(locks.map((lock) => lock.release()))).toEqual(keys.map(() => 'released'));
  });

  it('[B57] leaves data of the application alone, whatever its names', async () => {
    await using stage = new Stage();
    const { connection } = await connect(stage, viaIoredis6);
    const guard = stage.guard(connection);
    const admin = stage.admin(server);
    await admin.set('orders', 'mine');
    await admin.hset('users', 'a', '1');
    await admin.rpush('jobs', 'first');
    for (const key of ['orders', 'users', 'jobs']) {
      const lock = await guard.tryAcquire(key);
      expect(await guard.state.create(key, 1)).not.toBeNull();
      expect(await lock?.release()).toBe('released');
    }
    expect(await admin.get('orders')).toBe('mine');
    expect(await admin.hgetall('users')).toEqual({ a: '1' });
    expect(await admin.lrange('jobs', 0, -1)).toEqual(['first']);
  });
});

function reasonIsLoading(error: unknown): boolean {
  return /LOADING/.test(reasons(error));
}
