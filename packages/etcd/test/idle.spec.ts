/** Programs that are done while streams to etcd are open: real processes, which have to end by themselves. */
import { join } from 'node:path';
import { systemRandom } from '@guard/core';
import { startTcpProxy, startWorker } from '@guard/testing';
import { server, stopServer } from './support/place.js';
import type { CloseInput } from './workers/close-and-end.js';
import type { IdleInput } from './workers/idle-and-end.js';

afterAll(stopServer);

describe.each<IdleInput['leaves']>(['a watch', 'an inbox and keep-alives'])(
  'A program that leaves %s open, and has nothing else to do',
  (leaves) => {
    it.each([
      ['with its clients open', false],
      ['once it closed its clients', true],
    ])('[L5] ends %s', async (_, closes) => {
      const { urls } = await server();
      const input: IdleInput = { urls, namespace: `t-${systemRandom.id()}`, leaves, closes };
      const worker = startWorker(join(__dirname, 'workers/idle-and-end.ts'), { input, exitWithinMs: 5_000 });
      try {
        expect(await worker.next()).toBe('idle');
        worker.tell('end');
        await worker.finish();
      } finally {
        await worker.close().catch(() => undefined);
      }
    });
  },
);

it('[L5] A program that is shut down while its network is gone ends all the same', async () => {
  const [url = ''] = (await server()).urls;
  const { hostname, port } = new URL(url);
  await using proxy = await startTcpProxy({ target: { host: hostname, port: Number(port) } });
  const input: CloseInput = { url: `http://127.0.0.1:${proxy.port}`, namespace: `t-${systemRandom.id()}` };
  const worker = startWorker(join(__dirname, 'workers/close-and-end.ts'), { input, exitWithinMs: 5_000 });
  try {
    expect(await worker.next()).toBe('holds');
    proxy.cut();
    worker.tell('close');
    await worker.finish();
  } finally {
    await worker.close().catch(() => undefined);
  }
});
