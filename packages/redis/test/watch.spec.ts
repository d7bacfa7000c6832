/** A watch: what it makes of a store that cannot be asked for a moment, and of a program that is done. */
import type { StateChange } from '@guard/core';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTcpProxy, startWorker, until, type TcpProxy } from '@guard/testing';
import { startRedis, startRedisSentinel, type TestServer } from '@guard/testing/servers';
import { Redis } from 'ioredis';
import { redisLocks, redisState, type RedisConnection } from '../src/index.js';
import { fromIoredis } from '../src/ioredis.js';
import { tagOf } from '../src/slot.js';
import { Stage } from './support/stage.js';

it('the newest value is told although the read that follows its message failed, and no other message comes', async () => {
  const server = await startRedis();
  const client = new Redis(server.url);
  const connection = fromIoredis(client);
  let failures = 0;
  const flaky = Object.assign(Object.create(connection) as typeof connection, {
    run: (...call: Parameters<typeof connection.run>) => {
      failures -= 1;
      return failures >= 0 ? Promise.reject(new Error('BUSY for a test')) : connection.run(...call);
    },
  });
  const [watched, writing] = [redisState(flaky), redisState(connection)];
  try {
    const heard: StateChange[] = [];
    await watched.watch('ns/state/', (change) => void heard.push(change));
    failures = 2;
    await writing.write([{ key: 'ns/state/k', value: '1', expect: 'absent', writeId: 'w', ttl: 'none' }]);
    await until('the news', () => heard.some(({ entry }) => entry?.value === '1'));
  } finally {
    await Promise.all([watched.close(), writing.close()]);
    client.disconnect();
    await server.stop();
  }
});

it('[L5] messages of locks that are being opened end with the locks, and none are opened after that', async () => {
  const server = await startRedis();
  const client = new Redis(server.url);
  const locks = redisLocks(fromIoredis(client));
  try {
    const opening = locks.subscribe!('s', () => undefined);
    const ended = expect(opening).rejects.toMatchObject({ code: 'closed' });
    await locks.close();
    await ended;
    await expect(locks.subscribe!('s', () => undefined)).rejects.toMatchObject({ code: 'closed' });
    await until('nobody listens', async () => (await client.pubsub('CHANNELS')).length === 0);
  } finally {
    client.disconnect();
    await server.stop();
  }
});

it('[L3] a dead master of a cluster does not silence the entries of the others, also after the messages broke', async () => {
  const server = await startRedis({ appendOnly: false });
  const client = new Redis(server.url);
  const single = fromIoredis(client);
  const keys = ['a', 'b', 'c', 'd'].map((name) => `ns/state/${name}`);
  const doomed = keys[0]!;
  let dead = false;
  let tellState: (open: boolean) => void = () => undefined;
  // A cluster by its keys; what its dead master owns is the tag of one key.
  const cluster: RedisConnection = Object.assign(Object.create(single) as RedisConnection, {
    cluster: true,
    run: (...[script, names, ...rest]: Parameters<RedisConnection['run']>) =>
      dead && names.some((name) => name.includes(`{${tagOf(doomed)}}`))
        ? Promise.reject(new Error('CLUSTERDOWN for a test'))
        : single.run(script, names, ...rest),
    subscribe: (...[channel, onMessage, onState]: Parameters<RedisConnection['subscribe']>) => {
      tellState = onState;
      return single.subscribe(channel, onMessage, onState);
    },
  });
  const [watched, writing] = [
    redisState(cluster),
    redisState(Object.assign(Object.create(cluster), { run: single.run })),
  ];
  const write = (key: string, n: number) =>
    writing.write([{ key, value: `${n}`, expect: 'any', writeId: `${key}${n}`, ttl: 'none' }]);
  try {
    const heard: string[] = [];
    await watched.watch('ns/state/', ({ key, entry }) => void heard.push(`${key}=${entry?.value}`));
    dead = true;
    tellState(false);
    tellState(true);
    for (const key of keys) await write(key, 1);
    const others = keys.slice(1).map((key) => `${key}=1`);
    await until('the others are told', () => others.every((news) => heard.includes(news)));
    expect(heard).not.toContain(`${doomed}=1`);
    dead = false;
    await until('the one that was silent is told', () => heard.includes(`${doomed}=1`));
  } finally {
    await Promise.all([watched.close(), writing.close()]);
    client.disconnect();
    await server.stop();
  }
});

describe.each(['ioredis', 'node-redis'])(
  'A program that watches, over %s, and has nothing else to do',
  (library) => {
    const HARMS: [string, (server: TestServer, proxy: TcpProxy) => Promise<unknown>][] = [
      ['while all is well', async () => undefined],
      ['after the server was killed', (server) => server.kill()],
      [
        'while the server hangs and takes connections that it never answers',
        async (server, proxy) => {
          await server.pause();
          proxy.reset();
        },
      ],
    ];

    it.each(HARMS)('[L5] ends %s', async (_, harm) => {
      const server = await startRedis({ appendOnly: false });
      const proxy = await startTcpProxy({ target: server });
      const file = join(__dirname, 'workers/watch-and-end.ts');
      const worker = startWorker(file, {
        input: { library, where: { port: proxy.port } },
        exitWithinMs: 3_000,
      });
      try {
        expect(await worker.next()).toBe('watches');
        await harm(server, proxy);
        await sleep(500);
        worker.tell('end');
        await worker.finish();
      } finally {
        await worker.close().catch(() => undefined);
        await proxy.close();
        await server.stop();
      }
    });

    it.each<[string, (server: TestServer) => Promise<unknown>]>([
      ['were killed', (server) => server.kill()],
      ['hang', (server) => server.pause()],
    ])('[L5] ends behind Sentinel after all sentinels and servers %s', async (_, harm) => {
      const { sentinels, masterName: name, nodes, stop } = await startRedisSentinel({ appendOnly: false });
      const where = { name, sentinels: sentinels.map(({ host, port }) => ({ host, port })) };
      const file = join(__dirname, 'workers/watch-and-end.ts');
      // A client of its own takes two seconds to give up a connection.
      const worker = startWorker(file, { input: { library, where }, exitWithinMs: 8_000 });
      try {
        expect(await worker.next()).toBe('watches');
        await Promise.all(nodes.map(harm));
        await sleep(500);
        worker.tell('end');
        await worker.finish();
      } finally {
        await worker.close().catch(() => undefined);
        await stop();
      }
    });
  },
);

it('[L3] [L5] the end of a guard ends its watches, and with the last of a client their connection; those of other guards go on', async () => {
  const server = await startRedis({ appendOnly: false });
  const stage = new Stage();
  try {
    const client = new Redis(server.url);
    stage.ends(() => client.disconnect());
    const admin = stage.admin(server);
    const connections = async (): Promise<number> =>
      ((await admin.call('CLIENT', 'LIST')) as string).trim().split('\n').length;
    const ownClient = new Redis(server.url);
    stage.ends(() => ownClient.disconnect());
    const guard = stage.guard(fromIoredis(client));
    const beside = stage.guard(fromIoredis(client), { namespace: guard.namespace });
    const other = stage.guard(fromIoredis(ownClient), { namespace: guard.namespace });
    const heard: string[] = [];
    const open = await other.state.watch('k', () => heard.push('other'));
    const before = await connections();
    const watch = await guard.state.watch('k', () => heard.push('ended'));
    await beside.state.watch('k', () => heard.push('ended, too'));
    // One for all guards of a client.
    expect(await connections()).toBe(before + 1);
    await guard.close();
    expect(await connections()).toBe(before + 1);
    await beside.close();
    await until('its connection is gone', async () => (await connections()) === before);
    await other.state.set('k', 1);
    await until('the other one hears of it', () => heard.length > 0);
    expect(heard).toEqual(['other']);
    await watch.close();
    await open.close();
    await until('no channel is left', async () => {
      return ((await admin.call('PUBSUB', 'CHANNELS')) as string[]).length === 0;
    });
  } finally {
    await stage[Symbol.asyncDispose]();
    await server.stop();
  }
});
