/** What Guard writes inside the application's transactions, on SQLite. */
import { startChild } from './support/child.js';
import { newFile } from './support/file.js';
import { describeTransactions } from './support/transaction-suite.js';

jest.setTimeout(120_000);

describeTransactions('SQLite', {
  newPlace: async () => newFile(),
  createLedger: 'CREATE TABLE ledger (id integer PRIMARY KEY, what text)',
  insert: 'INSERT INTO ledger (what) VALUES (?)',
  statements: ['BEGIN TRANSACTION', 'INSERT', 'UPDATE', 'INSERT', 'COMMIT'],
  settling: ({ file }, _dataSource, more) => startChild('settle.ts', { file, ...more }),
});
