/**
 * Rows of runs and tasks: the whole record as JSON, and beside it the columns that statements and people ask for.
 */
import { invalidArgument } from '@guard/core';
import type { RunRecord, StoredRun, TaskRecord } from '@guard/core';
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

/** A stored run of a row with seq, version and record. */
export function storedRun(row: Row): StoredRun {
  return { run: JSON.parse(text(row, 'record')) as RunRecord, version: versionText(rowVersion(row)) };
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
