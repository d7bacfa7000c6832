/** The clients that applications hand in: every library and version, and the settings that they may have. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis';
import { Cluster, Redis } from 'ioredis6';
import {
  createClient as createClient5,
  createClientPool as createClientPool5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from 'redis';
import { createClient, createClientPool, createCluster, createSentinel } from 'redis6';
import { everydayUse, failureOf, reasons, until } from '@guard/testing';
import { startRedis, startRedisCluster, startRedisSentinel, type TestServer } from '@guard/testing/servers';
import { createGuard, GuardError } from '@guard/core';
import { redisLocks, redisState, type RedisConnection } from '../src/index.js';
import { fromIoredis } from '../src/ioredis.js';
import { fromNodeRedis } from '../src/node-redis.js';
import { RIGHTS as documentedRights } from '../src/rights.js';
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

  it('works on a cluster, also where a watch or a list is the first use of a client that connects when it is used', async () => {
    await using cluster = await startRedisCluster({ appendOnly: false });
    await using stage = new Stage();
    for (const [, via] of ALL) await both(via, { cluster });
    for (const make of [Cluster5, Cluster]) {
      const client = new make(cluster.nodes.map(portOf), { lazyConnect: true });
      client.on('error', silent);
      stage.ends(() => client.disconnect());
      const guard = stage.guard(fromIoredis(client));
      const heard: unknown[] = [];
      const watch = await guard.state.watch('', ({ key }) => void heard.push(key));
      await guard.state.set('e', 1);
      await until('it is heard', () => heard.includes('e'));
      await watch.close();
      await guard.acquire('listed');
      const second = new make(cluster.nodes.map(portOf), { lazyConnect: true });
      stage.ends(() => second.disconnect());
      const below = { prefix: `${guard.namespace}/`, limit: 10 };
      expect(await redisLocks(fromIoredis(second)).inspect(below)).toHaveLength(1);
    }
  });

  it('works behind Sentinel, but for the sentinel client of node-redis 5, which is refused', async () => {
    await using sentinel = await startRedisSentinel({ appendOnly: false });
    for (const [name, via] of ALL) if (name !== 'node-redis 5') await both(via, { sentinel });
    const sentinelRootNodes = sentinel.sentinels.map(({ host, port }) => ({ host, port }));
    const client = createSentinel5({ name: sentinel.masterName, sentinelRootNodes });
    expect(() => fromNodeRedis(client as never)).toThrow(/use the one of node-redis 6/);
  });
});

it('[S1] clusters whose reads go to replicas send every script to masters, whether it writes or not', async () => {
  await using cluster = await startRedisCluster({ appendOnly: false });
  await using stage = new Stage();
  for (const make of [Cluster5, Cluster]) {
    const client = new make(cluster.nodes.map(portOf), { scaleReads: 'slave' });
    client.on('error', silent);
    stage.ends(() => client.disconnect());
    await withAndWithoutAcks(stage, fromIoredis(client));
  }
  const masters = await cluster.masters();
  for (const node of cluster.nodes) {
    const ran = /cmdstat_eval/.test(await stage.admin(node).info('commandstats'));
    expect([node.port, ran]).toEqual([node.port, masters.includes(node)]);
  }
});

async function withAndWithoutAcks(stage: Stage, connection: RedisConnection): Promise<void> {
  await smoke(stage, connection, connection);
  const locks = { acks: { replicas: 1 } };
  const first = stage.guard(connection, { locks });
  await everydayUse(first, stage.guard(connection, { locks, namespace: first.namespace }));
}

describe('The name of a backend', () => {
  const nameOf = (connection: RedisConnection): string => {
    expect(redisState(connection).name).toBe(redisLocks(connection).name);
    return redisLocks(connection).name;
  };
  const ioredisCluster = (seeds: ConstructorParameters<typeof Cluster>[0]): Cluster =>
    new Cluster(seeds, { lazyConnect: true });
  const nodeRedisCluster = (...rootNodes: object[]) => createCluster({ rootNodes });

  it('tells clusters apart by the addresses that clients begin with, in any order and form, without credentials', () => {
    const one = 'redis://a:7000,b:7001/0/';
    expect(nameOf(fromIoredis(ioredisCluster(['redis://me:geheim@b:7001', { host: 'a', port: 7000 }])))).toBe(
      one,
    );
    const urls = [{ url: 'redis://me:geheim@a:7000' }, { socket: { host: 'b', port: 7001 } }];
    expect(nameOf(fromNodeRedis(nodeRedisCluster(...urls)))).toBe(one);
    expect(nameOf(fromIoredis(ioredisCluster([7002, 'c:7000', 'c'])))).toBe(
      'redis://c:6379,c:7000,localhost:7002/0/',
    );
  });

  it('is the address, the database and the key prefix elsewhere, and the master behind Sentinel', () => {
    expect(nameOf(fromIoredis(idle({ host: 'h', db: 3, keyPrefix: 'app:' })))).toBe('redis://h:6379/3/app:');
    expect(nameOf(fromNodeRedis(createClient({ url: 'redis://me:geheim@h:6380/3' })))).toBe(
      'redis://h:6380/3/',
    );
    const sentinels = [{ host: 's', port: 1 }];
    expect(nameOf(fromIoredis(idle({ sentinels, name: 'mymaster' })))).toBe('redis://mymaster/0/');
    expect(nameOf(fromIoredis(idle({ host: 'h', name: 'of no master' })))).toBe('redis://h:6379/0/');
  });

  it('is made of the options wherever a library keeps them: of a sentinel’s own clients, and not of another database of a cluster', () => {
    const behind = (nodeClientOptions: object, options: object = {}) =>
      nameOf(fromNodeRedis(sentinelOf(nodeClientOptions, options)));
    expect(behind({ database: 1 })).toBe('redis://sentinel/1/');
    expect(behind({ database: 2 })).toBe('redis://sentinel/2/');
    expect(behind({ keyPrefix: 'in:' }, { keyPrefix: 'out:' })).toBe('redis://sentinel/0/in:out:');
    expect(nameOf(fromNodeRedis(sentinelOf({ database: 3 }).withTypeMapping({})))).toBe(
      'redis://sentinel/3/',
    );
    const cluster = new Cluster([7000], { lazyConnect: true, redisOptions: { db: 2 } });
    expect(nameOf(fromIoredis(cluster))).toBe('redis://localhost:7000/0/');
  });

  it('is what the application says, so that nodes with different addresses can say the same', () => {
    const name = 'orders';
    for (const connection of [
      fromIoredis(ioredisCluster([7000]), { name }),
      fromNodeRedis(nodeRedisCluster({ url: 'redis://other:7000' }), { name }),
      fromIoredis(idle(), { name }),
    ]) {
      expect(nameOf(connection)).toBe('redis://orders/0/');
    }
    const longest = 'ä'.repeat(256);
    expect(nameOf(fromIoredis(idle(), { name: longest }))).toBe(`redis://${longest}/0/`);
    for (const bad of ['', 'a\0b', '\ud800', `${longest}b`, 5 as never]) {
      expect(() => fromIoredis(idle(), { name: bad })).toThrow(/name must be well-formed text of 1 to 512/);
      expect(() => fromNodeRedis(createClient(), { name: bad })).toThrow(/name must be/);
    }
    expect(() => fromNodeRedis(createClient(), { place: 'x' } as never)).toThrow(/no option 'place'/);
  });
});

describe('A cluster’s users', () => {
  it('[S6] can do everything with the documented rights, and are told where they may not ask for the cluster', async () => {
    await using cluster = await startRedisCluster({ appendOnly: false });
    await using stage = new Stage();
    for (const node of cluster.nodes) {
      await setUser(stage.admin(node), 'guard', ...RIGHTS, '+cluster');
      await setUser(stage.admin(node), 'blind', ...RIGHTS);
    }
    const seeds = cluster.nodes.map(portOf);
    const as = (username: string): Cluster => {
      const client = new Cluster(seeds, { redisOptions: { username, password: 'secret' } });
      client.on('error', silent);
      stage.ends(() => client.disconnect());
      return client;
    };
    const nodeRedis = createCluster({
      rootNodes: cluster.nodes.map(({ url }) => ({ url })),
      defaults: { username: 'guard', password: 'secret' },
    });
    nodeRedis.on('error', silent);
    await nodeRedis.connect();
    stage.ends(() => nodeRedis.destroy());
    await smoke(stage, fromIoredis(as('guard')), fromNodeRedis(nodeRedis));
    const error = await failureOf(stage.guard(fromIoredis(as('blind'))).acquire('k', { wait: '3s' }));
    expect(error.code).toBe('unavailable');
    expect(reasons(error)).toMatch(/NOPERM.*cluster/);
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
    expect(names.filter((name) => !/^app[12]:guard:(\{\d+\}:.*|index|token|given-up)$/.test(name))).toEqual(
      [],
    );
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

  it('replies of other types are read as they are meant from the clients behind a sentinel and a cluster too', async () => {
    await using stage = new Stage();
    // The types of the libraries know them at the top only; the clients behind it do as they are told all the same.
    const inside: object = { database: 1, keyPrefix: 'in:' };
    const mapped: object = { commandOptions: { typeMapping: { 36: Buffer, 58: String } } };
    await using cluster = await startRedisCluster({ appendOnly: false });
    const options = { rootNodes: cluster.nodes.map(({ url }) => ({ url })), defaults: mapped };
    for (const client of [createCluster(options), createCluster5(options)]) {
      client.on('error', silent);
      await client.connect();
      stage.ends(() => client.destroy());
      await withAndWithoutAcks(stage, fromNodeRedis(client));
    }
    await using sentinel = await startRedisSentinel({ appendOnly: false });
    const client = createSentinel({
      name: sentinel.masterName,
      sentinelRootNodes: sentinel.sentinels.map(portOf),
      nodeClientOptions: { ...mapped, ...inside },
      keyPrefix: 'out:',
    });
    client.on('error', silent);
    await client.connect();
    stage.ends(() => client.destroy());
    await withAndWithoutAcks(stage, fromNodeRedis(client));
    const [below] = await redisLocks(fromNodeRedis(client)).inspect({ keys: ['nothing'] });
    expect(below).toMatchObject({ held: false });
    const admin = stage.admin({ host: '127.0.0.1', port: await sentinel.masterPort() });
    expect(await admin.keys('*')).toEqual([]);
    await admin.select(1);
    expect((await admin.keys('*')).filter((name) => !name.startsWith('in:out:guard:'))).toEqual([]);
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
    await setUser(admin, 'guard', ...RIGHTS);
    const allowed = { username: 'guard', password: 'secret' };
    const five = new Redis5({ ...portOf(server), ...allowed });
    stage.ends(() => five.disconnect());
    await smoke(stage, fromIoredis(ioredis(stage, allowed)), fromIoredis(five));
    const client5 = createClient5({ url: server.url, ...allowed });
    client5.on('error', silent);
    await client5.connect();
    stage.ends(() => client5.destroy());
    await smoke(stage, fromNodeRedis(await nodeRedis(stage, allowed)), fromNodeRedis(client5));
    const stranger = stage.guard(
      fromIoredis(ioredis(stage, { username: 'guard', password: 'wrong', maxRetriesPerRequest: 1 })),
    );
    expect((await failureOf(stranger.acquire('k', { wait: '600ms' }))).code).toBe('unavailable');
  });

  it.each([
    ['scripts', ['~*', '&*', '+@read', '+@connection', '+info'], /NOPERM.*evalsha/],
    ['the keys of Guard', ['~app:*', '&*', '+@all'], /NOPERM.*key/i],
  ])(
    '[S6] a user without the right to %s is told so by the first call, never that a lock is busy',
    async (_, rights, why) => {
      await using stage = new Stage();
      await setUser(stage.admin(server), 'limited', ...rights);
      const login = { username: 'limited', password: 'secret' };
      const connections = [fromIoredis(ioredis(stage, login)), fromNodeRedis(await nodeRedis(stage, login))];
      const guards = connections.map((connection) => stage.guard(connection));
      const calls = guards.flatMap((guard) => [guard.tryAcquire('k'), guard.state.get('k')]);
      for (const error of await Promise.all(calls.map(failureOf))) {
        expect(error.code).toBe('unavailable');
        expect(reasons(error)).toMatch(why);
      }
    },
  );

  it.each(['+@read', '+@write', '+time'])(
    '[S6] a right that a script lacks is told by the first call, with the rights that are needed: %s',
    async (missing) => {
      await using stage = new Stage();
      await setUser(stage.admin(server), 'lacking', ...RIGHTS.filter((right) => right !== missing));
      const login = { username: 'lacking', password: 'secret' };
      for (const client of [
        fromIoredis(ioredis(stage, login)),
        fromNodeRedis(await nodeRedis(stage, login)),
      ]) {
        for (const options of [{}, { acks: { replicas: 1 } }]) {
          const locks = redisLocks(client, options);
          const asked = locks.acquire([
            {
              key: 'n/lock/k',
              id: 'c',
              session: 's',
              ttlMs: 1_000,
              wait: false,
              ticketTtlMs: 1_000,
              holder: { label: 'test' },
            },
          ]);
          await expect(asked).rejects.toThrow(/NOPERM|The user executing the script can't/);
          await expect(asked).rejects.toThrow(documentedRights);
        }
      }
    },
  );

  it('[S6] the rights that are told are those of the documentation', async () => {
    const page = await readFile(join(__dirname, '../../../docs/backend/redis.md'), 'utf8');
    expect(page).toContain(`\n${documentedRights}\n`);
  });

  it('[S6] a user without the right to channels waits without messages, and is told why', async () => {
    await using stage = new Stage();
    await setUser(stage.admin(server), 'deaf', 'resetchannels', '~*', '+@all');
    const guard = stage.guard(fromIoredis(ioredis(stage, { username: 'deaf', password: 'secret' })));
    const troubles: string[] = [];
    guard.on('backend-unavailable', ({ cause }) => void troubles.push(reasons(cause)));
    guard.on('error', ({ error }) => void troubles.push(reasons(error)));
    const error = await failureOf(guard.state.watch('', () => undefined));
    expect(error.code).toBe('unavailable');
    expect(reasons(error)).toMatch(/NOPERM.*channel/i);
    const held = await guard.acquire('k');
    const waiting = guard.acquire('k', { ttl: '2s', wait: '20s' });
    await until('it waits', async () => (await guard.inspect('k')).waiting === 1);
    await held.release();
    expect((await waiting).isHeld()).toBe(true);
    expect(troubles.join()).toMatch(/NOPERM/);
  });

  it.each<[string, typeof Redis]>([
    ['ioredis 5', Redis5 as unknown as typeof Redis],
    ['ioredis 6', Redis],
  ])('[S6] a watch that cannot open its connection says why: %s', async (_, make) => {
    await using stage = new Stage();
    const admin = stage.admin(server);
    await setUser(admin, 'gone', '~*', '&*', '+@all');
    const client = ioredis(stage, { username: 'gone', password: 'secret' }, make);
    await client.ping();
    await admin.acl('SETUSER', 'gone', 'resetpass', '>changed');
    const state = redisState(fromIoredis(client));
    stage.ends(() => state.close());
    await expect(state.watch('', silent)).rejects.toThrow(/WRONGPASS/);
  });

  it('[S6] a user who may not publish hands over and writes as anybody does, and is told once what is missing', async () => {
    await using stage = new Stage();
    await setUser(stage.admin(server), 'mute', 'resetchannels', '~*', '+@all');
    const login = { username: 'mute', password: 'secret' };
    for (const client of [fromIoredis(ioredis(stage, login)), fromNodeRedis(await nodeRedis(stage, login))]) {
      const mute = stage.guard(client);
      const other = stage.guard(fromIoredis(ioredis(stage)), { namespace: mute.namespace });
      const troubles: string[] = [];
      mute.on('backend-unavailable', ({ cause }) => void troubles.push(reasons(cause)));
      for (let round = 0; round < 3; round += 1) {
        const held = await mute.acquire('k');
        const waiting = other.acquire('k', { ttl: '900ms', wait: '20s' });
        await until('it waits', async () => (await mute.inspect('k')).waiting === 1);
        expect(await held.release()).toBe('released');
        expect(await (await waiting).release()).toBe('released');
        expect(await mute.state.set('e', round)).toBeDefined();
      }
      expect(await mute.state.create('e', 1)).toBeNull();
      expect(troubles).toEqual([expect.stringMatching(/give the user the channels 'guard:\*'/)]);
    }
  });

  it('[L3] a client that can carry out no script is refused, or told by its first call at once: it subscribes, monitors or was never connected', async () => {
    await using stage = new Stage();
    for (const make of [Redis, Redis5]) {
      const client = ioredis(stage, { protocol: 2 }, make as typeof Redis);
      const early = fromIoredis(client);
      await client.subscribe('c');
      expect(() => fromIoredis(client)).toThrow(/subscriber mode/);
      await rejectsAtOnce(stage, early, /subscriber mode: give Guard a client/);
      const monitor = await ioredis(stage, {}, make as typeof Redis).monitor();
      stage.ends(() => monitor.disconnect());
      expect(() => fromIoredis(monitor)).toThrow(/monitor mode/);
    }
    const subscriber = await nodeRedis(stage, { RESP: 2 });
    await subscriber.subscribe('c', silent);
    expect(() => fromNodeRedis(subscriber)).toThrow(/subscriber mode/);
    const subscriber5 = createClient5({ url: server.url });
    await subscriber5.connect();
    stage.ends(() => subscriber5.destroy());
    await subscriber5.subscribe('c', silent);
    await rejectsAtOnce(stage, fromNodeRedis(subscriber5), /subscriber mode/);
    const monitor = await nodeRedis(stage);
    await monitor.monitor(silent);
    await rejectsAtOnce(stage, fromNodeRedis(monitor), /monitor mode/);
    const rootNodes = [{ url: server.url }];
    for (const client of [createClient5(), createClient(), createCluster5({ rootNodes }), sentinelOf({})]) {
      await rejectsAtOnce(stage, fromNodeRedis(client), /await client\.connect\(\)/);
    }
    const destroyed = await nodeRedis(stage);
    destroyed.destroy();
    await rejectsAtOnce(stage, fromNodeRedis(destroyed), /not connected/);
  });

  it('a client of node-redis that is connected after it was handed in works', async () => {
    await using stage = new Stage();
    for (const client of [createClient({ url: server.url }), createClient5({ url: server.url })]) {
      client.on('error', silent);
      const guard = stage.guard(fromNodeRedis(client));
      expect((await failureOf(guard.acquire('k', { wait: '20s' }))).code).toBe('invalid-argument');
      const connecting = client.connect();
      stage.ends(() => client.destroy());
      expect((await guard.acquire('k', { wait: '20s' })).isHeld()).toBe(true);
      await connecting;
    }
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
    await smoke(stage, fromNodeRedis(two), fromIoredis(one));
    expect(secure.accepted).toBeGreaterThanOrEqual(4);
  });

  it.each([
    ['no client', () => fromIoredis({} as never), /ioredis client or cluster/],
    ['no client', () => fromNodeRedis(undefined as never), /node-redis client/],
    ['half a client', () => fromIoredis({ evalsha: silent, duplicate: silent } as never), /ioredis client/],
    ['half a client', () => fromNodeRedis({ evalSha: silent, duplicate: silent } as never), /node-redis/],
    ['a transaction', () => fromIoredis(idle().multi() as never), /takes an ioredis client/],
    ['a client that monitors', () => fromIoredis(idle({ monitor: true })), /monitor mode/],
    ['a client that ended', () => fromIoredis(ended()), /was disconnected/],
    ['a prefix with braces', () => fromIoredis(idle({ keyPrefix: '{app}:' })), /braces/],
    ['a prefix with braces', () => fromNodeRedis(createClient({ keyPrefix: '{app}:' })), /braces/],
    [
      'a client of replicas',
      () => fromIoredis(idle({ sentinels: [{}], name: 'm', role: 'slave' })),
      /replicas/,
    ],
    ['a read-only client', () => fromNodeRedis(createClient({ readonly: true })), /replicas/],
    ['a pool', () => fromNodeRedis(createClientPool() as never), /no pool .* createClient/],
    ['a pool', () => fromNodeRedis(createClientPool5() as never), /no pool .* createClient/],
    ['a client of callbacks', () => fromNodeRedis(createClient().legacy() as never), /not what its legacy/],
    ['a transaction', () => fromNodeRedis(createClient().multi() as never), /not what its multi/],
    ['a sentinel that sends to replicas', () => fromNodeRedis(sentinelOf({ readonly: true })), /replicas/],
    ['a cluster that reads from replicas', () => fromNodeRedis(createCluster5(ofReplicas)), /useReplicas/],
    ['a cluster that reads from replicas', () => fromNodeRedis(createCluster(ofReplicas)), /useReplicas/],
    [
      'a cluster that reads from replicas, and maps types',
      () => fromNodeRedis(createCluster(ofReplicas).withTypeMapping({})),
      /without it/,
    ],
    [
      'a cluster of read-only members',
      () => fromNodeRedis(createCluster({ rootNodes: [], defaults: { readonly: true } })),
      /defaults\.readonly/,
    ],
    ['a sentinel with braces', () => fromNodeRedis(sentinelOf({ keyPrefix: '{app}:' })), /braces/],
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
    ['a client that was not wrapped', idle()],
    ['an object', {}],
    ['a number', 5],
    ['null', null],
    ['nothing', undefined],
  ])('refuses %s in the place of a connection, and says what to do', (_, given) => {
    for (const [name, make] of Object.entries({ redisLocks, redisState })) {
      let thrown: unknown;
      try {
        make(given as never);
      } catch (error) {
        thrown = error;
      }
      expect(GuardError.is(thrown, 'invalid-argument')).toBe(true);
      expect((thrown as Error).message).toMatch(`connection of ${name} must be`);
      expect((thrown as Error).message).toMatch(/wrap the client by fromIoredis or fromNodeRedis/);
    }
  });

  it('refuses options of a state, which has none, and names them', () => {
    const make = redisState as (connection: RedisConnection, options: object) => unknown;
    const connection = fromIoredis(idle());
    expect(() => make(connection, { acks: { replicas: 1 } })).toThrow(/redisState has no option 'acks'/);
    expect(() => make(connection, {})).not.toThrow();
  });

  it.each([
    [{ acks: { replicas: 0 } }, /acks.replicas/],
    [{ acks: { replicas: 1, timeout: 5 } }, /no option 'timeout'/],
    [{ keepToken: 1 }, /keepToken/],
    [{ keep: 1 }, /no option 'keep'/],
  ])('refuses the options %j, and says why', (options, why) => {
    expect(() => redisLocks(fromIoredis(idle()), options as never)).toThrow(why);
  });
});

/** A call that may wait for long does not. */
async function rejectsAtOnce(stage: Stage, connection: RedisConnection, why: RegExp): Promise<void> {
  const parts = { locks: redisLocks(connection), state: redisState(connection) };
  const guard = createGuard({ ...parts, namespace: 'at-once', grace: '10ms' });
  const startedMs = performance.now();
  for (const call of [guard.acquire('k', { wait: '30s' }), guard.state.get('e')]) {
    const error = await failureOf(call);
    expect(error.code).toBe('invalid-argument');
    expect(error.message).toMatch(why);
  }
  expect(performance.now() - startedMs).toBeLessThan(3_000);
  // It takes a second, for the claim that cannot be taken back.
  const closing = guard.close();
  stage.ends(() => closing);
}

/** The rights that the documentation names. */
const RIGHTS = documentedRights.split(' ');

async function setUser(admin: Redis, name: string, ...rights: readonly string[]): Promise<void> {
  await admin.call('ACL', 'SETUSER', name, 'reset', 'on', '>secret', ...rights);
}

function portOf({ host, port }: TestServer): { host: string; port: number } {
  return { host, port };
}

/** A sentinel client that never connects. */
function sentinelOf(nodeClientOptions: object, options: object = {}) {
  const sentinelRootNodes = [{ host: 's', port: 1 }];
  return createSentinel({ name: 'm', sentinelRootNodes, nodeClientOptions, ...options });
}

const ofReplicas = { rootNodes: [], useReplicas: true };

/** A client that was disconnected. */
function ended(): Redis {
  const client = idle();
  client.disconnect();
  return client;
}

/** A client that never connects. */
function idle(options: object = {}): Redis {
  return new Redis({ lazyConnect: true, ...options });
}
