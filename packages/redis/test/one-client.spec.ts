/** Many guards, stores and watches over one client: what they share, and what they do not take from each other. */
import { redisLocks, type RedisConnection } from '../src/index.js';
import { createGuard } from '@guard/core';
import { Redis } from 'ioredis6';
import { createClient } from 'redis6';
import { failureOf, startTcpProxy, until } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { fromIoredis } from '../src/ioredis.js';
import { fromNodeRedis } from '../src/node-redis.js';
import { Stage } from './support/stage.js';

interface Made {
  /** A connection of the one client: each call makes another. */
  connect(): RedisConnection;
  listenerCount(event: string): number;
}

type Make = (stage: Stage, port: number, login?: object) => Promise<Made>;

const overIoredis: Make = async (stage, port, login = {}) => {
  const client = new Redis({ host: '127.0.0.1', port, ...login });
  client.on('error', () => undefined);
  stage.ends(() => client.disconnect());
  return { connect: () => fromIoredis(client), listenerCount: (event) => client.listenerCount(event) };
};

const overNodeRedis: Make = async (stage, port, login = {}) => {
  const client = createClient({ socket: { host: '127.0.0.1', port }, ...login });
  client.on('error', () => undefined);
  await client.connect();
  stage.ends(() => client.destroy());
  return { connect: () => fromNodeRedis(client), listenerCount: (event) => client.listenerCount(event) };
};

describe.each<[string, Make, readonly string[]]>([
  ['ioredis', overIoredis, ['close', '-node', 'node error']],
  ['node-redis', overNodeRedis, ['reconnecting', 'topology-change', 'node-error']],
])('One client of %s', (_, make, events) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startRedis({ appendOnly: false });
  });
  afterAll(() => server.stop());

  async function subscribers(admin: Redis): Promise<number> {
    const list = (await admin.call('CLIENT', 'LIST')) as string;
    return list.split('\n').filter((line) => / sub=[1-9]/.test(line)).length;
  }

  it('[L5] has one set of listeners, however many guards come and go on it', async () => {
    await using stage = new Stage();
    const client = await make(stage, server.port);
    for (let n = 0; n < 12; n += 1) {
      const guard = createGuard({ locks: redisLocks(client.connect()), namespace: `n${n}` });
      await guard.withLock('k', () => undefined);
      await guard.close();
    }
    expect(events.map((event) => client.listenerCount(event))).toEqual(events.map(() => 1));
  });

  it('[B98] has one connection for the messages of all its watches and waiters, which leaves with the last of them', async () => {
    await using stage = new Stage();
    const client = await make(stage, server.port);
    const admin = stage.admin(server);
    const guard = stage.guard(client.connect());
    const other = stage.guard(client.connect());
    const heard: string[] = [];
    const names = ['a', 'b', 'c'];
    const watches = await Promise.all(
      [guard, other].flatMap(({ state }) =>
        names.map((name) => state.watch(name, ({ key }) => void heard.push(key))),
      ),
    );
    const held = await guard.acquire('k');
    const waiting = guard.acquire('k', { wait: '20s' });
    await until('it waits', async () => (await guard.inspect('k')).waiting === 1);
    expect(await subscribers(admin)).toBe(1);
    await held.release();
    await (await waiting).release();
    for (const { state } of [guard, other]) for (const name of names) await state.set(`${name}1`, 1);
    await until('all is heard', () => heard.length === 6);
    // One that closes takes nothing from the others of its channel, and one that is opened again hears again.
    await watches[0]!.close();
    watches[0] = await guard.state.watch('a', ({ key }) => void heard.push(`again ${key}`));
    await guard.state.set('a2', 1);
    await guard.state.set('b2', 1);
    await until('all is heard', () => heard.length === 8);
    expect(heard.slice(6).sort()).toEqual(['again a2', 'b2']);
    await Promise.all(watches.map((watch) => watch.close()));
    await guard.close();
    await until('it is gone', async () => (await subscribers(admin)) === 0);
  });

  it('[L3] hears all of its channels again after its connection for messages broke', async () => {
    await using stage = new Stage();
    const proxy = await startTcpProxy({ target: server });
    stage.ends(() => proxy.close());
    const client = await make(stage, proxy.port);
    const guards = [stage.guard(client.connect()), stage.guard(client.connect())];
    const writer = stage.admin(server);
    const writing = guards.map(({ namespace }) => stage.guard(fromIoredis(writer), { namespace }));
    const heard: unknown[] = [];
    for (const { state } of guards) await state.watch('', ({ entry }) => void heard.push(entry?.value));
    for (let round = 0; round < 3; round += 1) {
      proxy.reset();
      for (const { state } of writing) await state.set('k', round);
      await until('both hear it', () => heard.filter((value) => value === round).length === 2, 10_000);
    }
    expect(await subscribers(writer)).toBe(1);
  });

  it('[S6] hears the channels that its user may hear, also where others are refused', async () => {
    await using stage = new Stage();
    const admin = stage.admin(server);
    const rights = ['reset', 'on', '>secret', '~*', '+@all', 'resetchannels', '&guard:notices:*'];
    await admin.call('ACL', 'SETUSER', 'half', ...rights);
    const client = await make(stage, server.port, { username: 'half', password: 'secret' });
    const guard = stage.guard(client.connect());
    const holder = stage.guard(fromIoredis(admin), { namespace: guard.namespace });
    const handOver = async (): Promise<void> => {
      const held = await holder.acquire('k', { ttl: '1m' });
      const waiting = guard.acquire('k', { ttl: '1m', wait: '5s' });
      await until('it waits', async () => (await holder.inspect('k')).waiting === 1);
      await held.release();
      await (await waiting).release();
    };
    await handOver();
    expect((await failureOf(guard.state.watch('', () => undefined))).code).toBe('unavailable');
    await handOver();
    // Closing what was opened for it took nothing from the waiters.
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await until('it is there again', async () => (await subscribers(admin)) === 1);
    await handOver();
  });
});

it('[L3] opens its connection for messages anew where an ioredis client left its server after it was told of a fail-over', async () => {
  await using stage = new Stage();
  const server = await startRedis({ appendOnly: false });
  stage.ends(() => server.stop());
  const admin = stage.admin(server);
  const client = new Redis({ host: server.host, port: server.port, failoverDetector: true });
  stage.ends(() => client.disconnect());
  const guard = stage.guard(fromIoredis(client));
  const writer = stage.guard(fromIoredis(admin), { namespace: guard.namespace });
  const heard: unknown[] = [];
  await guard.state.watch('', ({ entry }) => void heard.push(entry?.value));
  const subscriber = async (): Promise<string | undefined> =>
    /id=(\d+) [^\n]* sub=1/.exec((await admin.call('CLIENT', 'LIST')) as string)?.[1];
  const before = await subscriber();
  expect(before).toBeDefined();
  client.disconnect(true);
  await until('there is another one', async () => ![undefined, before].includes(await subscriber()));
  await writer.state.set('k', 1);
  await until('it hears', () => heard.includes(1));
});
