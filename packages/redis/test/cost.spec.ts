/** What locks cost the server, counted by the server itself. */
import { until } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
import type { Claim, Guard } from '@guard/core';
import { redisLocks } from '../src/index.js';
import { viaIoredis6 } from './support/clients.js';
import { Stage } from './support/stage.js';

describe('The cost at the server', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startRedis({ appendOnly: false });
  });
  afterAll(() => server.stop());

  async function guardOf(stage: Stage, namespace?: string): Promise<Guard> {
    const client = await viaIoredis6({ single: server });
    stage.ends(() => client.end());
    return stage.guard(client.connection, namespace === undefined ? {} : { namespace });
  }

  /** Commands that clients sent, and messages that scripts published, while `act` ran. */
  async function counted(act: () => Promise<void>): Promise<{ commands: number; messages: number }> {
    await using stage = new Stage();
    const admin = stage.admin(server);
    await admin.config('RESETSTAT');
    await act();
    const stats = await admin.info('commandstats');
    const calls = (name: string): number =>
      Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
    return {
      commands: calls('evalsha') + calls('eval') + calls('script\\|load') + calls('wait'),
      messages: calls('publish'),
    };
  }

  it('[C1] a pair is two commands and no message', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage);
    await guard.withLock('warm', () => undefined);
    const { commands, messages } = await counted(async () => {
      for (let n = 0; n < 50; n += 1) await guard.withLock(`k${n}`, () => undefined);
    });
    expect({ commands, messages }).toEqual({ commands: 100, messages: 0 });
  });

  it('[C4] a hand-over is at most 2.1 commands and 1.05 messages', async () => {
    await using stage = new Stage();
    const guards = [await guardOf(stage)];
    for (let n = 1; n < 4; n += 1) guards.push(await guardOf(stage, guards[0]!.namespace));
    await Promise.all(guards.map((guard) => guard.withLock('warm', () => undefined)));
    await Promise.all(guards.map((guard) => guard.withLock('one', { wait: '20s' }, () => sleepTurn())));
    const rounds = 40;
    const { commands, messages } = await counted(async () => {
      const loop = async (guard: Guard): Promise<void> => {
        for (let n = 0; n < rounds; n += 1) await guard.withLock('one', { wait: '30s' }, () => sleepTurn());
      };
      await Promise.all(guards.map(loop));
    });
    const handOvers = rounds * guards.length;
    expect(commands / handOvers).toBeLessThanOrEqual(2.1);
    expect(messages / handOvers).toBeLessThanOrEqual(1.05);
    expect(messages / handOvers).toBeGreaterThan(0.9);
  });

  it('[S4] a tombstone refuses its claim, alone and among others, and no trace of it is left when it is over', async () => {
    await using stage = new Stage();
    const client = await viaIoredis6({ single: server });
    stage.ends(() => client.end());
    const locks = redisLocks(client.connection);
    const admin = stage.admin(server);
    const session = 'tombstones';
    const claim = (key: string, id: string): Claim => {
      return { key, id, session, ttlMs: 5_000, wait: false, ticketTtlMs: 5_000, holder: { label: 'test' } };
    };
    const statuses = async (...claims: readonly Claim[]): Promise<readonly string[]> =>
      (await locks.acquire(claims)).map(({ status }) => status);
    await locks.release([{ cancel: true, key: 't/a', claim: 'dead', session, tombstoneMs: 1_500 }]);
    expect(await statuses(claim('t/a', 'dead'))).toEqual(['cancelled']);
    expect(await statuses(claim('t/a', 'dead'), claim('t/b', 'other'))).toEqual(['cancelled', 'granted']);
    expect(await statuses(claim('t/a', 'another'))).toEqual(['granted']);
    expect(await statuses(claim('t/a', 'third'))).toEqual(['busy']);
    const token = await admin.get('guard:token');
    expect(token).toMatch(/^\d{38}$/);
    // Whoever is told by the mark to look for the list finds it.
    expect((await admin.pexpiretime('guard:given-up')) * 1_000).toBeGreaterThanOrEqual(
      Number(token!.slice(19)),
    );
    await until('it is over', async () => (await admin.exists('guard:given-up')) === 0, 5_000);
    expect(await statuses(claim('t/c', 'dead'))).toEqual(['granted']);
    expect(await admin.get('guard:token')).toMatch(/^\d{19}$/);
  });

  it('[C2] operations at the same time share commands', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage);
    await guard.withLock('warm', () => undefined);
    const keys = Array.from({ length: 640 }, (_, n) => `k${n}`);
    const { commands } = await counted(async () => {
      await Promise.all(keys.map((key) => guard.withLock(key, () => undefined)));
    });
    expect(commands).toBeLessThan(640 / 4);
  });

  it('[C3] renewing 10,000 locks takes a command for 256 of them', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage);
    const lost: string[] = [];
    guard.on('lock-lost', ({ key }) => void lost.push(key));
    const keys = Array.from({ length: 10_000 }, (_, n) => `held${n}`);
    const locks = await Promise.all(
      keys.map((key) => guard.acquire(key, { ttl: '20s', renew: '2500ms', wait: '20s' })),
    );
    const admin = stage.admin(server);
    const before = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1]);
    await until('every lock was renewed', () => locks.every((lock) => lock.remainingMs() > 0), 1_000);
    const started = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 5_100));
    const after = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1]);
    const periods = Math.ceil((performance.now() - started) / 2_500);
    expect(after - before).toBeGreaterThanOrEqual(Math.ceil(10_000 / 256));
    expect(after - before).toBeLessThanOrEqual(periods * 100);
    expect(lost).toEqual([]);
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('[B98] five hundred waits of a process share one connection, which leaves with the guard', async () => {
    await using stage = new Stage();
    const holder = await guardOf(stage);
    const client = await viaIoredis6({ single: server });
    const admin = stage.admin(server);
    const connections = async (): Promise<number> =>
      ((await admin.call('CLIENT', 'LIST')) as string).trim().split('\n').length;
    const before = await connections();
    const waiter = stage.guard(client.connection, { namespace: holder.namespace });
    const keys = Array.from({ length: 500 }, (_, n) => `s${n}`);
    const held = await Promise.all(keys.map((key) => holder.acquire(key)));
    const waiting = keys.map((key) => waiter.acquire(key, { wait: '30s' }));
    await until('all wait', async () => (await holder.inspect('s499')).waiting === 1);
    await until(
      'the stream is open',
      async () => ((await admin.call('PUBSUB', 'CHANNELS')) as string[]).length === 1,
    );
    expect(await connections()).toBe(before + 1);
    await Promise.all(held.map((lock) => lock.release()));
    await Promise.all((await Promise.all(waiting)).map((lock) => lock.release()));
    await waiter.close();
    await until('it is gone', async () => (await connections()) === before);
    expect(await admin.call('PUBSUB', 'CHANNELS')).toEqual([]);
    client.end();
  });
});

function sleepTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2));
}
