/**
 * Takes locks of a guard on a database server, over and over, for so long, and adds one to a number beside each lock, by
 * compare-and-set. Answers how many times it had one. Whatever a call throws ends it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard } from '@guard/core';
import { SeededRandom, type WorkerMain } from '@guard/testing';
import { typeormLocks, typeormState } from '@guard/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';

interface Input {
  readonly options: DataSourceOptions;
  readonly keys: readonly string[];
  readonly holdMs: number;
  readonly forMs: number;
  readonly seed: number;
}

const main: WorkerMain<Input, number> = async ({ input, tell, hear }) => {
  const { options, keys, holdMs, forMs } = input;
  const random = new SeededRandom(input.seed);
  const dataSource = await new DataSource(options).initialize();
  const guard = createGuard({
    ...{ locks: typeormLocks(dataSource), state: typeormState(dataSource) },
    namespace: 'ns',
  });
  let grants = 0;

  async function work(): Promise<void> {
    for (const untilMs = performance.now() + forMs; performance.now() < untilMs; grants += 1) {
      const key = keys[random.integer(0, keys.length - 1)]!;
      await guard.withLock(key, { ttl: '5s', wait: '30s' }, async () => {
        const { version, value } = (await guard.state.get<number>(key))!;
        await sleep(holdMs);
        const written = await guard.state.update(key, version, value + 1);
        if (written === null) throw new Error(`somebody else counted under the lock of ${key}`);
      });
    }
  }

  await tell('ready');
  await hear();
  await Promise.all(Array.from({ length: 4 }, work));
  await guard.close();
  await dataSource.destroy();
  return grants;
};

export default main;
