/** The parameters of the statements that change runs and tasks, also for a transaction of the application. */
import type { RunEvent, RunRecord, TaskRecord } from '@guard/core';
import { runColumns, taskColumns, type RowVersion } from '../run-rows.js';
import type { Value } from './statements.js';

/** The parameters of `create`. */
export function createValues(namespace: string, run: RunRecord, event: RunEvent): readonly Value[] {
  return [...changeValues(run, event), namespace, run.task, run.key, run.id];
}

/** The parameters of `move`. */
export function moveValues(
  namespace: string,
  { seq, version }: RowVersion,
  next: RunRecord,
  event: RunEvent,
): readonly Value[] {
  const row = [String(seq), String(version), next.id];
  return [...changeValues(next, event), namespace, next.task, next.key, ...row];
}

function changeValues(run: RunRecord, event: RunEvent): readonly Value[] {
  const { writeId, atMs, what, from, to } = event;
  return [
    ...runColumns(run).map(plain),
    ...[writeId, Math.floor(atMs), plain(what), from, to, JSON.stringify(event)],
  ];
}

/** The columns of a task's record, in the order in which `createTask` and `moveTask` take them. */
export function taskValues(task: TaskRecord): readonly Value[] {
  return taskColumns(task).map(plain);
}

/**
 * A value as a column takes it: no text of Postgres holds U+0000, which a label or a note may, and no `bigint` a
 * fraction. The record beside the columns has all of it, as JSON.
 */
export function plain(value: unknown): Value {
  if (typeof value === 'string') return value.replaceAll('\0', '\ufffd');
  return typeof value === 'number' ? Math.floor(value) : (value as Value);
}
