/** A watch whose store cannot be asked for a moment, on a connection that stays open: nothing is lost by it. */
import type { StateChange } from '@guard/core';
import { until } from '@guard/testing';
import { startRedis } from '@guard/testing/servers';
import { Redis } from 'ioredis';
import { fromIoredis, redisState } from '../src/index.js';

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
