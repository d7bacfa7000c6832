/** A schedule of every second in real processes on one SQLite file, whose clocks differ, and which are killed and stopped. */
import { join } from 'node:path';
import { createGuard, type RunRecord } from '@guard/core';
import { startWorker, type WorkerProcess } from '@guard/testing';
import { ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import { newPlace, type Place } from './support/place.js';
import type { ScheduledInput } from './workers/scheduled.js';

jest.setTimeout(120_000);

let place: Place;
let workers: WorkerProcess[];

beforeEach(async () => {
  place = newPlace();
  workers = [];
  const dataSource = await place.dataSource().initialize();
  await ensureSchema(dataSource);
  await dataSource.destroy();
});

afterEach(async () => {
  for (const worker of workers) await worker.close();
  place.remove();
});

async function node(input: Omit<ScheduledInput, 'file'>): Promise<WorkerProcess> {
  const worker = startWorker(join(__dirname, 'workers', 'scheduled.ts'), {
    input: { ...input, file: place.file },
    execArgv: ['--conditions=@guard/source'],
  });
  workers.push(worker);
  expect(await worker.next()).toBe('started');
  return worker;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Every record of the task. */
async function records(): Promise<readonly RunRecord[]> {
  const dataSource = await place.dataSource().initialize();
  const locks = typeormLocks(dataSource);
  const guard = createGuard({ locks, runs: typeormRuns(dataSource) });
  const { runs } = await guard.runs.list({ task: 'tick', limit: 1_000 });
  await guard.close();
  await locks.close();
  await dataSource.destroy();
  return runs.map(({ run }) => run);
}

/** Every second from the first occurrence to the last is in one record or in one summary. */
function gapsIn(runs: readonly RunRecord[]): number[] {
  const instants = new Set<number>();
  for (const run of runs) {
    if (run.scheduledForMs !== undefined) instants.add(run.scheduledForMs);
    if (run.state !== 'expired' || run.summary === undefined) continue;
    const { fromMs, toMs } = run.summary;
    for (let at = (Math.floor(fromMs / 1_000) + 1) * 1_000; at <= toMs; at += 1_000) instants.add(at);
  }
  const sorted = [...instants].sort((a, b) => a - b);
  return sorted.filter((at, place) => place > 0 && at - sorted[place - 1]! !== 1_000);
}

describe('four processes whose clocks are up to two seconds off', () => {
  it('[V1] [B156] run each second once, and none is missing', async () => {
    await Promise.all([-2_000, -500, 700, 2_000].map((skewMs) => node({ skewMs, bodyMs: 5 })));
    await pause(12_000);
    for (const worker of workers) worker.signal('SIGTERM');
    for (const worker of workers) await worker.finish();
    const runs = await records();
    const completed = runs.filter(({ state }) => state === 'completed');
    expect(completed.length).toBeGreaterThanOrEqual(8);
    expect(runs.filter(({ state }) => !['completed', 'expired'].includes(state))).toEqual([]);
    expect(completed.every(({ attempt, takeovers }) => attempt === 1 && takeovers === 0)).toBe(true);
    expect(gapsIn(runs)).toEqual([]);
  });

  it('[V2] [B133] [L4] complete each occurrence that they began, also when one is killed and one is stopped', async () => {
    const nodes = await Promise.all(
      [-2_000, -500, 700, 2_000].map((skewMs) => node({ skewMs, bodyMs: 300 })),
    );
    await pause(3_000);
    await nodes[3]!.kill();
    await nodes[0]!.pause();
    await pause(6_000);
    nodes[0]!.resume();
    await pause(4_000);
    for (const worker of nodes.slice(0, 3)) worker.signal('SIGTERM');
    for (const worker of nodes.slice(0, 3)) await worker.finish();
    const runs = await records();
    expect(gapsIn(runs)).toEqual([]);
    expect(runs.filter(({ state }) => state === 'completed').length).toBeGreaterThanOrEqual(5);
    // What a process died or stood still in went on elsewhere; overlapping ones were skipped with a reason.
    for (const run of runs) expect(['completed', 'expired', 'skipped', 'pending']).toContain(run.state);
  });
});
