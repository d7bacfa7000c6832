/** A bad wire, by a TCP proxy between a client of either library and a real server. */
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis6';
import { createClient } from 'redis6';
import { failureOf, SeededRandom, startTcpProxy, type TcpProxy, until } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
import type { RedisConnection } from '../src/index.js';
import { fromIoredis } from '../src/ioredis.js';
import { fromNodeRedis } from '../src/node-redis.js';
import { Stage } from './support/stage.js';

type Connect = (stage: Stage, port: number, options?: Settings) => Promise<RedisConnection>;

interface Settings {
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly retryStrategy?: () => number;
}

const overIoredis: Connect = async (stage, port, options = {}) => {
  const client = new Redis({ host: '127.0.0.1', port, ...options });
  client.on('error', () => undefined);
  await client.ping();
  stage.ends(() => client.disconnect());
  return fromIoredis(client);
};

const overNodeRedis: Connect = async (stage, port) => {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  client.on('error', () => undefined);
  await client.connect();
  stage.ends(() => client.destroy());
  return fromNodeRedis(client);
};

describe('A bad wire', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startRedis({ appendOnly: false });
  });
  afterAll(() => server.stop());

  async function proxied(stage: Stage): Promise<TcpProxy> {
    const proxy = await startTcpProxy({ target: { host: server.host, port: server.port } });
    stage.ends(() => proxy.close());
    return proxy;
  }

  const asks = (script: string) => (request: Buffer) => request.toString('latin1').includes(script);

  describe.each([
    ['ioredis', overIoredis],
    ['node-redis', overNodeRedis],
  ] as [string, Connect][])('%s', (_, connect) => {
    it('[B50] [S4] knows its own lock again where the reply to the acquire was lost', async () => {
      await using stage = new Stage();
      const proxy = await proxied(stage);
      const guard = stage.guard(await connect(stage, proxy.port));
      await (await guard.acquire('warm')).release();
      const loss = proxy.loseReply({ matches: asks('/lock/amb'), then: 'reset' });
      const lock = await guard.tryAcquire('amb', { ttl: '60s' });
      await loss.happened;
      expect(lock?.isHeld()).toBe(true);
      expect(await lock?.release()).toBe('released');
    });

    it('[B14] [S1] an acquire that is late on its way is dated by the server, and by its sending for whoever sent it', async () => {
      await using stage = new Stage();
      const proxy = await proxied(stage);
      const late = stage.guard(await connect(stage, proxy.port));
      const prompt = stage.guard(await connect(stage, server.port), { namespace: late.namespace });
      await (await late.acquire('warm')).release();
      const lateMs = 400;
      proxy.delay(lateMs, 'to-server');
      const lock = await late.tryAcquire('p', { ttl: '4s', renew: false });
      expect(await prompt.tryAcquire('p', { ttl: '4s' })).toBeNull();
      const { expiresInMs } = await prompt.inspect('p');
      expect(lock!.remainingMs()).toBeGreaterThan(0);
      expect(lock!.remainingMs()).toBeLessThan(expiresInMs! - lateMs);
      proxy.heal();
      expect(await lock!.release()).toBe('released');
    });

    it('[B14] [S1] an acquire that comes after its own deadline refuses others by the server’s date, and is not believed', async () => {
      await using stage = new Stage();
      const proxy = await proxied(stage);
      const late = stage.guard(await connect(stage, proxy.port));
      const prompt = stage.guard(await connect(stage, server.port), { namespace: late.namespace });
      await (await late.acquire('warm')).release();
      proxy.delay(1_300, 'to-server');
      const first = failureOf(late.tryAcquire('p', { ttl: '1s' }));
      await until('the late acquire has arrived', async () => (await prompt.inspect('p')).held, 5_000);
      const { token } = await prompt.inspect('p');
      expect(await prompt.tryAcquire('p', { ttl: '1s' })).toBeNull();
      expect((await first).code).toBe('unavailable');
      proxy.heal();
      expect((await prompt.acquire('p', { wait: '10s' })).token).toBeGreaterThan(token);
    });

    it('[B50] [S4] says released where the reply to the release was lost, and the key is free', async () => {
      await using stage = new Stage();
      const proxy = await proxied(stage);
      const guard = stage.guard(await connect(stage, proxy.port));
      const lock = await guard.acquire('amb', { ttl: '60s' });
      const loss = proxy.loseReply({ matches: asks('/lock/amb'), then: 'reset' });
      expect(await lock.release()).toBe('released');
      await loss.happened;
      expect((await guard.inspect('amb')).held).toBe(false);
    });

    it('[S4] knows its own write again where the reply was lost, and never says that somebody was faster', async () => {
      await using stage = new Stage();
      const proxy = await proxied(stage);
      const guard = stage.guard(await connect(stage, proxy.port));
      const version = await guard.state.create('e', 0);
      const loss = proxy.loseReply({ matches: asks('/state/e'), then: 'reset' });
      expect(await guard.state.update('e', version!, 1)).not.toBeNull();
      await loss.happened;
      expect((await guard.state.get('e'))?.value).toBe(1);
    });

    it('[L1] tells the holder by its deadline where the connection is half open', async () => {
      await using stage = new Stage();
      const proxy = await proxied(stage);
      const guard = stage.guard(await connect(stage, proxy.port));
      const lock = await guard.acquire('cut', { ttl: '900ms' });
      const taken = performance.now();
      proxy.cut();
      await until('the holder is told', () => lock.signal.aborted, 3_000);
      expect(performance.now() - taken).toBeGreaterThan(400);
      expect(lock.isHeld()).toBe(false);
      const error = await failureOf(guard.tryAcquire('other', { ttl: '900ms' }));
      expect(error.code).toBe('unavailable');
      proxy.heal();
      proxy.reset();
      expect((await guard.acquire('cut', { wait: '10s' })).token).toBeGreaterThan(lock.token);
    });

    it('[L2] a waiter goes on after its stream of messages broke, and learns what it missed', async () => {
      await using stage = new Stage();
      const proxy = await proxied(stage);
      const waiter = stage.guard(await connect(stage, proxy.port));
      const holder = stage.guard(await connect(stage, server.port), { namespace: waiter.namespace });
      for (let round = 0; round < 3; round += 1) {
        const held = await holder.acquire('w');
        const waiting = waiter.acquire('w', { wait: '20s' });
        await until('it waits', async () => (await holder.inspect('w')).waiting === 1);
        proxy.reset();
        await held.release();
        const got = await waiting;
        expect(got.token).toBeGreaterThan(held.token);
        await got.release();
      }
    });
  });

  const nothing = (): void => undefined;
  const both: readonly Connect[] = [overIoredis, overNodeRedis];

  it('[L2] [L3] tells who listens that nothing is heard where the wire of messages is silent, and when it is again', async () => {
    await using stage = new Stage();
    const admin = stage.admin(server);
    const scenes = both.map(async (connect, n) => {
      const proxy = await proxied(stage);
      const connection = await connect(stage, proxy.port);
      const heard: unknown[] = [];
      const listening = [
        `m${n}`,
        (text: string) => heard.push(text),
        (open: boolean) => heard.push(open),
      ] as const;
      const channel = await connection.subscribe(...listening);
      const cutAtMs = performance.now();
      proxy.cut();
      await until('the silence is told', () => heard.length > 0, 14_000);
      expect(performance.now() - cutAtMs).toBeLessThan(5_000);
      proxy.heal();
      await until('it is heard again', () => heard.length > 1, 14_000);
      await admin.publish(`m${n}`, 'news');
      await until('the news', () => heard.length > 2);
      expect(heard).toEqual([false, true, 'news']);
      await channel.close();
    });
    await Promise.all(scenes);
  }, 40_000);

  it('[L3] hears messages on a connection that is wanted as the last one is given up that was being opened', async () => {
    await using stage = new Stage();
    for (const connect of both) {
      const proxy = await proxied(stage);
      const connection = await connect(stage, proxy.port);
      const states: boolean[] = [];
      const first = await connection.subscribe(
        'm',
        () => undefined,
        (open) => states.push(open),
      );
      proxy.delay(200);
      proxy.reset();
      await until('the break', () => states.includes(false));
      // It is being opened again.
      await sleep(120);
      const closing = first.close();
      const next = connection.subscribe('n', nothing, nothing);
      await closing;
      await (await next).close();
    }
  });

  it('[B51] [L3] settles every call where connections are reset in the middle of commands, and works after it', async () => {
    await using stage = new Stage();
    const proxy = await proxied(stage);
    const connection = await overIoredis(stage, proxy.port, {
      autoResendUnfulfilledCommands: false,
      retryStrategy: () => 10,
    });
    const guard = stage.guard(connection);
    const random = new SeededRandom();
    for (let round = 0; round < 30; round += 1) {
      const started = performance.now();
      const call = guard
        .withLock(`k${round % 3}`, { ttl: '1s', wait: '2s' }, async (lock) => {
          await lock.extend('1500ms');
        })
        .catch((error: unknown) => error);
      await sleep(random.integer(0, 4));
      proxy.reset();
      await call;
      expect(performance.now() - started).toBeLessThan(8_000);
    }
    expect((await guard.acquire('after', { wait: '5s' })).isHeld()).toBe(true);
  });

  it('[L3] keeps nothing of calls whose answers a client that sends nothing again has lost', async () => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const events = new EventEmitter();
    const client = {
      options: { autoResendUnfulfilledCommands: false },
      evalsha: never,
      eval: never,
      scan: never,
      pipeline: () => ({ exec: never }),
      duplicate: never,
      on: (event: string, listener: (...args: unknown[]) => void) => events.on(event, listener),
    };
    const connection = fromIoredis(client);
    const lose = async (): Promise<WeakRef<Error>> => {
      const lost = connection.run({ text: '', sha: '' }, [], []).catch((error: Error) => error);
      events.emit('close');
      return new WeakRef((await lost) as Error);
    };
    const errors = [await lose(), await lose()];
    await sleep(0);
    setFlagsFromString('--expose-gc');
    (runInNewContext('gc') as () => void)();
    expect(errors.map((error) => error.deref()?.message)).toEqual([undefined, undefined]);
    // Whoever holds on to the connection held on to them too.
    expect(connection.cluster).toBe(false);
  });

  it('[B37] [S3] a late release touches nobody else’s lock, and says that it was lost', async () => {
    await using stage = new Stage();
    const first = stage.guard(await overIoredis(stage, server.port));
    const second = stage.guard(await overNodeRedis(stage, server.port), { namespace: first.namespace });
    const old = await first.acquire('o', { ttl: '300ms', renew: false });
    await sleep(350);
    const held = await second.acquire('o', { ttl: '10s' });
    expect(await old.release()).toBe('lost');
    expect(await first.tryAcquire('o')).toBeNull();
    expect(held.isHeld()).toBe(true);
  });
});
