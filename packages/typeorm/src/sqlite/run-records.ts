/**
 * Records of runs and their history, one change and one line of history in one step. Every method runs inside a
 * transaction of the caller (or is one read), so it awaits nothing.
 */
import type { CreateAnswer, RunEvent, RunRecord, RunRef, StoredRun, TransitionAnswer } from '@guard/core';
import type { Connection } from '../connection.js';
import { integer, text, type Row } from '../row.js';
import type { RunStatements } from '../statements/sqlite-runs.js';
import {
  parsed,
  parseVersion,
  rowVersion,
  runColumns,
  storedRun,
  stripped,
  versionText,
} from '../run-rows.js';

/** Lines of history behind the newest ones lose their reports of progress: progress can go on without end. */
export const MAX_PROGRESS_LINES = 512;

/** Runs of one database. */
export class RunRecords {
  readonly #connection: Connection;
  readonly #sql: RunStatements;

  constructor(connection: Connection, statements: RunStatements) {
    this.#connection = connection;
    this.#sql = statements;
  }

  /** One record, or `null`. */
  read(namespace: string, ref: RunRef): StoredRun | null {
    const row = this.#read(namespace, ref);
    return row === undefined ? null : storedRun(row);
  }

  /** Writes a new record. Runs in a write transaction. */
  create(namespace: string, run: RunRecord, event: RunEvent): CreateAnswer {
    const row = this.#connection.row(
      this.#sql.create,
      namespace,
      run.task,
      run.key,
      run.id,
      ...runColumns(run),
    );
    if (row !== undefined) {
      const seq = integer(row, 'seq');
      this.#addEvent(seq, event);
      return { status: 'created', stored: { run, version: versionText({ seq, version: 1n }) } };
    }
    const there = this.#read(namespace, run)!;
    return { status: this.#knows(there, event) ? 'created' : 'exists', stored: storedRun(there) };
  }

  /** Moves a record on, if it still has the expected version. Runs in a write transaction. */
  move(namespace: string, expected: string, next: RunRecord, event: RunEvent): TransitionAnswer {
    const version = parseVersion(expected);
    const moved =
      version === undefined
        ? undefined
        : this.#connection.row(
            this.#sql.move,
            ...runColumns(next),
            namespace,
            next.task,
            next.key,
            version.seq,
            version.version,
          );
    if (version !== undefined && moved !== undefined) {
      this.#addEvent(version.seq, event);
      const now = { seq: version.seq, version: integer(moved, 'version') };
      return { status: 'moved', stored: { run: next, version: versionText(now) } };
    }
    const there = this.#read(namespace, next);
    if (there === undefined) return { status: 'conflict', stored: null };
    return { status: this.#knows(there, event) ? 'moved' : 'conflict', stored: storedRun(there) };
  }

  /** The history, oldest first. */
  events(namespace: string, ref: RunRef): readonly RunEvent[] {
    const row = this.#read(namespace, ref);
    if (row === undefined) return [];
    const rows = this.#connection.rows(this.#sql.events, rowVersion(row).seq);
    const what = `a line of the history of run ${ref.key} of ${ref.task}`;
    return rows.map((row) => parsed<RunEvent>(() => text(row, 'event'), what));
  }

  /** Removes keys, then content, of at most `limit` records; how many. Runs in a write transaction. */
  prune(namespace: string, keysBeforeMs: number, recordsBeforeMs: number, limit: number): number {
    const over = this.#connection.rows(this.#sql.removable, namespace, keysBeforeMs, limit);
    for (const row of over) {
      this.#connection.run(this.#sql.dropEvents, integer(row, 'seq'));
      this.#connection.run(this.#sql.remove, integer(row, 'seq'));
    }
    const old = this.#connection.rows(this.#sql.strippable, namespace, recordsBeforeMs, limit - over.length);
    for (const row of old) this.#strip(row);
    return over.length + old.length;
  }

  #strip(row: Row): void {
    const { seq, version } = rowVersion(row);
    const record = JSON.stringify(stripped(storedRun(row).run));
    this.#connection.run(this.#sql.strip, record, seq, version);
    this.#connection.run(this.#sql.dropEvents, seq);
  }

  #read(namespace: string, { task, key }: RunRef): Row | undefined {
    return this.#connection.row(this.#sql.read, namespace, task, key);
  }

  #addEvent(seq: bigint, event: RunEvent): void {
    const { writeId, atMs, what, from, to } = event;
    this.#connection.run(this.#sql.addEvent, seq, writeId, atMs, what, from, to, JSON.stringify(event));
    if (what !== 'progress') return;
    this.#connection.run(this.#sql.trimProgress, seq, seq, MAX_PROGRESS_LINES);
  }

  /** A write in doubt is settled by the history (S4). */
  #knows(row: Row, { writeId }: RunEvent): boolean {
    return this.#connection.row(this.#sql.knowsWrite, rowVersion(row).seq, writeId) !== undefined;
  }
}
