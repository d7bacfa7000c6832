/** TypeORM 0.3, which the peer range admits beside 1.x, on Postgres: everything that touches the library's own code, once. */
import { createGuard } from '@guard/core';
import {
  assertFence,
  completeRun,
  createRun,
  guardMigrations,
  typeormLocks,
  typeormRuns,
} from '@guard/typeorm';
import { newSchema, onPostgres } from '../support/postgres.js';

// For this file, and for the sources of the adapter that it loads.
jest.mock('typeorm', () => jest.requireActual<object>('typeorm03'));

const postgres = onPostgres();

it('keeps locks, wakes waiters, and writes runs in the application’s transaction with TypeORM 0.3', async () => {
  const place = await newSchema(postgres.server.url);
  const dataSource = await place.dataSource({ migrations: [...guardMigrations()] });
  await dataSource.runMigrations();
  const guard = createGuard({
    locks: typeormLocks(dataSource),
    runs: typeormRuns(dataSource),
    namespace: 'ns',
  });
  const served: number[] = [];
  const work = [1, 2, 3].map((n) => guard.withLock('k', { wait: '20s' }, () => void served.push(n)));
  await Promise.all(work);
  expect(served).toEqual([1, 2, 3]);
  const outcome = await guard.run('settle', { key: 'k' }, () =>
    guard.withLock('account', (lock) =>
      dataSource.transaction(async (manager) => {
        await assertFence(manager, lock);
        await createRun(manager, guard, 'send', { key: 'k' });
        await completeRun(manager, { cents: 5 });
      }),
    ),
  );
  expect(outcome.status).toBe('completed');
  expect((await guard.runs.get('settle', 'k'))?.run).toMatchObject({
    state: 'completed',
    value: '{"cents":5}',
  });
  expect((await guard.runs.get('send', 'k'))?.run.state).toBe('pending');
  await guard.close();
  await dataSource.undoLastMigration();
  await place.close();
});
