/**
 * Runs in the database of a server: the run port on tables that people can query, and the place from which `completeRun` can
 * finish a run inside the application's transaction.
 *
 * A change and its line of history are one statement. A change that was not made costs a second one, which shows what is
 * there, and whether an earlier sending of the same change did it (S4).
 */
import type {
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
import { count, integer, text, type Row } from '../row.js';
import {
  cursorAfter,
  dueOf,
  parsed,
  parseVersion,
  placeOf,
  storedRun,
  stripped,
  versionText,
} from '../run-rows.js';
import type { RunStatements } from '../statements/postgres-runs.js';
import { RunRegistry } from './run-registry.js';
import { createValues, moveValues } from './run-values.js';
import type { Statements, Value } from './statements.js';

/** Lines of history behind the newest ones lose their reports of progress: progress can go on without end. */
const MAX_PROGRESS_LINES = 512;
/** For a report of progress, which a transaction of the application may be in the way of. */
const PROGRESS_PATIENCE_MS = 1_000;
/** Records that are pruned in one statement. */
const PRUNE_STRETCH = 256;
/** Rows that a list reads at a time, and how often, before it hands back what it has found. */
const LIST_STRETCH = 256;
const LIST_STRETCHES = 64;

/** What a run store works with. */
export interface ServerRunsParts {
  readonly name: string;
  readonly statements: Statements;
  readonly sql: RunStatements;
}

/** A run store on the pool of a data source. */
export class ServerRuns implements RunStore {
  readonly name: string;
  readonly traits = { createRunning: true };

  readonly #statements: Statements;
  readonly #sql: RunStatements;
  readonly #registry: RunRegistry;

  constructor({ name, statements, sql }: ServerRunsParts) {
    this.name = name;
    this.#statements = statements;
    this.#sql = sql;
    this.#registry = new RunRegistry(statements, this.#sql);
  }

  async now(): Promise<number> {
    const [row] = await this.#statements.rows(this.#sql.now, []);
    return count(row!, 'now');
  }

  async create(namespace: string, run: RunRecord, event: RunEvent): Promise<CreateAnswer> {
    try {
      const [row] = await this.#statements.rows(this.#sql.create, createValues(namespace, run, event));
      if (row !== undefined) {
        const version = versionText({ seq: integer(row, 'seq'), version: 1n });
        return { status: 'created', stored: { run, version } };
      }
      const there = await this.#judge(namespace, run, event);
      if (there === undefined) throw new Error(`run ${run.key} was removed while it was created`);
      return { status: there['known'] === 't' ? 'created' : 'exists', stored: storedRun(there) };
    } catch (cause) {
      return { status: 'failed', cause };
    }
  }

  async get(namespace: string, { task, key }: RunRef): Promise<StoredRun | null> {
    const [row] = await this.#statements.rows(this.#sql.read, [namespace, task, key]);
    return row === undefined ? null : storedRun(row);
  }

  async transition(
    namespace: string,
    expected: string,
    next: RunRecord,
    event: RunEvent,
  ): Promise<TransitionAnswer> {
    try {
      const version = parseVersion(expected);
      const moved = version === undefined ? undefined : await this.#move(namespace, version, next, event);
      if (version !== undefined && moved !== undefined) {
        const now = versionText({ seq: version.seq, version: integer(moved, 'version') });
        return { status: 'moved', stored: { run: next, version: now } };
      }
      const there = await this.#judge(namespace, next, event);
      if (there === undefined) return { status: 'conflict', stored: null };
      return { status: there['known'] === 't' ? 'moved' : 'conflict', stored: storedRun(there) };
    } catch (cause) {
      return { status: 'failed', cause };
    }
  }

  async due(namespace: string, { tasks, overdueMs, limit, cursor }: DueQuery): Promise<RunPage> {
    const { createdAtMs, seq } = cursor === undefined ? { createdAtMs: -1, seq: 0n } : placeOf(cursor);
    const place = [createdAtMs, String(seq), limit + 1];
    const rows = await this.#statements.rows(this.#sql.due, [namespace, tasks, overdueMs, ...place]);
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
      const removed = await this.#remove(namespace, keysBeforeMs, stretch);
      const bare = removed < stretch ? await this.#strip(namespace, recordsBeforeMs, stretch - removed) : 0;
      gone += removed + bare;
      if (removed + bare < stretch) break;
    }
    return gone;
  }

  async events(namespace: string, { task, key }: RunRef): Promise<readonly RunEvent[]> {
    const rows = await this.#statements.rows(this.#sql.events, [namespace, task, key]);
    const what = `a line of the history of run ${key} of ${task}`;
    return rows.map((row) => parsed<RunEvent>(() => text(row, 'event'), what));
  }

  task(namespace: string, task: string): Promise<StoredTask | null> {
    return this.#registry.task(namespace, task);
  }

  putTask(namespace: string, expected: string | null, next: TaskRecord): Promise<string | null> {
    return this.#registry.putTask(namespace, expected, next);
  }

  putNode(namespace: string, node: NodeRecord, ttlMs: number): Promise<void> {
    return this.#registry.putNode(namespace, node, ttlMs);
  }

  removeNode(namespace: string, id: string): Promise<void> {
    return this.#registry.removeNode(namespace, id);
  }

  nodes(namespace: string): Promise<readonly NodeRecord[]> {
    return this.#registry.nodes(namespace);
  }

  async close(): Promise<void> {
    this.#statements.close();
  }

  async #move(
    namespace: string,
    version: NonNullable<ReturnType<typeof parseVersion>>,
    next: RunRecord,
    event: RunEvent,
  ): Promise<Row | undefined> {
    const values = moveValues(namespace, version, next, event);
    const isProgress = event.what === 'progress';
    const patience = isProgress ? [PROGRESS_PATIENCE_MS] : [];
    const [row] = await this.#statements.rows(this.#sql.move, values, ...patience);
    if (row !== undefined && isProgress) {
      await this.#statements.rows(this.#sql.trimProgress, [String(version.seq), MAX_PROGRESS_LINES]);
    }
    return row;
  }

  async #judge(namespace: string, { task, key }: RunRef, event: RunEvent): Promise<Row | undefined> {
    const [row] = await this.#statements.rows(this.#sql.judge, [namespace, task, key, event.writeId]);
    return row;
  }

  #newest(namespace: string, task: string | undefined, cursor: string | undefined): Promise<readonly Row[]> {
    const { createdAtMs, seq } =
      cursor === undefined ? { createdAtMs: Number.MAX_SAFE_INTEGER, seq: 0n } : placeOf(cursor);
    const values: readonly Value[] = [namespace, createdAtMs, String(seq), LIST_STRETCH];
    return task === undefined
      ? this.#statements.rows(this.#sql.newest, values)
      : this.#statements.rows(this.#sql.newestOfTask, [...values, task]);
  }

  async #remove(namespace: string, beforeMs: number, limit: number): Promise<number> {
    const [row] = await this.#statements.rows(this.#sql.remove, [namespace, Math.floor(beforeMs), limit]);
    return count(row!, 'gone');
  }

  async #strip(namespace: string, beforeMs: number, limit: number): Promise<number> {
    const values = [namespace, Math.floor(beforeMs), limit];
    const rows = await this.#statements.rows(this.#sql.strippable, values);
    if (rows.length === 0) return 0;
    const columns = [
      rows.map((old) => String(integer(old, 'seq'))),
      rows.map((old) => String(integer(old, 'version'))),
      rows.map((old) => JSON.stringify(stripped(storedRun(old).run))),
    ];
    const [row] = await this.#statements.rows(this.#sql.strip, this.#statements.batch(columns));
    return count(row!, 'stripped');
  }
}
