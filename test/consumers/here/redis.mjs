// An application on Redis, with every major version of the two clients that the peer ranges admit, against a server
// that the published @guard/testing starts.
import assert from 'node:assert/strict';
import { createGuard, kvRuns } from '@guard/core';
import { redisLocks, redisState } from '@guard/redis';
import { fromIoredis } from '@guard/redis/ioredis';
import { fromNodeRedis } from '@guard/redis/node-redis';
import { startRedis } from '@guard/testing/servers';
import { Redis } from 'ioredis';
import { Redis as Redis6 } from 'ioredis6';
import { createClient } from 'redis';
import { createClient as createClient6 } from 'redis6';

const server = await startRedis({ appendOnly: false });
try {
  for (const Client of [Redis, Redis6]) {
    const client = new Client(server.url);
    await use(fromIoredis(client));
    client.disconnect();
  }
  for (const create of [createClient, createClient6]) {
    const client = await create({ url: server.url }).connect();
    await use(fromNodeRedis(client));
    client.destroy();
  }
} finally {
  await server.stop();
}
console.log('came to its end');

async function use(connection) {
  const state = redisState(connection);
  const guard = createGuard({ locks: redisLocks(connection), state, runs: kvRuns(state) });
  const lock = await guard.acquire('k');
  assert.equal(await guard.tryAcquire('k'), null);
  assert.equal(await lock.release(), 'released');
  const { status, value } = await guard.run('settle', {}, async (run) => run.task);
  assert.deepEqual([status, value], ['completed', 'settle']);
  await guard.close();
}
