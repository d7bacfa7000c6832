// On one Redis server without persistence (where a leader is to change, on a master with replicas and sentinels): Guard, the bare `SET NX PX` with a script that deletes what is its own, and
// seven libraries. Each has a client of its own.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { guardContender, guardRunner, lockRunner, TTL_MS } from './guard.mjs';
import { redisPeers } from './redis-peers.mjs';
import { bullmq } from './runners.mjs';

const DELETE_OWN =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

export const redis = {
  name: 'redis',
  /** redlock-universal needs it, so all run on it. */
  node: 22,
  minTtlMs: 200,
  hasServer: true,
  hasLeader: true,
  startServer,
};

export const contenders = {
  guard: guardContender(openLocks),
  raw: { waits: false, open: openRaw },
  ...redisPeers,
};

export const runners = {
  guard: guardRunner(async (address) => {
    const { kvRuns } = await import('@guard/core');
    const { fromIoredis } = await import('@guard/redis/ioredis');
    const { redisLocks, redisState } = await import('@guard/redis');
    const client = connect(address);
    const connection = fromIoredis(client);
    const close = async () => client.disconnect();
    return { locks: redisLocks(connection), runs: kvRuns(redisState(connection)), close };
  }),
  'guard, lock alone': lockRunner(openLocks),
  bullmq,
};

export async function openLocks(address) {
  const { fromIoredis } = await import('@guard/redis/ioredis');
  const { redisLocks } = await import('@guard/redis');
  const client = connect(address);
  return { locks: redisLocks(fromIoredis(client)), close: async () => client.disconnect() };
}

/** Errors of a connection are the library's to report. */
export function connect({ host, port, sentinels, name }) {
  const where = sentinels === undefined ? { host, port } : { sentinels, name };
  return new Redis(where).on('error', () => undefined);
}

async function startServer({ durable = false, nodes = 1 } = {}) {
  if (nodes > 1) return startGroup(nodes);
  const { startRedis } = await import('@guard/testing/servers');
  const server = await startRedis({ appendOnly: durable });
  const { host, port } = server;
  const admin = connect(server);
  return {
    address: { host, port },
    control: server,
    version: server.version,
    pids: () => [server.pid],
    endpoint: { host, port },
    through: (proxyPort) => ({ host: '127.0.0.1', port: proxyPort }),
    startCount: () => startCount(server, admin),
    /** Scripts alone, which all renewals are: counting the commands inside them would cost more than the renewals. */
    startCheapCount: async () => {
      const before = await scriptCalls(admin);
      return async () => ({ operations: (await scriptCalls(admin)) - before });
    },
    floorMs: () => publishFloor(server),
    close: async () => {
      admin.disconnect();
      await server.stop();
    },
  };
}

/** A master with its replicas; as many sentinels watch it, and put one of them in its place. */
async function startGroup(nodes) {
  const { startRedisSentinel } = await import('@guard/testing/servers');
  const group = await startRedisSentinel({ appendOnly: false, replicas: nodes - 1, sentinels: nodes });
  const sentinels = group.sentinels.map(({ host, port }) => ({ host, port }));
  return {
    address: { sentinels, name: group.masterName },
    changeLeader: async () => {
      const old = await group.masterPort();
      await group.servers.find(({ port }) => port === old).kill();
      while ((await group.masterPort()) === old) await pause(20);
    },
    close: () => group.stop(),
  };
}

/** What the server itself says that it carries out: commands of clients, and messages that clients or scripts publish. */
export async function startCount({ host, port }, admin) {
  const total = { operations: 0, pushes: 0 };
  const end = randomUUID();
  // The server tells everything from the moment of its answer, which ioredis does not expect on one connection.
  const ear = connectSocket({ host, port });
  let text = '';
  ear.on('data', (chunk) => {
    const lines = `${text}${chunk}`.split('\r\n');
    text = lines.pop();
    for (const line of lines) {
      if (line.includes(end)) return ear.destroy();
      const [, source, command] = /^\+[\d.]+ \[\d+ (\S+)\] "([^"]*)"/.exec(line) ?? [];
      if (command?.toLowerCase() === 'publish') total.pushes += 1;
      if (command !== undefined && source !== 'lua') total.operations += 1;
    }
  });
  ear.write('MONITOR\r\n');
  await once(ear, 'data');
  return async () => {
    // The server tells of this where it stands among the others: what comes behind it was not asked about.
    const ended = once(ear, 'close');
    await admin.echo(end);
    await ended;
    return total;
  };
}

async function scriptCalls(admin) {
  const found = (await admin.info('commandstats')).matchAll(/cmdstat_(?:eval|evalsha|fcall):calls=(\d+)/g);
  return [...found].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

async function openRaw(address) {
  const client = connect(address);
  client.defineCommand('deleteOwn', { numberOfKeys: 1, lua: DELETE_OWN });
  const pair = async (key, work) => {
    const owner = randomUUID();
    if ((await client.set(`raw:${key}`, owner, 'PX', TTL_MS, 'NX')) === null)
      throw new Error(`${key} is taken`);
    await work();
    await client.deleteOwn(`raw:${key}`, owner);
  };
  return { pair };
}

/** How long a message takes after two idle milliseconds: no hand-over by messages can be faster. */
async function publishFloor(server) {
  const [from, to] = [connect(server), connect(server)];
  await to.subscribe('floor');
  const times = [];
  for (let n = 0; n < 40; n += 1) {
    await pause(2);
    const sentAt = performance.now();
    const heard = new Promise((resolve) => to.once('message', resolve));
    await Promise.all([from.publish('floor', 'x'), heard]);
    times.push(performance.now() - sentAt);
  }
  from.disconnect();
  to.disconnect();
  return times.sort((a, b) => a - b)[times.length >> 1];
}
