/** What Guard writes inside the application's transactions, on a real Postgres. */
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
