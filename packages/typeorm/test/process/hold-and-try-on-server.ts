/**
 * Holds a lock of a guard on a database server until it is killed, or tries to get it, over and over, and says what it
 * saw of the lock of the other and when it had it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard, type Duration } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { typeormLocks } from '@guard/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';

interface Input {
  readonly options: DataSourceOptions;
  readonly key: string;
  readonly ttl: Duration;
  readonly what: 'hold' | 'try';
}

/** What the one that tries says. */
export interface Tried {
  /** The zone that this process lives in. */
  readonly zone: string;
  /** How long the lock of the other had to live yet, each time, in milliseconds. */
  readonly livesForMs: readonly number[];
  /** The machine's clock, when it had the lock itself. */
  readonly gotAtMs: number;
}

const TRIES = 100;

const main: WorkerMain<Input> = async ({ input, tell }) => {
  const { options, key, ttl, what } = input;
  const dataSource = await new DataSource(options).initialize();
  const guard = createGuard({ locks: typeormLocks(dataSource), namespace: 'ns' });
  if (what === 'hold') {
    await guard.acquire(key, { ttl });
    await tell('held');
    await sleep(60_000);
  }
  await tell('tries');
  const livesForMs: number[] = [];
  for (let n = 0; n < TRIES; n += 1) {
    const { expiresInMs, held } = await guard.inspect(key);
    if (held) livesForMs.push(expiresInMs!);
    const lock = await guard.tryAcquire(key, { ttl });
    if (lock !== null) {
      const { timeZone: zone } = Intl.DateTimeFormat().resolvedOptions();
      await tell({ zone, livesForMs, gotAtMs: Date.now() } satisfies Tried);
      break;
    }
    await sleep(100);
  }
  await guard.close();
  await dataSource.destroy();
};

export default main;
