/** What the cases about transactions need: what differs between databases, and what each case has in its hands. */
import type { Guard, GuardOptions } from '@guard/core';
import type { WorkerProcess } from '@guard/testing';
import type { DataSource, DataSourceOptions, EntityManager } from 'typeorm';

/** Where one case has its tables. */
export interface TransactionPlace {
  /** An initialized data source of its own. */
  dataSource(options: Partial<DataSourceOptions>): Promise<DataSource>;
  /** Ends it and what is in it. */
  close(): Promise<void>;
}

/** What differs between databases. */
export interface TransactionParts<P extends TransactionPlace> {
  readonly newPlace: () => Promise<P>;
  /** More options of its data sources. */
  readonly options?: (place: P) => Partial<DataSourceOptions>;
  /** Makes the table `ledger` with a number of its own and a text. */
  readonly createLedger: string;
  /** Writes a line: one parameter. */
  readonly insert: string;
  /** How the statements of a settlement begin, from the first of its transaction to the last. */
  readonly statements: readonly string[];
  /** Starts the process that settles once, and dies as `more` says. */
  readonly settling: (place: P, dataSource: DataSource, more: object) => WorkerProcess;
  /** Counts open transactions of other sessions, `open`, where a server has to notice that a process is gone. */
  readonly openTransactions?: string;
}

/** What the cases of one database have in their hands. */
export interface TransactionStage {
  readonly dataSource: () => DataSource;
  /** A guard that is closed after the case. */
  guardOf(options: GuardOptions): Guard;
  /** One that has its locks and runs in the data source. */
  locked(): Guard;
  /** Writes a line into the ledger of the application. */
  settle(manager: EntityManager, what?: string): Promise<unknown>;
  /** Reads all of them. */
  ledger(): Promise<string[]>;
}
