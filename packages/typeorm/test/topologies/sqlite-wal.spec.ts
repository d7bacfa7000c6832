/**
 * Runs, and what Guard writes inside the application's transactions, in a file with a write-ahead log. A file for which
 * nobody asks for one has a rollback journal: `contract.spec.ts` and `transaction.spec.ts` play that. Locks and state
 * have a file of their own, which is the same in both cases.
 */
import { ensureSchema, typeormRuns } from '@guard/typeorm';
import { describeRunStore } from '@guard/testing';
import type { DataSource, DataSourceOptions } from 'typeorm';
import { startChild } from '../support/child.js';
import { shell } from '../support/drivers.js';
import { newFile } from '../support/file.js';
import { sentencesOnly } from '../support/runners.js';
import { describeTransactions } from '../support/transaction-suite.js';

jest.setTimeout(120_000);

const WAL = { enableWAL: true } as Partial<DataSourceOptions>;

/** A file with a log. */
async function newFileWithLog() {
  const place = newFile();
  await (await place.dataSource(WAL)).destroy();
  return place;
}

it('is a file with a log, for whoever opens it', async () => {
  const place = await newFileWithLog();
  await place.dataSource({});
  const database = shell(place.file);
  expect(database.pragma('journal_mode', { simple: true })).toBe('wal');
  database.close();
  await place.close();
});

describeRunStore({
  ...{ runner: sentencesOnly, name: 'typeorm on SQLite with a write-ahead log' },
  traits: { createRunning: true },
  create: async () => {
    const place = await newFileWithLog();
    const opened: { close(): Promise<void> }[] = [];
    const connect = async () => {
      const dataSource: DataSource = await place.dataSource({});
      if (opened.length === 0) await ensureSchema(dataSource);
      const store = typeormRuns(dataSource);
      opened.push(store);
      return store;
    };
    const cleanup = async (): Promise<void> => {
      for (const one of opened) await one.close();
      await place.close();
    };
    return { store: await connect(), connect, cleanup };
  },
});

describeTransactions('SQLite with a write-ahead log', {
  newPlace: newFileWithLog,
  createLedger: 'CREATE TABLE ledger (id integer PRIMARY KEY, what text)',
  insert: 'INSERT INTO ledger (what) VALUES (?)',
  statements: ['BEGIN TRANSACTION', 'INSERT', 'UPDATE', 'INSERT', 'COMMIT'],
  settling: ({ file }, _dataSource, more) => startChild('settle.ts', { file, ...more }),
});
