/** The parameters of the statements that change a run, also for a transaction of the application. */
import type { RunEvent, RunRecord } from '@guard/core';
import { runColumns, type RowVersion } from '../sqlite/run-rows.js';
import type { PgValue } from './pool.js';

/** The parameters of `create`. */
export function createValues(namespace: string, run: RunRecord, event: RunEvent): readonly PgValue[] {
  return [...changeValues(run, event), namespace, run.task, run.key, run.id];
}

/** The parameters of `move`. */
export function moveValues(
  namespace: string,
  { seq, version }: RowVersion,
  next: RunRecord,
  event: RunEvent,
): readonly PgValue[] {
  return [...changeValues(next, event), namespace, next.task, next.key, String(seq), String(version)];
}

function changeValues(run: RunRecord, event: RunEvent): readonly PgValue[] {
  const { writeId, atMs, what, from, to } = event;
  return [
    ...(runColumns(run) as readonly PgValue[]),
    writeId,
    Math.floor(atMs),
    what,
    from,
    to,
    JSON.stringify(event),
  ];
}
