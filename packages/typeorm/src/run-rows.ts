/**
 * Rows of runs and tasks: the whole record as JSON, and beside it the columns that statements and people ask for.
 */
import { GuardError, invalidArgument } from '@guard/core';
import type { RunPage, RunRecord, StoredRun, TaskRecord } from '@guard/core';
import type { SqliteValue } from './driver.js';
import { integer, text, type Row } from './row.js';

/** Names one version of one row, exactly. */
export interface RowVersion {
  readonly seq: bigint;
  readonly version: bigint;
}

/** The version of a row as the ports see it. */
export function versionText({ seq, version }: RowVersion): string {
  return `${seq}.${version}`;
}

/** What a version names; `undefined`: nothing that this store ever wrote. */
export function parseVersion(text: string): RowVersion | undefined {
  const [, seq, version] = /^(\d{1,18})\.(\d{1,18})$/.exec(text) ?? [];
  return seq === undefined || version === undefined
    ? undefined
    : { seq: BigInt(seq), version: BigInt(version) };
}

/**
 * A stored run of a row with seq, version and record.
 *
 * @throws GuardError `unavailable`: the record is none; named by task and run_key if the row has them.
 */
export function storedRun(row: Row): StoredRun {
  const version = rowVersion(row);
  return { run: recordOf(row, version.seq), version: versionText(version) };
}

/** The runs of the first rows, as many as a page has; those that cannot be read are passed over. */
export function dueOf(rows: readonly Row[], limit: number): RunPage {
  const runs: StoredRun[] = [];
  const unreadable: Error[] = [];
  for (const row of rows.slice(0, limit)) {
    try {
      runs.push(storedRun(row));
    } catch (error) {
      unreadable.push(error as Error);
    }
  }
  const page = unreadable.length === 0 ? { runs } : { runs, unreadable };
  return rows.length > limit && limit > 0 ? { ...page, cursor: cursorAfter(rows[limit - 1]!) } : page;
}

function recordOf(row: Row, seq: bigint): RunRecord {
  const { task, run_key: key } = row;
  const run = key === undefined ? `the run with seq ${seq}` : `run ${String(key)} of ${String(task)}`;
  return parsedRecord(() => text(row, 'record'), run);
}

/**
 * The record that a text holds.
 *
 * @param run what the record is of, for the error.
 * @throws GuardError `unavailable`: the text holds none.
 */
export function parsedRecord(textOf: () => string, run: string): RunRecord {
  return parsed(
    textOf,
    `the record of ${run}`,
    ({ state, task, key }: Partial<RunRecord>) =>
      typeof state === 'string' && task !== undefined && key !== undefined,
  );
}

/**
 * What Guard wrote as JSON, unless somebody spoiled it by hand.
 *
 * @param what it is, for the error.
 * @param isWhole whether what is read is it, as far as can be seen.
 * @throws GuardError `unavailable`: it cannot be read.
 */
export function parsed<T extends object>(
  textOf: () => string,
  what: string,
  isWhole: (value: Partial<T>) => boolean = () => true,
): T {
  let cause: unknown;
  try {
    const value: unknown = JSON.parse(textOf());
    if (typeof value === 'object' && value !== null && isWhole(value)) return value as T;
  } catch (error) {
    cause = error;
  }
  const message = `${what} cannot be read: something else than a guard wrote it; repair or delete its row`;
  throw new GuardError('unavailable', message, { cause });
}

/** Seq and version of a row. */
export function rowVersion(row: Row): RowVersion {
  return { seq: integer(row, 'seq'), version: integer(row, 'version') };
}

/** Whether somebody still has to do something about a run: what the sweep looks for. */
export function isOpen(run: RunRecord): boolean {
  if (run.state === 'failed') return run.compensation === 'due';
  return run.state === 'pending' || run.state === 'running';
}

/** The columns of a record, in the order in which `create` and `move` take them. */
export function runColumns(run: RunRecord): readonly SqliteValue[] {
  const lock = 'lock' in run ? run.lock : undefined;
  const node = 'node' in run ? run.node : undefined;
  return [
    run.state,
    isOpen(run) ? 1 : 0,
    run.attempt,
    run.takeovers,
    run.trigger,
    ('reason' in run ? run.reason : undefined) ?? null,
    run.scheduledForMs ?? null,
    run.state === 'pending' ? run.availableAtMs : null,
    run.createdAtMs,
    run.state === 'running' ? run.startedAtMs : null,
    'finishedAtMs' in run ? run.finishedAtMs : null,
    run.updatedAtMs,
    lock?.backend ?? null,
    lock?.key ?? null,
    lock?.token ?? null,
    node?.id ?? null,
    node?.label ?? null,
    JSON.stringify(run),
  ];
}

/** The columns of a task's record, in the order in which `createTask` and `moveTask` take them. */
export function taskColumns(task: TaskRecord): readonly SqliteValue[] {
  return [
    task.definition?.text ?? null,
    task.lowWaterMarkMs ?? null,
    task.paused?.note ?? null,
    task.paused?.sinceMs ?? null,
    task.lastSuccessMs ?? null,
    JSON.stringify(task),
  ];
}

/**
 * What is left of a finished record whose time is over: its key and how it ended (S7). Whoever asks for a result must
 * learn that there was one, not that it was nothing.
 */
export function stripped(run: RunRecord): RunRecord {
  const { input: _input, lastFault: _lastFault, ...bare } = run;
  if (bare.state === 'failed') return { ...bare, fault: { name: bare.fault.name, message: '' } };
  if (bare.state !== 'completed') return bare;
  const { value, ...completed } = bare;
  return value === undefined ? completed : { ...completed, valueOmitted: true };
}

/** A place in an order by creation. */
export interface Place {
  readonly createdAtMs: number;
  readonly seq: bigint;
}

/** Where the page that ended with this row goes on. */
export function cursorAfter(row: Row): string {
  return `${integer(row, 'created_at_ms')}:${integer(row, 'seq')}`;
}

/**
 * The place that a cursor names.
 *
 * @throws GuardError `invalid-argument`: not a cursor of this store.
 */
export function placeOf(cursor: string): Place {
  const [, createdAtMs, seq] = /^(-?\d{1,16}):(\d{1,18})$/.exec(cursor) ?? [];
  if (createdAtMs === undefined || seq === undefined) {
    throw invalidArgument('cursor', cursor, 'must be one that an earlier page ended with');
  }
  return { createdAtMs: Number(createdAtMs), seq: BigInt(seq) };
}
