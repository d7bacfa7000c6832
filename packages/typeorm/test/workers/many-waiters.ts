/** So many waits for one key in one process; answers the share of a processor that they cost. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { typeormLocks } from '@guard/typeorm';
import { DataSource } from 'typeorm';

const main: WorkerMain<{ file: string; waits: number; measureMs: number }, number> = async ({ input }) => {
  const locks = typeormLocks(new DataSource({ type: 'better-sqlite3', database: input.file }));
  const guard = createGuard({ locks });
  const waits = Array.from({ length: input.waits }, () => guard.acquire('busy', { wait: '30s' }));
  const settled = Promise.allSettled(waits);
  await sleep(1_000);
  const [before, from] = [process.cpuUsage(), performance.now()];
  await sleep(input.measureMs);
  const { user, system } = process.cpuUsage(before);
  const share = (user + system) / 1_000 / (performance.now() - from);
  await guard.close();
  await settled;
  await locks.close();
  return share;
};
export default main;
