/**
 * Takes locks of a guard on a database server for a short time, over and over, until it is told to stop, and writes a
 * row into a table of the application for each time: behind the fence, inside a transaction.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard, GuardError } from '@guard/core';
import { SeededRandom, type WorkerMain } from '@guard/testing';
import { assertFence, typeormLocks } from '@guard/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';

interface Input {
  readonly options: DataSourceOptions;
  readonly keys: readonly string[];
  /** Writes a key and a token into the table. */
  readonly insert: string;
  readonly seed: number;
}

const main: WorkerMain<Input> = async ({ input, tell, hear }) => {
  const random = new SeededRandom(input.seed);
  const dataSource = await new DataSource(input.options).initialize();
  const guard = createGuard({ locks: typeormLocks(dataSource), namespace: 'ns' });
  let stopped = false;
  let refused = 0;

  async function work(key: string): Promise<void> {
    while (!stopped) {
      try {
        await guard.withLock(key, { ttl: '1s', wait: '20s' }, async (lock) => {
          await sleep(random.fraction() * 5);
          await dataSource.transaction(async (manager) => {
            await assertFence(manager, lock);
            await manager.query(input.insert, [key, String(lock.token)]);
          });
        });
      } catch (error) {
        if (!GuardError.is(error, 'lock-lost') && !GuardError.is(error, 'stale-token')) throw error;
        refused += 1;
      }
    }
  }

  await tell('ready');
  const all = input.keys.map((key) => work(key));
  await hear();
  stopped = true;
  await Promise.all(all);
  await guard.close();
  await dataSource.destroy();
  await tell({ refused });
};

export default main;
