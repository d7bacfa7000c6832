/**
 * What Guard writes inside a transaction of the application, and nowhere else does it touch one (S9): the fence that
 * refuses a stale holder together with everything it wrote, the completion of a run together with its effects, and the
 * wish for a run together with its reason. All go through the manager that the caller hands over, so they are committed or rolled back with the caller's work.
 */
import { activeRun, GuardError, invalidArgument } from '@guard/core';
import type { CreatableRuns, CreateRunOptions, Guard, Lock, RunRecord, RunStore } from '@guard/core';
import type { DataSource, EntityManager } from 'typeorm';
import { targetOf } from './dialect.js';
import { runTablesFor } from './run-tables.js';
import { parsedRecord, parseVersion, type RowVersion } from './run-rows.js';
import { checkTableOptions, type TableOptions } from './tables.js';
import type { Look, Sent, TransactionWrites } from './transaction-port.js';
import { inTurn } from './transaction-turns.js';
import { writesFor } from './transaction-writes.js';

/**
 * Lets the transaction go on only if no newer holder of the lock has been here: for each lock the database keeps the
 * largest token that passed, and accepts no smaller one. The lock may come from any backend. Call it at the beginning
 * of the transaction, so that the transaction has the write lock before it reads.
 *
 * @throws GuardError `stale-token`: a newer holder has been here, roll back; `lock-lost`, `lock-suspect` as for
 * `lock.assertHeld()`; `invalid-argument`: no open transaction, not a lock of a guard, or a bad option;
 * `schema-missing`. The database's own error where the transaction met another one (a serialization failure, a
 * deadlock): it is over, run the whole of it again.
 */
export async function assertFence(
  manager: EntityManager,
  lock: Lock,
  options: TableOptions = {},
): Promise<void> {
  checkTableOptions(options);
  const { backendName, fullKey, token, key } = checkLock(lock);
  const writes = writesFor(targetOf(transactionOf(manager), options), options);
  const resource = `${backendName}|${fullKey}`;
  const [passed] = await query(manager, writes, writes.passFence(resource, token));
  if (String(passed?.['token']) !== String(token)) {
    const [there] =
      writes.readFence === undefined ? [passed] : await query(manager, writes, writes.readFence(resource));
    throw new GuardError(
      'stale-token',
      `a holder of ${key} with token ${String(there?.['token'])} wrote before: ours is ${token}`,
      { key },
    );
  }
  lock.assertHeld();
}

/**
 * Completes the current run inside the transaction: for effects in this database the run then happens exactly once.
 * Commit afterwards; what the work returns later is not recorded, `value` is.
 *
 * @throws GuardError `stale-token`: somebody else moved the run on, roll back; `lock-lost`, `lock-suspect`;
 * `invalid-argument`: not inside a run, no open transaction, the run is kept in another database or schema, or this work
 * has completed it before (in this transaction, or in one that was committed): roll back, nothing is missing.
 */
export async function completeRun(manager: EntityManager, value?: unknown): Promise<void> {
  const run = activeRun();
  if (run === undefined) throw new GuardError('invalid-argument', 'completeRun must be called inside a run');
  const dataSource = transactionOf(manager);
  const tables = tablesOf(dataSource, run.store, `run ${run.key}`);
  const { expected, next, event } = await run.prepareCompletion(value);
  const writes = writesFor(targetOf(dataSource), tables);
  const version = parseVersion(expected);
  const moved =
    version === undefined
      ? []
      : await query(manager, writes, writes.move(run.namespace, version, next, event));
  if (version === undefined || moved.length === 0) {
    throw version === undefined || !(await isCompleted(manager, writes, run.namespace, next, version))
      ? new GuardError('stale-token', `run ${run.key} of ${run.task} was moved on by somebody else`, {
          key: run.key,
        })
      : new GuardError(
          'invalid-argument',
          `run ${run.key} of ${run.task} has been completed by its own work before: call completeRun once, in the ` +
            `transaction that has all of its effects`,
          { key: run.key },
        );
  }
  const line = writes.line(version.seq, event);
  if (line !== undefined) await query(manager, writes, line);
  run.settled(event.writeId);
}

/**
 * Asks for a run inside the transaction, as `guard.runs.create` does outside of one: whoever rolls back has asked for
 * nothing. Any started node that knows the task carries it out once the transaction is committed.
 *
 * @returns `created: false`: the key has a run, which is the one that is shown.
 * @throws GuardError `invalid-argument`: no open transaction, or the guard keeps its runs in another database or schema;
 * `schema-missing`, `unavailable`, `closed`. The database's own error where the transaction met another one, as for
 * `assertFence`.
 */
export async function createRun(
  manager: EntityManager,
  guard: Pick<Guard, 'runs'>,
  task: string,
  options: CreateRunOptions = {},
): Promise<{ readonly created: boolean; readonly run: RunRecord }> {
  const dataSource = transactionOf(manager);
  const runs = guard?.runs as Partial<CreatableRuns> | undefined;
  if (typeof runs?.prepareCreate !== 'function') throw invalidArgument('guard', guard, 'must be a guard');
  const { store } = runs as CreatableRuns;
  const writes = writesFor(targetOf(dataSource), tablesOf(dataSource, store, 'what this guard runs'));
  const { askTime } = writes;
  return inTurn(manager, async () => {
    const { namespace, run, event } = await (runs as CreatableRuns).prepareCreate(
      task,
      options,
      askTime && (async () => timeOf(await query(manager, writes, askTime))),
    );
    const record = await taken(manager, writes, namespace, run);
    if (record !== undefined) return { created: false, run: recordOf(record, run) };
    const [made] = await query(manager, writes, writes.create(namespace, run, event));
    if (made !== undefined) {
      const line = writes.line(made['seq'], event);
      if (line !== undefined) await query(manager, writes, line);
      return { created: true, run };
    }
    const [there] = await query(manager, writes, writes.read(namespace, run));
    if (there === undefined) {
      throw new GuardError('unavailable', `run ${run.key} of ${task} was removed meanwhile`, {
        key: run.key,
      });
    }
    return { created: false, run: recordOf(there, run) };
  });
}

/** Whether the attempt that `next` completes has completed the run already, as this transaction sees it. */
async function isCompleted(
  manager: EntityManager,
  writes: TransactionWrites,
  namespace: string,
  next: RunRecord,
  { seq }: RowVersion,
): Promise<boolean> {
  const [row] = await query(manager, writes, writes.readRow?.(seq) ?? writes.read(namespace, next));
  const there = row && recordOf(row, next);
  if (there?.state !== 'completed' || next.state !== 'completed') return false;
  const same = (['id', 'attempt', 'takeovers'] as const).every((what) => there[what] === next[what]);
  return same && there.node.id === next.node.id;
}

/** The row of a key that is taken, where the database can look without a lock; none: `create` finds out. */
async function taken(
  manager: EntityManager,
  writes: TransactionWrites,
  namespace: string,
  run: RunRecord,
): Promise<Row | undefined> {
  const found = await find(manager, writes, writes.find?.(namespace, run));
  const sent = found && writes.readRow?.(found['seq']);
  if (sent === undefined) return undefined;
  // It may be gone: rolled back by who made it, where the transaction reads what is not committed, or removed since.
  const [row] = await query(manager, writes, sent);
  return row;
}

/** The record of a row, which somebody may have spoiled by hand. */
function recordOf(row: Row, { key, task }: RunRecord): RunRecord {
  return parsedRecord(() => String(row['record']), `run ${key} of ${task}`);
}

/** What the tables of a run store are called, if they are in the database and schema of this data source. */
function tablesOf(dataSource: DataSource, store: RunStore, what: string): TableOptions {
  const tables = runTablesFor(dataSource, store);
  if (tables !== undefined) return tables;
  throw new GuardError(
    'invalid-argument',
    `${what} is kept in ${store.name}, not by a typeormRuns() of the database and schema that this manager writes ` +
      `to: hand over the manager of a transaction there`,
  );
}

/** A lock with what names it over all backends. */
type NamedLock = Lock & { readonly fullKey: string; readonly backendName: string };

function checkLock(lock: Lock): NamedLock {
  const isLock = typeof lock === 'object' && lock !== null && 'fullKey' in lock && 'backendName' in lock;
  if (!isLock) throw invalidArgument('lock', lock, 'must be a lock that a guard granted');
  return lock as NamedLock;
}

/** The data source of an open transaction. */
function transactionOf(manager: EntityManager): DataSource {
  if (manager?.queryRunner?.isTransactionActive !== true) {
    throw new GuardError(
      'invalid-argument',
      'manager must be that of an open transaction, as dataSource.transaction() hands it over',
    );
  }
  // Up to TypeORM 0.3 it is called connection.
  const dataSource = (manager as Partial<Pick<EntityManager, 'dataSource'>>).dataSource ?? manager.connection;
  targetOf(dataSource);
  return dataSource;
}

type Row = Readonly<Record<string, unknown>>;

/** The row that a look finds. */
async function find(
  manager: EntityManager,
  writes: TransactionWrites,
  sent: Look | undefined,
): Promise<Row | undefined> {
  if (sent === undefined) return undefined;
  await query(manager, writes, sent.open);
  try {
    const [row] = await query(manager, writes, sent.look);
    return row;
  } finally {
    await query(manager, writes, sent.close);
  }
}

async function query(manager: EntityManager, writes: TransactionWrites, sent: Sent): Promise<readonly Row[]> {
  try {
    return rowsOf(await manager.query(sent.statement, [...sent.parameters]));
  } catch (error) {
    const cause = (error as { readonly driverError?: unknown }).driverError ?? error;
    const explained = writes.explained(cause);
    throw explained === cause ? error : explained;
  }
}

/** What the server says of its time, however the application has its numbers read. */
function timeOf([row]: readonly Row[]): number {
  const nowMs = Number(row?.['now'] ?? NaN);
  if (Number.isFinite(nowMs)) return nowMs;
  throw new GuardError('unavailable', 'the database does not say what time it is');
}

/** Rows that were written or read. A database that answers no rows to an update says how many it changed. */
function rowsOf(result: unknown): readonly Row[] {
  if (Array.isArray(result)) return (result as readonly Row[]).filter((row) => row['untouched'] !== 't');
  const { affectedRows } = (result ?? {}) as { readonly affectedRows?: unknown };
  return affectedRows === 1 ? [{}] : [];
}
