/**
 * Occurrences that were planned in time and could not begin: the lock backend was away, or nobody got to them. They
 * wait with a record each, and `catchUp` decides about them as it does about instants that nobody planned. Only a first
 * attempt that nothing had to do with is judged: what once began, or what a person asked for, is never passed over.
 */
import type { RunRecord, StoredRun } from './run-record.js';
import { type CatchUpPolicy, ON_TIME_MS } from './schedule.js';

/** What the occurrences that wait are judged by. */
export interface Waited {
  readonly catchUp: CatchUpPolicy;
  /** The run store's time. */
  readonly nowMs: number;
  /** What waits since before this instant was passed over when `catchUp` chose the last time. */
  readonly caughtUpFromMs?: number | undefined;
}

/** Whether `catchUp` has a say in it. */
export function isUnbegun(run: RunRecord): boolean {
  if (run.state !== 'pending' || run.attempt > 0 || run.reason !== undefined) return false;
  return run.scheduledForMs !== undefined && (run.trigger === 'cron' || run.trigger === 'catch-up');
}

/** The last moment at which one of these may begin, however long its lock takes; by the run store's clock. */
export function beginUntilMs(run: RunRecord, catchUp: CatchUpPolicy | undefined): number | undefined {
  if (run.state !== 'pending' || catchUp?.mode !== 'none' || !isUnbegun(run)) return undefined;
  return run.availableAtMs + ON_TIME_MS;
}

/** Those of a line, oldest first, that are not run any more. */
export function passedInLine(line: readonly StoredRun[], waited: Waited): readonly StoredRun[] {
  const unbegun = line.filter(({ run }) => isUnbegun(run));
  const kept = new Set(newest(unbegun, waited.catchUp));
  const longestMs = longest(waited.catchUp, unbegun[0]?.run);
  const { caughtUpFromMs = -Infinity, nowMs } = waited;
  const isOver = (run: RunRecord): boolean =>
    run.scheduledForMs! < caughtUpFromMs || nowMs - dueAtMs(run) > longestMs;
  return unbegun.filter((one) => !kept.has(one) || isOver(one.run));
}

function newest(unbegun: readonly StoredRun[], catchUp: CatchUpPolicy): readonly StoredRun[] {
  switch (catchUp.mode) {
    case 'none':
      return unbegun;
    case 'latest':
      return unbegun.slice(-1);
    case 'all':
      return unbegun.slice(-catchUp.max);
  }
}

/** How late one may be. Those that were chosen to be made up for keep their turn, however long those before them take. */
function longest(catchUp: CatchUpPolicy, head: RunRecord | undefined): number {
  switch (catchUp.mode) {
    case 'none':
      return ON_TIME_MS;
    case 'latest':
      return Infinity;
    case 'all':
      return head?.trigger === 'cron' ? catchUp.withinMs : Infinity;
  }
}

function dueAtMs(run: RunRecord): number {
  return run.state === 'pending' ? run.availableAtMs : Infinity;
}
