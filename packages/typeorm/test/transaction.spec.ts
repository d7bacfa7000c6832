/** What Guard writes inside the application's transactions, on SQLite. */
import { startChild } from './support/child.js';
import { newPlace } from './support/place.js';
import type { TransactionPlace } from './support/transaction-stage.js';
import { describeTransactions } from './support/transaction-suite.js';

jest.setTimeout(120_000);

/** A file of its own. */
async function newFile(): Promise<TransactionPlace & { readonly file: string }> {
  const place = newPlace();
  const made = new Set<{ destroy(): Promise<void> }>();
  return {
    file: place.file,
    dataSource: async (options) => {
      const dataSource = await place.dataSource(options).initialize();
      made.add(dataSource);
      return dataSource;
    },
    close: async () => {
      for (const one of made) await one.destroy();
      place.remove();
    },
  };
}

describeTransactions('SQLite', {
  newPlace: newFile,
  createLedger: 'CREATE TABLE ledger (id integer PRIMARY KEY, what text)',
  insert: 'INSERT INTO ledger (what) VALUES (?)',
  statements: ['BEGIN TRANSACTION', 'INSERT', 'UPDATE', 'INSERT', 'COMMIT'],
  settling: ({ file }, _dataSource, more) => startChild('settle.ts', { file, ...more }),
});
