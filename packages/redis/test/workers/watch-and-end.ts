/**
 * A whole program of an application: it watches, waits for a word, and is done without closing anything but its own
 * client. What is left is Guard's connection for messages, open or on its way.
 */
import { createGuard } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { Redis } from 'ioredis6';
import { createClient } from 'redis6';
import { redisLocks, redisState } from '../../src/index.js';
import { fromIoredis } from '../../src/ioredis.js';
import { fromNodeRedis } from '../../src/node-redis.js';

const main: WorkerMain<{ readonly library: string; readonly port: number }> = async (scope) => {
  const { library, port } = scope.input;
  const { connection, end } = library === 'ioredis' ? overIoredis(port) : await overNodeRedis(port);
  const guard = createGuard({ locks: redisLocks(connection), state: redisState(connection) });
  await guard.state.watch('w', () => undefined);
  await scope.tell('watches');
  await scope.hear();
  end();
  process.channel?.unref();
};
export default main;

function overIoredis(port: number) {
  const client = new Redis({ host: '127.0.0.1', port });
  client.on('error', () => undefined);
  return { connection: fromIoredis(client), end: () => client.disconnect() };
}

async function overNodeRedis(port: number) {
  const client = createClient({ socket: { host: '127.0.0.1', port } });
  client.on('error', () => undefined);
  await client.connect();
  return { connection: fromNodeRedis(client), end: () => client.destroy() };
}
