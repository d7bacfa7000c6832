/** What Guard writes inside the application's transactions, on a real Postgres. */
import { createGuard } from '@guard/core';
import { assertFence, createRun, ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import { newSchema, onPostgres } from '../support/postgres.js';
import { settlingOnServer } from '../support/settling-on-server.js';
import { describeTransactions } from '../support/transaction-suite.js';

jest.setTimeout(120_000);

const postgres = onPostgres();
describeTransactions('Postgres', {
  newPlace: () => newSchema(postgres.server.url),
  options: ({ schema }) => ({ extra: { options: `-c search_path=${schema}` } }),
  createLedger: 'CREATE TABLE ledger (id serial PRIMARY KEY, what text)',
  insert: 'INSERT INTO ledger (what) VALUES ($1)',
  statements: ['START TRANSACTION', 'INSERT', 'WITH', 'COMMIT'],
  settling: settlingOnServer,
  openTransactions:
    "SELECT count(*) AS open FROM pg_stat_activity WHERE state LIKE '%transaction%' AND pid <> pg_backend_pid()",
});

describe('a transaction of Postgres on another server than the master', () => {
  it('[S6] [S1] is refused for what it is, and the server that is named is the one to write to', async () => {
    const place = await newSchema(postgres.server.url);
    const readOnly = new URL(place.url);
    readOnly.searchParams.set('options', '-c default_transaction_read_only=on');
    const dataSource = await place.dataSource({
      replication: { master: { url: place.url }, slaves: [{ url: readOnly.href }] },
    });
    await ensureSchema(dataSource);
    const guard = createGuard({ locks: typeormLocks(dataSource), runs: typeormRuns(dataSource) });
    const lock = await guard.acquire('account');
    const runner = dataSource.createQueryRunner('slave');
    await runner.startTransaction();
    const refused = {
      code: 'unavailable',
      message: expect.stringContaining('this transaction takes no writes'),
    };
    await expect(assertFence(runner.manager, lock)).rejects.toMatchObject(refused);
    await runner.rollbackTransaction();
    await runner.startTransaction();
    await expect(createRun(runner.manager, guard, 'later')).rejects.toMatchObject(refused);
    await runner.rollbackTransaction();
    await runner.release();
    await dataSource.transaction((manager) => assertFence(manager, lock));
    await guard.close();
    await place.close();
  });
});
