/** Processes of their own on one etcd, which are stopped past their leases, and killed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemRandom } from '@guard/core';
import { SharedHoldLog, startWorker, type WorkerProcess } from '@guard/testing';
import { server, stopServer } from './support/place.js';

let folder: string;
const workers: WorkerProcess<string[]>[] = [];
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'guard-processes-'))));
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  rmSync(folder, { recursive: true, force: true });
});
afterAll(stopServer);

/** Workers on one namespace, and the log that they share. */
async function start(count: number): Promise<readonly [SharedHoldLog, ...WorkerProcess<string[]>[]]> {
  const { urls } = await server();
  const log = new SharedHoldLog(join(folder, 'log'));
  const shared = { urls, namespace: `t-${systemRandom.id()}`, log: log.file };
  const file = join(__dirname, 'workers/holder.ts');
  for (let n = 0; n < count; n += 1) {
    workers.push(startWorker<string[]>(file, { input: { ...shared, name: `p${n}` }, log }));
  }
  for (const worker of workers) expect(await worker.next()).toBe('ready');
  return [log, ...workers];
}

async function asked(worker: WorkerProcess<string[]>, message: string): Promise<unknown> {
  worker.tell(message);
  return worker.next();
}

it('[B17] [S5] a waiter that was stopped past its ticket does not enter while another one holds', async () => {
  const [log, p1, p2, p3] = await start(3);
  expect(await asked(p1!, 'hold z 4000')).toBe('held');
  p2!.tell('hold z 2000');
  await sleep(500);
  await p2!.pause();
  await sleep(4_000);
  expect(await asked(p1!, 'release')).toBe('released');
  expect(await asked(p3!, 'hold z 2000')).toBe('held');
  p2!.resume();
  const entered = p2!.next();
  await sleep(1_500);
  expect(await asked(p3!, 'release')).toBe('released');
  expect(await entered).toBe('held');
  expect(log.problems()).toEqual([]);
});

it('[B30] [L2] the lock of a killed process goes to its waiter, not before its ttl and not long after it', async () => {
  const [log, p1, p2] = await start(2);
  expect(await asked(p1!, 'hold min 2000')).toBe('held');
  const heldAtMs = performance.now();
  p2!.tell('hold min 2000');
  await sleep(200);
  await p1!.kill();
  expect(await p2!.next()).toBe('held');
  const tookMs = performance.now() - heldAtMs;
  expect(tookMs).toBeGreaterThan(1_900);
  // The ttl and 1.5 s, a third of a ticket's life until the waiter asks, and a busy machine.
  expect(tookMs).toBeLessThan(8_000);
  expect(log.problems()).toEqual([]);
});

it('[S1] [S2] four processes share locks over a kill and a stop past the lease, and all others go on', async () => {
  const [log, ...all] = await start(4);
  for (const worker of all) worker.tell('hammer a b c');
  await sleep(1_500);
  const [killed, stopped, ...others] = all;
  await killed!.kill();
  await stopped!.pause();
  await sleep(4_500);
  const before = log.events().length;
  stopped!.resume();
  await sleep(1_000);
  const left = [stopped!, ...others];
  for (const worker of left) worker.tell('end');
  for (const worker of left) expect(await worker.finish()).toEqual([]);
  expect(log.problems()).toEqual([]);
  const names = new Set(
    log
      .events()
      .slice(before)
      .map(({ holder }) => holder.slice(0, 2)),
  );
  expect([...names].sort()).toEqual(['p1', 'p2', 'p3']);
});
