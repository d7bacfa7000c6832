/** A watch: what it makes of a store that cannot be asked for a moment, and of a program that is done. */
import type { StateChange } from '@guard/core';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTcpProxy, startWorker, until, type TcpProxy } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
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

describe.each(['ioredis', 'node-redis'])(
  'A program that watches, over %s, and has nothing else to do',
  (library) => {
    const HARMS: [string, (server: TestServer, proxy: TcpProxy) => Promise<unknown>][] = [
      ['while all is well', async () => undefined],
      ['after the server was killed', (server) => server.kill()],
      [
        'while the server hangs and takes connections that it never answers',
        async (server, proxy) => {
          await server.pause();
          proxy.reset();
        },
      ],
    ];

    it.each(HARMS)('[L5] ends %s', async (_, harm) => {
      const server = await startRedis({ appendOnly: false });
      const proxy = await startTcpProxy({ target: server });
      const file = join(__dirname, 'workers/watch-and-end.ts');
      const worker = startWorker(file, { input: { library, port: proxy.port }, exitWithinMs: 3_000 });
      try {
        expect(await worker.next()).toBe('watches');
        await harm(server, proxy);
        await sleep(500);
        worker.tell('end');
        await worker.finish();
      } finally {
        await worker.close().catch(() => undefined);
        await proxy.close();
        await server.stop();
      }
    });
  },
);
