/**
 * What a choice of `catchUp` means for occurrences that wait with a record: those from before it, and those that it
 * chose. What was chosen keeps its turn until something is missed again and there is another choice; instants that come in
 * time meanwhile take no turn of theirs, and have as many places again. So there is a limit to what waits.
 */
import type { TaskRecord } from './task-record.js';

/** What was chosen of the instants that are due. */
export interface Choice {
  readonly mode: 'none' | 'latest' | 'all';
  /** Oldest first. */
  readonly chosen: readonly number[];
  /** The newest one that is due. */
  readonly newest: number;
  readonly nowMs: number;
  /** Others are passed over. */
  readonly hasPassed: boolean;
  /** The newest one is on time. */
  readonly isOnTime: boolean;
  /** The oldest one is not: nobody was there when it was due. */
  readonly wasMissed: boolean;
  /** Nothing is known to keep those that are chosen from their lock, but others that hold it. */
  readonly locksAnswer: boolean;
}

/** The record with what a choice says of those that wait. */
export function caughtUp({ chosen: before, ...record }: TaskRecord, choice: Choice): TaskRecord {
  const { mode, chosen, newest, nowMs, hasPassed, isOnTime, wasMissed, locksAnswer } = choice;
  // Of everything that came and did not begin the newest one runs, however it came to be late.
  if (mode === 'latest') return { ...record, caughtUpFromMs: newest };
  const fromMs = chosen[0] ?? newest + 1;
  if (mode === 'none') return hasPassed || !isOnTime ? { ...record, caughtUpFromMs: fromMs } : record;
  if (!hasPassed && !wasMissed) return before === undefined ? record : { ...record, chosen: before };
  const from = hasPassed ? { caughtUpFromMs: fromMs } : {};
  const keeps = locksAnswer && chosen.length > 0;
  return { ...record, ...from, ...(keeps ? { chosen: { fromMs, toMs: newest, atMs: nowMs } } : {}) };
}
