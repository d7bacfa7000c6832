/** Behind Sentinel: what a fail-over does to locks, and what waiting for replicas changes. */
import type { Guard, Lock } from '@guard/core';
import { failureOf, reasons, until } from '@guard/testing';
import { startRedisSentinel, type RedisSentinel, type TestServer } from '@guard/testing/servers';
import { redisLocks, type RedisLocksOptions } from '../src/index.js';
import { fromIoredis } from '../src/ioredis.js';
import { viaIoredis6, viaNodeRedis6, type Via } from './support/clients.js';
import { Stage } from './support/stage.js';

const LIBRARIES: [string, Via][] = [
  ['ioredis', viaIoredis6],
  ['node-redis', viaNodeRedis6],
];

describe.each(LIBRARIES)('Behind Sentinel, %s', (_, via) => {
  let sentinel: RedisSentinel;
  beforeEach(async () => {
    sentinel = await startRedisSentinel({ appendOnly: false });
  });
  afterEach(() => sentinel.stop());

  async function guardOf(stage: Stage, terms: Parameters<Stage['guard']>[1] = {}): Promise<Guard> {
    const client = await via({ sentinel });
    stage.ends(() => client.end());
    return stage.guard(client.connection, terms);
  }

  async function roles(): Promise<{ master: TestServer; replica: TestServer }> {
    const port = await sentinel.masterPort();
    const master = sentinel.servers.find((server) => server.port === port)!;
    return { master, replica: sentinel.servers.find((server) => server !== master)! };
  }

  it('[B40] [B103] recovers by itself after a fail-over that was asked for; locks, waiters and state go on', async () => {
    await using stage = new Stage();
    const first = await guardOf(stage);
    const second = await guardOf(stage, { namespace: first.namespace });
    const held = await first.acquire('held', { ttl: '5s' });
    const waiting = second.acquire('held', { ttl: '5s', wait: '20s' });
    await first.state.set('e', 1);
    const { master, replica } = await roles();
    // What no replica has yet is lost with a fail-over, and this is about what is not.
    await until('the replica has it', async () => (await stage.admin(master).wait(1, 500)) === 1, 10_000);
    await stage.admin(sentinel.sentinels[0]!).call('SENTINEL', 'FAILOVER', sentinel.masterName);
    const faults: string[] = [];
    const started = performance.now();
    const atNewMaster = redisLocks(fromIoredis(stage.admin(replica)));
    let newMasterSince: number | undefined;
    let after: Lock | undefined;
    while (after === undefined) {
      const port = await sentinel.masterPort();
      if (port === replica.port) newMasterSince ??= performance.now();
      const lock = await first.acquire('other', { wait: '1s' }).catch((error: unknown) => {
        faults.push(reasons(error));
      });
      const keys = [`${first.namespace}/lock/other`];
      const isThere = async (): Promise<boolean> => (await atNewMaster.inspect({ keys }))[0]!.held;
      if (lock && newMasterSince !== undefined && (await isThere())) after = lock;
      else await lock?.release();
      if (performance.now() - started > 15_000) throw new Error(`no recovery: ${faults.join('\n')}`);
    }
    expect(performance.now() - newMasterSince!).toBeLessThan(5_000);
    expect(faults.filter((fault) => /busy/i.test(fault))).toEqual([]);
    // Renewed on the new master, or told; either way the waiter gets it.
    if (held.isHeld()) expect(await held.release()).not.toBe('lost');
    expect((await waiting).token).toBeGreaterThan(held.token);
    expect((await second.state.get('e'))?.value).toBe(1);
  });

  it('[L2] [C4] locks that many wait for are handed over at once where replicas confirm them, by a question each', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage, { locks: { acks: { replicas: 1, timeoutMs: '5s' } } });
    const { master } = await roles();
    const admin = stage.admin(master);
    const asked = async (): Promise<number> =>
      Number(/cmdstat_wait:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0);
    const waits: number[] = [];
    let askedMost = 0;
    for (let round = 0; round < 8; round += 1) {
      const keys = Array.from({ length: 48 }, (_each, n) => `${round}-${n}`);
      const held = await Promise.all(keys.map((key) => guard.acquire(key, { ttl: '6s' })));
      const next = keys.map((key) => guard.acquire(key, { ttl: '6s', wait: '20s' }));
      await until('all wait', async () => {
        const { waiting } = await guard.inspect(keys.at(-1)!);
        return waiting === 1;
      });
      const before = await asked();
      await Promise.all(
        held.map(async (lock, n) => {
          // Over some milliseconds, so that messages come while questions are on their way.
          await new Promise((resolve) => setTimeout(resolve, n % 6));
          const releasedAtMs = performance.now();
          await lock.release();
          const other = await next[n]!;
          waits.push(performance.now() - releasedAtMs);
          await other.release();
        }),
      );
      askedMost = Math.max(askedMost, (await asked()) - before);
    }
    // Who is forgotten waits for the next refresh of its ticket, after two seconds.
    expect(waits.filter((waitMs) => waitMs > 1_500)).toEqual([]);
    // Questions share requests: never more of these than there are hand-overs.
    expect(askedMost).toBeLessThanOrEqual(48);
  }, 90_000);

  it('[B41] [S1-assumption] [S2] a lock that no replica had is told of with the next renewal, and the next token is larger', async () => {
    await using stage = new Stage();
    const first = await guardOf(stage);
    const second = await guardOf(stage, { namespace: first.namespace });
    const confirmed = await guardOf(stage, {
      namespace: first.namespace,
      locks: { acks: { replicas: 1, timeoutMs: '100ms' } },
    });
    const safe = await confirmed.acquire('safe');
    expect(safe.isHeld()).toBe(true);
    const { master, replica } = await roles();
    await replica.pause();
    // What is on its way to a stopped process arrives when it goes on; so the way is closed.
    await stage.admin(master).call('CLIENT', 'KILL', 'TYPE', 'replica');
    const old = await first.acquire('rep', { ttl: '3s' });
    // With confirmations the same step fails, says why, and leaves nothing behind.
    const refused = await failureOf(confirmed.acquire('conf', { wait: '400ms' }));
    expect(refused.code).toBe('unavailable');
    expect(reasons(refused)).toMatch(/0 of 1 replicas confirmed within 100 ms/);
    // The last try may have been on its way when the wait was over: it is undone when it lands.
    await until('nothing is left behind', async () => !(await first.inspect('conf')).held);
    await master.kill();
    await replica.resume();
    await until('the replica is master', async () => (await sentinel.masterPort()) === replica.port);
    const next = await second.acquire('rep', { ttl: '10s', wait: '15s' });
    expect(next.token).toBeGreaterThan(old.token);
    await until('the old holder is told', () => old.signal.aborted, 5_000);
    // What a replica had confirmed is still held by its holder after the fail-over.
    expect((await second.inspect('safe')).token).toBe(safe.token);
  });
});

describe('A master that was stopped while its replica took over, and goes on with a request that had reached it', () => {
  /** What comes of that request, and the guard that holds the lock at the new master. */
  async function play(stage: Stage, locks: RedisLocksOptions) {
    const sentinel = await startRedisSentinel({ appendOnly: false });
    stage.ends(() => sentinel.stop());
    const guardOf = async (terms: Parameters<Stage['guard']>[1]): Promise<Guard> => {
      const client = await viaIoredis6({ sentinel });
      stage.ends(() => client.end());
      return stage.guard(client.connection, terms);
    };
    const first = await guardOf({ locks });
    const port = await sentinel.masterPort();
    const stopped = sentinel.servers.find((server) => server.port === port)!;
    await stopped.pause();
    const asked = first.acquire('k', { ttl: '6s', wait: '6s' });
    asked.catch(() => undefined);
    await until('its replica is master', async () => (await sentinel.masterPort()) !== port);
    const second = await guardOf({ namespace: first.namespace });
    const held = await second.acquire('k', { ttl: '20s', wait: '5s' });
    await stopped.resume();
    return { asked, second, held };
  }

  it('[S1-assumption] [S2] grants with the larger token, and the fence goes by that', async () => {
    await using stage = new Stage();
    const { asked, second, held } = await play(stage, {});
    const late = await asked;
    expect(late.token).toBeGreaterThan(held.token);
    await second.state.set('e', 1, { lock: late });
    expect((await failureOf(second.state.set('e', 2, { lock: held }))).code).toBe('stale-token');
    await until('it is told', () => late.signal.aborted, 15_000);
    expect(held.isHeld()).toBe(true);
  });

  it('[S1] [S2] grants nothing that counts where replicas have to confirm', async () => {
    await using stage = new Stage();
    const { asked, second, held } = await play(stage, { acks: { replicas: 1 } });
    expect((await failureOf(asked)).code).toBe('lock-busy');
    expect(held.isHeld()).toBe(true);
    await second.state.set('e', 2, { lock: held });
  });
});
