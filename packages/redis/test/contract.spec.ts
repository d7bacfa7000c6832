/**
 * The contract suites on a real Redis, locks through both client libraries.
 */
import { kvRuns } from '@guard/core';
import { describeLockBackend, describeRunStore, describeStateStore, type TestRunner } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis6';
import { fromIoredis, fromNodeRedis, redisLocks, redisState, type RedisConnection } from '../src/index.js';

const runner: TestRunner = { describe, it, skip: it.skip };
const lockTraits = { fifo: true, push: true, floor: true, minTtlMs: 200, ttlGranularityMs: 1, maxBatch: 64 };
const stateTraits = { maxBatch: 64, push: true, atomicBatch: true };

let server: TestServer;
beforeAll(async () => {
  server = await startRedis({ appendOnly: false });
}, 60_000);
afterAll(() => server.stop());

describeLockBackend({
  runner,
  name: 'redisLocks over ioredis',
  traits: lockTraits,
  create: () => lockPlace(viaIoredis),
});
describeLockBackend({
  runner,
  name: 'redisLocks over node-redis',
  traits: lockTraits,
  create: () => lockPlace(viaNodeRedis),
});

describeStateStore({
  runner,
  name: 'redisState over ioredis',
  traits: stateTraits,
  create: async () => {
    const place = await placeOf(viaIoredis, redisState);
    return { store: place.first, connect: place.connect, cleanup: place.cleanup };
  },
});

describeRunStore({
  runner,
  name: 'kvRuns on redisState',
  traits: kvRuns(redisState(noConnection())).traits,
  create: async () => {
    const place = await placeOf(viaIoredis, (connection) => kvRuns(redisState(connection)));
    return { store: place.first, connect: place.connect, cleanup: place.cleanup };
  },
});

interface Client {
  readonly connection: RedisConnection;
  end(): void;
}

async function viaIoredis(): Promise<Client> {
  const client = new Redis(server.url);
  return { connection: fromIoredis(client), end: () => client.disconnect() };
}

async function viaNodeRedis(): Promise<Client> {
  const client = await createClient({ url: server.url }).connect();
  return { connection: fromNodeRedis(client), end: () => client.destroy() };
}

async function lockPlace(via: () => Promise<Client>) {
  const place = await placeOf(via, redisLocks);
  return { backend: place.first, connect: place.connect, cleanup: place.cleanup };
}

/** A first connection, further ones on demand, and an end for all of them. */
async function placeOf<T extends { close(): Promise<void> }>(
  via: () => Promise<Client>,
  make: (connection: RedisConnection) => T,
): Promise<{ readonly first: T; connect(): Promise<T>; cleanup(): Promise<void> }> {
  const clients: Client[] = [];
  const made: T[] = [];
  const connect = async (): Promise<T> => {
    const client = await via();
    clients.push(client);
    const one = make(client.connection);
    made.push(one);
    return one;
  };
  const first = await connect();
  const cleanup = async (): Promise<void> => {
    await Promise.all(made.map((one) => one.close()));
    for (const client of clients) client.end();
  };
  return { first, connect, cleanup };
}

/** Traits are known before any server is. */
function noConnection(): RedisConnection {
  const never = (): Promise<never> => Promise.reject(new Error('not connected'));
  return { place: '', cluster: false, breaks: 0, run: never, scan: never, subscribe: never };
}
