/**
 * A service whose disk is full for a while: no file may grow, and not even a page of one can be written. Tells what it
 * met then, and afterwards.
 */
import { execFileSync } from 'node:child_process';
import { createGuard, GuardError } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { typeormLocks, typeormState } from '@guard/typeorm';
import { DataSource } from 'typeorm';

const main: WorkerMain<{ file: string }> = async ({ input: { file }, tell }) => {
  const dataSource = new DataSource({ type: 'better-sqlite3', database: file });
  const [locks, state] = [typeormLocks(dataSource), typeormState(dataSource)];
  const guard = createGuard({ locks, state });
  const outcome = (work: Promise<unknown>): Promise<string> =>
    work.then(
      (value) => (value === null ? 'busy' : 'done'),
      (error: unknown) => (GuardError.is(error) ? error.code : 'other'),
    );
  // Without a listener the signal that comes with such a write ends the process.
  process.on('SIGXFSZ', () => undefined);
  const limit = (bytes: number | 'unlimited'): unknown =>
    execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`]);
  const warm = await guard.acquire('warm');
  await guard.state.set('before', 1);

  limit(1_000);
  await tell({
    tried: await outcome(guard.tryAcquire('k')),
    waited: await outcome(guard.withLock('k', { wait: '300ms' }, () => 'inside')),
    written: await outcome(guard.state.set('after', 1)),
    run: await outcome(guard.run('task', { ttl: '300ms' }, () => 'inside')),
  });
  limit('unlimited');
  await tell({
    tried: await outcome(guard.tryAcquire('k')),
    held: (await guard.inspect('k')).held,
    released: await warm.release(),
  });
  await guard.close();
  await locks.close();
  await state.close();
};
export default main;
