/**
 * A service with one single run that it tries again and again, until it is told to end (SIGTERM). Tells when a body
 * begins and ends, by the machine's clock, and what a try met instead.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard, currentRun, GuardError, singleRun, type Duration } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { typeormLocks, typeormRuns } from '@guard/typeorm';
import { DataSource } from 'typeorm';

export interface TickInput {
  readonly file: string;
  readonly everyMs: number;
  readonly bodyMs: number;
  readonly grace: Duration;
  readonly ttl: Duration;
}

export interface Tick {
  readonly what: 'begin' | 'end' | 'cut' | 'error';
  readonly atMs: number;
  readonly code?: string;
}

const main: WorkerMain<TickInput> = async ({ input, tell }) => {
  const { file, everyMs, bodyMs, grace, ttl } = input;
  const dataSource = await new DataSource({ type: 'better-sqlite3', database: file }).initialize();
  const locks = typeormLocks(dataSource);
  const guard = createGuard({ locks, runs: typeormRuns(dataSource), grace });
  const say = (what: Tick['what'], code?: string): Promise<void> =>
    tell({ what, atMs: Number(process.hrtime.bigint()) / 1e6, ...(code === undefined ? {} : { code }) });
  const tick = singleRun({ name: 'tick', guard, ttl }, async () => {
    await say('begin');
    const { signal } = currentRun()!;
    await sleep(bodyMs, undefined, { signal }).then(
      () => say('end'),
      () => say('cut'),
    );
  });
  let closing: Promise<void> | undefined;
  process.once('SIGTERM', () => {
    closing = guard.close();
  });
  const tries = new Set<Promise<void>>();
  while (closing === undefined) {
    const one = tick().catch((error: unknown) => say('error', GuardError.is(error) ? error.code : 'other'));
    tries.add(one);
    void one.then(() => tries.delete(one));
    await sleep(everyMs);
  }
  await closing;
  await Promise.all(tries);
  await locks.close();
  await dataSource.destroy();
};
export default main;
