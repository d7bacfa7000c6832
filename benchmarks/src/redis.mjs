// On one Redis server without persistence: Guard, the bare `SET NX PX` with a script that deletes what is its own, and
// six libraries. All share one ioredis client, but for the one that needs node-redis; Guard has its stream beside it.
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { createGuard } from '@guard/core';
import { fromIoredis, redisLocks } from '@guard/redis';
import { startRedis } from '@guard/testing/servers';
import { contention } from './redis-contention.mjs';

const TTL_MS = 30_000;
const PATIENT = 100_000;

export async function redisContenders() {
  const server = await startRedis({ appendOnly: false });
  const clients = [];
  /** All contenders on connections of their own, and how many commands went down the one of ioredis. */
  const connect = async () => {
    const client = new Redis(server.url);
    let sent = 0;
    const { sendCommand } = client;
    client.sendCommand = (...args) => {
      sent += 1;
      return sendCommand.apply(client, args);
    };
    const nodeClient = await createClient({ url: server.url }).connect();
    const guard = createGuard({ locks: redisLocks(fromIoredis(client)), namespace: 'bench' });
    clients.push(async () => {
      await guard.close();
      client.disconnect();
      nodeClient.destroy();
    });
    const contenders = {
      guard: guardPair(guard),
      raw: rawPair(client),
      ...(await peers(client, nodeClient)),
    };
    return { contenders, sent: () => sent };
  };
  const { contenders } = await connect();
  return {
    contenders,
    contention: (options) => contention(server, connect, options),
    close: async () => {
      for (const end of clients) await end();
      await server.stop();
    },
  };
}

function guardPair(guard) {
  const options = { ttl: TTL_MS, wait: '60s' };
  return { waits: true, pair: (key, work) => guard.withLock(key, options, (lock) => work(lock.token)) };
}

function rawPair(client) {
  client.defineCommand('deleteOwn', {
    numberOfKeys: 1,
    lua: "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
  });
  const pair = async (key, work) => {
    const owner = randomUUID();
    if ((await client.set(`raw:${key}`, owner, 'PX', TTL_MS, 'NX')) === null)
      throw new Error(`${key} is taken`);
    await work();
    await client.deleteOwn(`raw:${key}`, owner);
  };
  return { waits: false, pair };
}

/** Each with the settings of its own documentation, and as patient as it can be. */
async function peers(client, nodeClient) {
  const { default: Redlock } = await import('../peers/node_modules/redlock/redlock.js');
  const sesamecare = await import('../peers/node_modules/@sesamecare-oss/redlock/build/index.js');
  const { Mutex } = await import('../peers/node_modules/redis-semaphore/lib/index.js');
  const { Verrou } = await import('../peers/node_modules/@verrou/core/build/index.js');
  const { redisStore } = await import('../peers/node_modules/@verrou/core/build/src/drivers/redis.js');
  const redlock = new Redlock([client], { retryCount: PATIENT });
  const fork = new sesamecare.Redlock([client], { retryCount: PATIENT, automaticExtensionThreshold: 500 });
  const verrou = new Verrou({
    default: 'redis',
    stores: { redis: { driver: redisStore({ connection: client }) } },
  });
  const simple = await import('../peers/node_modules/simple-redis-mutex/dist/index.js');
  return {
    redlock: waiting(async (key, work) => {
      const lock = await redlock.lock(`redlock:${key}`, TTL_MS);
      await work();
      await lock.unlock();
    }),
    'sesamecare-redlock': waiting(async (key, work) => {
      const lock = await fork.acquire([`sesamecare:${key}`], TTL_MS);
      await work();
      await lock.release();
    }),
    'redis-semaphore': waiting(async (key, work) => {
      const mutex = new Mutex(client, key, { lockTimeout: TTL_MS, acquireTimeout: 120_000 });
      await mutex.acquire();
      await work();
      await mutex.release();
    }),
    verrou: waiting(async (key, work) => {
      await verrou.createLock(key, '30s').run(() => work());
    }),
    'simple-redis-mutex': waiting(async (key, work) => {
      const release = await simple.lock(nodeClient, `simple:${key}`, { timeoutMillis: TTL_MS });
      await work();
      await release();
    }),
  };
}

function waiting(pair) {
  return { waits: true, pair };
}
