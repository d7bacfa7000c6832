/**
 * Runs in the application's own SQLite file: the run port on tables that people can query, and the only place from
 * which `completeRun` can finish a run inside the application's transaction.
 *
 * The file is the application's: its journal mode stays as it is, and its open transactions, also those of this very
 * process, are waited for by timers. A write is on the disk before it is answered.
 */
import type {
  Clock,
  CreateAnswer,
  DueQuery,
  NodeRecord,
  PruneQuery,
  RunEvent,
  RunPage,
  RunQuery,
  RunRecord,
  RunRef,
  RunStore,
  StoredRun,
  StoredTask,
  TaskRecord,
  TransitionAnswer,
} from '@guard/core';
import type { Connection } from '../connection.js';
import type { Lifetimes } from '../lifetime.js';
import { explainMissing, type TablesPlace } from '../schema-missing.js';
import { text, type Row } from '../row.js';
import { runStatements, type RunStatements } from '../statements/sqlite-runs.js';
import type { TableNames } from '../tables.js';
import { RunRecords } from './run-records.js';
import { RunRegistry } from './run-registry.js';
import { cursorAfter, dueOf, placeOf, storedRun } from '../run-rows.js';

/** What the store works with. */
export interface SqliteRunsParts {
  readonly name: string;
  /** The file, and what its tables were asked for by. */
  readonly where: TablesPlace;
  readonly connection: Connection;
  readonly lifetimes: Lifetimes;
  readonly clock: Clock;
  readonly tables: TableNames;
}

/** The longest time for which a busy file is asked again by one call; the run engine asks again by itself. */
const PATIENCE_MS = 4_000;
/** For a report of progress, which `completeRun` may be waiting for inside the transaction that is in its way. */
const PROGRESS_PATIENCE_MS = 250;
/** Records that are pruned in one transaction, so that nobody waits for the file for long. */
const PRUNE_STRETCH = 64;
/** Rows that a list reads at a time, and how often, before it hands back what it has found. */
const LIST_STRETCH = 256;
const LIST_STRETCHES = 64;

/** A run store over one connection to the application's file. */
export class SqliteRuns implements RunStore {
  readonly name: string;
  readonly traits = { createRunning: true };

  readonly #where: TablesPlace;
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #sql: RunStatements;
  readonly #records: RunRecords;
  readonly #registry: RunRegistry;

  constructor({ name, where, connection, lifetimes, clock, tables }: SqliteRunsParts) {
    this.name = name;
    this.#where = where;
    this.#connection = connection;
    this.#clock = clock;
    this.#sql = runStatements(tables);
    this.#records = new RunRecords(connection, this.#sql);
    this.#registry = new RunRegistry(connection, lifetimes, this.#sql);
  }

  async now(): Promise<number> {
    return this.#nowMs();
  }

  async create(namespace: string, run: RunRecord, event: RunEvent): Promise<CreateAnswer> {
    try {
      return await this.#write(() => this.#records.create(namespace, run, event));
    } catch (cause) {
      return { status: 'failed', cause };
    }
  }

  get(namespace: string, ref: RunRef): Promise<StoredRun | null> {
    return this.#read(() => this.#records.read(namespace, ref));
  }

  async transition(
    namespace: string,
    expected: string,
    next: RunRecord,
    event: RunEvent,
  ): Promise<TransitionAnswer> {
    try {
      const patienceMs = event.what === 'progress' ? PROGRESS_PATIENCE_MS : PATIENCE_MS;
      return await this.#write(() => this.#records.move(namespace, expected, next, event), patienceMs);
    } catch (cause) {
      return { status: 'failed', cause };
    }
  }

  async due(namespace: string, { tasks, overdueMs, limit, cursor }: DueQuery): Promise<RunPage> {
    const { createdAtMs, seq } = cursor === undefined ? { createdAtMs: -1, seq: 0n } : placeOf(cursor);
    const byMs = this.#nowMs() - overdueMs;
    const rows = await this.#read(() =>
      this.#connection.rows(
        this.#sql.due,
        namespace,
        JSON.stringify(tasks),
        byMs,
        createdAtMs,
        createdAtMs,
        seq,
        limit + 1,
      ),
    );
    return dueOf(rows, limit);
  }

  /** Tombstones are keys, not runs. */
  async list(namespace: string, { task, states, limit, cursor }: RunQuery): Promise<RunPage> {
    const runs: StoredRun[] = [];
    let after = cursor;
    for (let stretch = 0; stretch < LIST_STRETCHES; stretch += 1) {
      const rows = await this.#newest(namespace, task, after);
      for (const [index, raw] of rows.entries()) {
        after = cursorAfter(raw);
        if (raw['pruned'] !== 0n) continue;
        if (states !== undefined && !states.includes(text(raw, 'state') as RunRecord['state'])) continue;
        runs.push(storedRun(raw));
        const isLast = index === rows.length - 1 && rows.length < LIST_STRETCH;
        if (runs.length >= limit) return isLast ? { runs } : { runs, cursor: after };
      }
      if (rows.length < LIST_STRETCH) return { runs };
    }
    return after === undefined ? { runs } : { runs, cursor: after };
  }

  async prune(namespace: string, { recordsBeforeMs, keysBeforeMs, limit }: PruneQuery): Promise<number> {
    let gone = 0;
    while (gone < limit) {
      const stretch = Math.min(PRUNE_STRETCH, limit - gone);
      const now = await this.#write(() =>
        this.#records.prune(namespace, keysBeforeMs, recordsBeforeMs, stretch),
      );
      gone += now;
      if (now < stretch) break;
    }
    return gone;
  }

  events(namespace: string, ref: RunRef): Promise<readonly RunEvent[]> {
    return this.#read(() => this.#records.events(namespace, ref));
  }

  task(namespace: string, task: string): Promise<StoredTask | null> {
    return this.#read(() => this.#registry.task(namespace, task));
  }

  putTask(namespace: string, expected: string | null, next: TaskRecord): Promise<string | null> {
    return this.#write(() => this.#registry.putTask(namespace, expected, next));
  }

  putNode(namespace: string, node: NodeRecord, ttlMs: number): Promise<void> {
    return this.#write(() => this.#registry.putNode(namespace, node, ttlMs));
  }

  removeNode(namespace: string, id: string): Promise<void> {
    return this.#write(() => this.#registry.removeNode(namespace, id));
  }

  nodes(namespace: string): Promise<readonly NodeRecord[]> {
    return this.#read(() => this.#registry.nodes(namespace));
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  #newest(namespace: string, task: string | undefined, cursor: string | undefined): Promise<Row[]> {
    const { createdAtMs, seq } =
      cursor === undefined ? { createdAtMs: Number.MAX_SAFE_INTEGER, seq: 0n } : placeOf(cursor);
    const place = [createdAtMs, createdAtMs, seq, LIST_STRETCH];
    return this.#read(() =>
      task === undefined
        ? this.#connection.rows(this.#sql.newest, namespace, ...place)
        : this.#connection.rows(this.#sql.newestOfTask, namespace, task, ...place),
    );
  }

  #write<T>(work: () => T, patienceMs = PATIENCE_MS): Promise<T> {
    return this.#explained(this.#connection.write(patienceMs, () => this.#connection.immediate(work)));
  }

  #read<T>(work: () => T): Promise<T> {
    return this.#explained(this.#connection.read(PATIENCE_MS, work));
  }

  async #explained<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw explainMissing(error, this.#where);
    }
  }

  #nowMs(): number {
    return Math.floor(this.#clock.now().wallMs);
  }
}
