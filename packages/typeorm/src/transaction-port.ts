/** What each database has to offer for Guard's part of a transaction of the application. */
import type { RunEvent, RunRecord } from '@guard/core';
import type { RowVersion } from './run-rows.js';

/** A statement with its parameters. */
export interface Sent {
  readonly statement: string;
  readonly parameters: readonly unknown[];
}

/** A look that takes several statements. */
export interface Look {
  readonly open: Sent;
  /** A row with `seq`: there is one. */
  readonly look: Sent;
  /** Sent whatever became of the look. */
  readonly close: Sent;
}

/** The statements for one database. */
export interface TransactionWrites {
  /** → `now`, in milliseconds since the epoch. None: the time of the process is that of the database. */
  readonly askTime?: Sent;
  /** A row with the largest token; it is ours: nobody with a larger one was here before. None: somebody was. */
  passFence(resource: string, token: bigint): Sent;
  /** → the largest token, where `passFence` does not answer it. */
  readFence?(resource: string): Sent;
  /** How to see that a key is taken, where `create` would lock more than the key to find out. */
  find?(namespace: string, run: RunRecord): Look;
  /** A row with `seq`: the record was made. None: the key has one. */
  create(namespace: string, run: RunRecord, event: RunEvent): Sent;
  /** A row: the record was moved. None: it has moved on. */
  move(namespace: string, version: RowVersion, next: RunRecord, event: RunEvent): Sent;
  /** The line of history that follows, where it is a statement of its own. */
  line(seq: unknown, event: RunEvent): Sent | undefined;
  /** → the record as JSON. */
  read(namespace: string, run: RunRecord): Sent;
  /** The same for a row that `find` found. */
  readRow?(seq: unknown): Sent;
  /** The error itself, or one that says what to do about it. */
  explained(cause: unknown): unknown;
}
