/** The clients that applications hand in: every library and version, and the settings that they may have. */
import { Redis as Redis5 } from 'ioredis';
import { Redis } from 'ioredis6';
import { createClient as createClient5, createSentinel as createSentinel5 } from 'redis';
import { createClient } from 'redis6';
import { everydayUse, failureOf, reasons, until } from '@guard/testing';
import { startRedis, startRedisCluster, startRedisSentinel, type TestServer } from '@guard/testing/servers';
import { GuardError } from '@guard/core';
import { fromIoredis, fromNodeRedis, redisLocks, type RedisConnection } from '../src/index.js';
import {
  viaIoredis,
  viaIoredis6,
  viaNodeRedis,
  viaNodeRedis6,
  type Place,
  type Via,
} from './support/clients.js';
import { Stage } from './support/stage.js';
import { startTls } from './support/tls.js';

const silent = (): void => undefined;

/** Two guards in one namespace, on one connection or two. */
async function smoke(stage: Stage, one: RedisConnection, other: RedisConnection): Promise<void> {
  const first = stage.guard(one);
  await everydayUse(first, stage.guard(other, { namespace: first.namespace }));
}

describe('Every library and version', () => {
  const ALL: [string, Via][] = [
    ['ioredis 5', viaIoredis],
    ['ioredis 6', viaIoredis6],
    ['node-redis 5', viaNodeRedis],
    ['node-redis 6', viaNodeRedis6],
  ];

  async function both(via: Via, place: Place): Promise<void> {
    await using stage = new Stage();
    const clients = [await via(place), await via(place)] as const;
    stage.ends(() => clients.forEach((client) => client.end()));
    await smoke(stage, clients[0].connection, clients[1].connection);
  }

  it('works on one server', async () => {
    await using single = await startRedis({ appendOnly: false });
    for (const [, via] of ALL) await both(via, { single });
  });

  it('works on a cluster', async () => {
    await using cluster = await startRedisCluster({ appendOnly: false });
    for (const [, via] of ALL) await both(via, { cluster });
  });

  it('works behind Sentinel, but for the sentinel client of node-redis 5, which is refused', async () => {
    await using sentinel = await startRedisSentinel({ appendOnly: false });
    for (const [name, via] of ALL) if (name !== 'node-redis 5') await both(via, { sentinel });
    const sentinelRootNodes = sentinel.sentinels.map(({ host, port }) => ({ host, port }));
    const client = createSentinel5({ name: sentinel.masterName, sentinelRootNodes });
    expect(() => fromNodeRedis(client as never)).toThrow(/use the one of node-redis 6/);
  });
});

describe('Settings of the client', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startRedis({ appendOnly: false });
  });
  afterAll(() => server.stop());

  function ioredis(stage: Stage, options: object = {}, make: typeof Redis = Redis): Redis {
    const client = new make({ host: server.host, port: server.port, ...options });
    client.on('error', silent);
    stage.ends(() => client.disconnect());
    return client;
  }

  async function nodeRedis(stage: Stage, options: object = {}) {
    const client = createClient({ url: server.url, ...options });
    client.on('error', silent);
    await client.connect();
    stage.ends(() => client.destroy());
    return client;
  }

  it('a key prefix stays in force, for locks, entries, listings and inspections', async () => {
    await using stage = new Stage();
    const connections = [
      fromIoredis(ioredis(stage, { keyPrefix: 'app1:' })),
      fromNodeRedis(await nodeRedis(stage, { keyPrefix: 'app2:' })),
    ];
    for (const connection of connections) await smoke(stage, connection, connection);
    const [one, two] = connections.map((connection) => stage.guard(connection, { namespace: 'same' }));
    await using lock = await one!.acquire('k');
    await using other = await two!.acquire('k');
    expect(other.isHeld() && lock.isHeld()).toBe(true);
    const below = await redisLocks(connections[1]!).inspect({ prefix: 'same/', limit: 10 });
    expect(below.map(({ key }) => key)).toEqual(['same/lock/k']);
    const names = await stage.admin(server).keys('*');
    expect(
      names.filter((name) => !/^app[12]:guard:\{/.test(name) && !/^app[12]:guard:index$/.test(name)),
    ).toEqual([]);
    await stage.admin(server).flushall();
  });

  it('a database stays in force, and watchers hear nothing of another one', async () => {
    await using stage = new Stage();
    const first = stage.guard(fromIoredis(ioredis(stage, { db: 1 })), { namespace: 'same' });
    const second = stage.guard(fromNodeRedis(await nodeRedis(stage, { database: 2 })), { namespace: 'same' });
    await using lock = await first.acquire('k');
    await using other = await second.acquire('k');
    expect(lock.isHeld() && other.isHeld()).toBe(true);
    const seen: unknown[] = [];
    const watch = await second.state.watch('', (change) => void seen.push(change));
    await first.state.set('e', 1);
    await second.state.set('own', 1);
    await until('its own write is seen', () => seen.length > 0);
    expect(seen).toMatchObject([{ key: 'own' }]);
    await watch.close();
    expect(await stage.admin(server).keys('*')).toEqual([]);
  });

  it('replies of other types are read as they are meant', async () => {
    await using stage = new Stage();
    const texts = fromIoredis(ioredis(stage, { stringNumbers: true }));
    await smoke(stage, texts, texts);
    const bytes = fromNodeRedis((await nodeRedis(stage)).withTypeMapping({ 36: Buffer, 58: String }));
    await smoke(stage, bytes, bytes);
  });

  it('[L3] no offline queue, no ready check, lazy connections and no reconnecting are no obstacle to messages', async () => {
    await using stage = new Stage();
    for (const options of [
      { enableOfflineQueue: false, enableReadyCheck: false },
      { lazyConnect: true, maxRetriesPerRequest: 0 },
      { enableAutoPipelining: true, retryStrategy: () => null },
    ]) {
      const client = ioredis(stage, options);
      if (client.status !== 'wait') await until('it is connected', () => client.status === 'ready');
      await smoke(stage, fromIoredis(client), fromIoredis(client));
    }
    const client = await nodeRedis(stage, {
      disableOfflineQueue: true,
      socket: { ...portOf(server), reconnectStrategy: false },
    });
    await smoke(stage, fromNodeRedis(client), fromNodeRedis(client));
  });

  it('a user with the documented rights can do everything; one without them is told what is missing', async () => {
    await using stage = new Stage();
    const admin = stage.admin(server);
    const rights = [
      'resetchannels',
      '~guard:*',
      '&guard:*',
      '+@connection',
      '+@scripting',
      '+@read',
      '+@write',
      '+@pubsub',
      '+time',
      '+wait',
      '-@dangerous',
    ];
    await admin.call('ACL', 'SETUSER', 'guard', 'reset', 'on', '>secret', ...rights, '+info');
    await admin.call(
      'ACL',
      'SETUSER',
      'reader',
      'reset',
      'on',
      '>secret',
      '~*',
      '&*',
      '+@read',
      '+@connection',
      '+info',
    );
    const allowed = { username: 'guard', password: 'secret' };
    const five = new Redis5({ ...portOf(server), ...allowed });
    stage.ends(() => five.disconnect());
    await smoke(stage, fromIoredis(ioredis(stage, allowed)), fromIoredis(five));
    const client5 = createClient5({ url: server.url, ...allowed });
    client5.on('error', silent);
    await client5.connect();
    stage.ends(() => client5.destroy());
    await smoke(stage, fromNodeRedis(await nodeRedis(stage, allowed)), fromNodeRedis(client5));
    const reader = stage.guard(fromIoredis(ioredis(stage, { username: 'reader', password: 'secret' })));
    const error = await failureOf(reader.tryAcquire('k'));
    expect(error.code).toBe('unavailable');
    expect(reasons(error)).toMatch(/NOPERM.*evalsha/);
    const stranger = stage.guard(
      fromIoredis(ioredis(stage, { username: 'guard', password: 'wrong', maxRetriesPerRequest: 1 })),
    );
    expect((await failureOf(stranger.acquire('k', { wait: '600ms' }))).code).toBe('unavailable');
  });

  it('TLS stays in force, for messages too', async () => {
    await using stage = new Stage();
    const secure = await startTls(server);
    stage.ends(() => secure.close());
    const { port, ca } = secure;
    const one = ioredis(stage, { port, tls: { ca, servername: 'localhost' } });
    const two = await nodeRedis(stage, {
      url: `rediss://localhost:${port}`,
      socket: { tls: true, ca, host: '127.0.0.1', servername: 'localhost' },
    });
    await smoke(stage, fromIoredis(one), fromNodeRedis(two));
    expect(secure.accepted).toBeGreaterThanOrEqual(4);
  });

  it.each([
    ['no client', () => fromIoredis({} as never), /ioredis client or cluster/],
    ['no client', () => fromNodeRedis(undefined as never), /node-redis client/],
    ['a prefix with braces', () => fromIoredis(idle({ keyPrefix: '{app}:' })), /braces/],
    ['a prefix with braces', () => fromNodeRedis(createClient({ keyPrefix: '{app}:' })), /braces/],
    [
      'a client of replicas',
      () => fromIoredis(idle({ sentinels: [{}], name: 'm', role: 'slave' })),
      /replicas/,
    ],
    ['a read-only client', () => fromNodeRedis(createClient({ readonly: true })), /replicas/],
  ])('refuses %s when it is handed in, and says why', (_, make, why) => {
    let thrown: unknown;
    try {
      make();
    } catch (error) {
      thrown = error;
    }
    expect(GuardError.is(thrown, 'invalid-argument')).toBe(true);
    expect((thrown as Error).message).toMatch(why);
  });

  it.each([
    [{ acks: { replicas: 0 } }, /acks.replicas/],
    [{ acks: { replicas: 1, timeout: 5 } }, /no option 'timeout'/],
    [{ keepToken: -1 }, /keepToken/],
    [{ keep: 1 }, /no option 'keep'/],
  ])('refuses the options %j, and says why', (options, why) => {
    expect(() => redisLocks(fromIoredis(idle()), options as never)).toThrow(why);
  });
});

function portOf({ host, port }: TestServer): { host: string; port: number } {
  return { host, port };
}

/** A client that never connects. */
function idle(options: object = {}): Redis {
  return new Redis({ lazyConnect: true, ...options });
}
