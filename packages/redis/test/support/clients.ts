/** Clients of every library on every topology, as an application would make them. */
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis6';
import { createClient, createCluster } from 'redis';
import {
  createClient as createClient6,
  createCluster as createCluster6,
  createSentinel as createSentinel6,
} from 'redis6';
import type { RedisCluster, RedisSentinel, TestServer } from '@guard/testing/servers';
import { redisState, type RedisConnection } from '../../src/index.js';
import { fromIoredis, type IoredisClient } from '../../src/ioredis.js';
import { fromNodeRedis } from '../../src/node-redis.js';

/** A connection, and how its client ends. */
export interface Client {
  readonly connection: RedisConnection;
  end(): void;
}

/** Where a client leads. */
export type Place =
  { readonly single: TestServer } | { readonly sentinel: RedisSentinel } | { readonly cluster: RedisCluster };

/** Makes a client of a library. */
export type Via = (place: Place) => Promise<Client>;

const silent = (): void => undefined;

/** A client that is connected to every master, as that of an application that has been running for a while. */
async function ready(client: IoredisClient & { disconnect(): void }): Promise<Client> {
  client.on('error', silent);
  const connection = fromIoredis(client);
  await redisState(connection).scan('warm/', undefined, 1);
  return { connection, end: () => client.disconnect() };
}

function addresses(nodes: readonly TestServer[]): { host: string; port: number }[] {
  return nodes.map(({ host, port }) => ({ host, port }));
}

function behindSentinel({ sentinels, masterName }: RedisSentinel) {
  return {
    sentinels: addresses(sentinels),
    name: masterName,
    sentinelRetryStrategy: () => 100,
    retryStrategy: () => 100,
  };
}

/** ioredis 5. */
export const viaIoredis: Via = async (place) => {
  const client =
    'single' in place
      ? new Redis(place.single.url)
      : 'sentinel' in place
        ? new Redis(behindSentinel(place.sentinel))
        : new Cluster(addresses(place.cluster.nodes));
  return ready(client);
};

/** ioredis 6. */
export const viaIoredis6: Via = async (place) => {
  const client =
    'single' in place
      ? new Redis6(place.single.url)
      : 'sentinel' in place
        ? new Redis6(behindSentinel(place.sentinel))
        : new Cluster6(addresses(place.cluster.nodes));
  return ready(client);
};

/** node-redis 5; without Sentinel, which its version 6 is tested with. */
export const viaNodeRedis: Via = async (place) => {
  if ('cluster' in place) {
    const client = createCluster({ rootNodes: place.cluster.nodes.map(({ url }) => ({ url })) });
    client.on('error', silent);
    await client.connect();
    return { connection: fromNodeRedis(client), end: () => client.destroy() };
  }
  if ('sentinel' in place) throw new Error('use node-redis 6');
  const client = createClient({ url: place.single.url });
  client.on('error', silent);
  await client.connect();
  return { connection: fromNodeRedis(client), end: () => client.destroy() };
};

/** node-redis 6. */
export const viaNodeRedis6: Via = async (place) => {
  if ('cluster' in place) {
    const client = createCluster6({ rootNodes: place.cluster.nodes.map(({ url }) => ({ url })) });
    client.on('error', silent);
    await client.connect();
    return { connection: fromNodeRedis(client), end: () => client.destroy() };
  }
  if ('sentinel' in place) {
    const { sentinels, masterName } = place.sentinel;
    const client = createSentinel6({ name: masterName, sentinelRootNodes: addresses(sentinels) });
    client.on('error', silent);
    await client.connect();
    return { connection: fromNodeRedis(client), end: () => void client.destroy() };
  }
  const client = createClient6({ url: place.single.url });
  client.on('error', silent);
  await client.connect();
  return { connection: fromNodeRedis(client), end: () => client.destroy() };
};
