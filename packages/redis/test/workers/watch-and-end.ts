/**
 * A whole program of an application: it watches, waits for a word, and is done without closing anything but its own
 * client. What is left is Guard's connection for messages, open or on its way.
 */
import { createGuard } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { Redis } from 'ioredis6';
import { createClient, createSentinel } from 'redis6';
import { redisLocks, redisState } from '../../src/index.js';
import { fromIoredis } from '../../src/ioredis.js';
import { fromNodeRedis } from '../../src/node-redis.js';

/** Where it leads: to a server, or to the master that sentinels name. */
type Where = { readonly port: number } | { readonly sentinels: readonly Address[]; readonly name: string };

interface Address {
  readonly host: string;
  readonly port: number;
}

const main: WorkerMain<{ readonly library: string; readonly where: Where }> = async (scope) => {
  const { library, where } = scope.input;
  const { connection, end } = library === 'ioredis' ? await overIoredis(where) : await overNodeRedis(where);
  const guard = createGuard({ locks: redisLocks(connection), state: redisState(connection) });
  await guard.state.watch('w', () => undefined);
  await scope.tell('watches');
  await scope.hear();
  end();
  process.channel?.unref();
};
export default main;

async function overIoredis(where: Where) {
  const client =
    'port' in where ? new Redis(where.port) : new Redis({ ...where, sentinels: [...where.sentinels] });
  client.on('error', () => undefined);
  return { connection: fromIoredis(client), end: () => client.disconnect() };
}

async function overNodeRedis(where: Where) {
  const client =
    'port' in where
      ? createClient({ socket: { host: '127.0.0.1', port: where.port } })
      : createSentinel({ name: where.name, sentinelRootNodes: [...where.sentinels] });
  client.on('error', () => undefined);
  await client.connect();
  return { connection: fromNodeRedis(client), end: () => void client.destroy() };
}
