/**
 * Occurrences that were planned in time and could not begin: the lock backend was away, or nobody got to them. They
 * wait with a record each, and `catchUp` decides about them as it does about instants that nobody planned: about both
 * at once, as if everything that is due had been planned at this moment. So it makes no difference which of them were
 * planned when the trouble began, and whether a plan or a sweep comes first when it is over.
 *
 * Only a first attempt that nothing had to do with is judged: what once began, or what a person asked for, is never
 * passed over.
 */
import type { IsRecorded } from './passed-over.js';
import type { RunRecord, StoredRun } from './run-record.js';
import { type CatchUpPolicy, ON_TIME_MS, plan, type Schedule } from './schedule.js';
import type { Chosen, Planned, TaskRecord } from './task-record.js';

/** What the occurrences that wait are judged by. */
export interface Waited {
  readonly catchUp: CatchUpPolicy;
  /** The run store's time. */
  readonly nowMs: number;
  /** What waits since before this instant was passed over when `catchUp` chose the last time. */
  readonly caughtUpFromMs?: number | undefined;
  /** What `catchUp` chose then and nothing but others kept from its lock: newer ones do not take its turn. */
  readonly chosen?: Chosen | undefined;
  /** Instants that are to be run and are not in the line: nobody has begun them, or made their records. */
  readonly ahead?: readonly number[];
}

/** What a plan would come to at this moment. */
export interface Foreseen {
  readonly caughtUpFromMs: number | undefined;
  readonly chosen: Chosen | undefined;
  /** The instants that it would have run. */
  readonly runs: readonly Planned[];
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

/** What causes the next attempt: an occurrence that begins late is made up for, whoever planned it in time. */
export function causeOf(run: RunRecord, nowMs: number): RunRecord['trigger'] {
  if (run.attempt > 0) return 'retry';
  return isUnbegun(run) && nowMs - dueAtMs(run) > ON_TIME_MS ? 'catch-up' : run.trigger;
}

/** What the next plan would come to at this moment; what comes after a pause is none of its business. */
export function foreseen(
  schedule: Schedule,
  { planned: _planned, ...record }: TaskRecord,
  nowMs: number,
  recorded: IsRecorded = () => false,
): Foreseen {
  const look = { task: record.task, record, nowMs, replaces: false, recorded };
  const answer = plan(schedule, look);
  const { caughtUpFromMs, chosen } = answer.act === 'write' ? answer.next : record;
  return { caughtUpFromMs, chosen, runs: answer.act === 'write' ? answer.runs : [] };
}

/** Those of a line, oldest first, that are not run any more. */
export function passedInLine(line: readonly StoredRun[], waited: Waited): readonly StoredRun[] {
  const unbegun = line.filter(({ run }) => isUnbegun(run));
  const { catchUp, nowMs, caughtUpFromMs = -Infinity, chosen, ahead = [] } = waited;
  const longestMs = longest(catchUp, unbegun[0]?.run);
  const most = mostOf(catchUp);
  return unbegun.filter(({ run }, index) => {
    const atMs = run.scheduledForMs!;
    const newer = unbegun.length - 1 - index + ahead.filter((one) => one > atMs).length;
    const hasTurn = catchUp.mode === 'all' && chosen !== undefined && isWithin(atMs, chosen);
    return (newer >= most && !hasTurn) || atMs < caughtUpFromMs || nowMs - dueAtMs(run) > longestMs;
  });
}

function isWithin(atMs: number, { fromMs, toMs }: Chosen): boolean {
  return fromMs <= atMs && atMs <= toMs;
}

/** How many of those that waited are run: the newest ones. */
function mostOf(catchUp: CatchUpPolicy): number {
  switch (catchUp.mode) {
    case 'none':
      return Infinity;
    case 'latest':
      return 1;
    case 'all':
      return catchUp.max;
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
