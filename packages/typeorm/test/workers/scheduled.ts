/**
 * A node of a cluster with one task that is due every second, until it is told to end (SIGTERM). Its own clock is off by
 * so much; the store's is not. Tells of every body, and of what it heard.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, createGuard, systemClock } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { typeormLocks, typeormRuns } from '@guard/typeorm';
import { DataSource } from 'typeorm';

export interface ScheduledInput {
  readonly file: string;
  readonly skewMs: number;
  readonly bodyMs: number;
}

const main: WorkerMain<ScheduledInput> = async ({ input: { file, skewMs, bodyMs }, tell }) => {
  const dataSource = await new DataSource({ type: 'better-sqlite3', database: file }).initialize();
  const locks = typeormLocks(dataSource);
  const guard = createGuard({
    ...{ locks, runs: typeormRuns(dataSource), clock: skewed(skewMs) },
    ...{ defaults: { ttl: '2s' }, sweepInterval: '1s', grace: '2s' },
  });
  guard.task('tick', { cron: '* * * * * *' }, async () => {
    await sleep(bodyMs);
  });
  const ended = new Promise<void>((resolve) => process.once('SIGTERM', resolve));
  await guard.start();
  await tell('started');
  await ended;
  await guard.close();
  await locks.close();
  await dataSource.destroy();
};
export default main;

/** The machine's clock with its wall time off. */
function skewed(offMs: number): Clock {
  const now: Clock['now'] = () => {
    const { monoMs, wallMs } = systemClock.now();
    return { monoMs, wallMs: wallMs + offMs };
  };
  return { ...systemClock, now };
}
