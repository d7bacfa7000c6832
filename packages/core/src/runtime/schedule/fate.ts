/**
 * What became of an instant that has no record of its own: told by the task's record, the schedule that was in force
 * then, and what was passed over. A pure function, so that every answer can be tried against every situation.
 */
import type { Explanation } from '../../api/tasks.js';
import { type Absence, causeAt, type MissedCause } from '../../machine/absence.js';
import { type Calendar, isInstant } from '../../machine/calendar.js';
import { definitionAt } from '../../machine/definitions.js';
import { occurrenceKey, type TaskRecord } from '../../machine/task-record.js';

/** What is asked, and what is known. */
export interface Known {
  readonly instantMs: number;
  readonly nowMs: number;
  readonly record: TaskRecord;
  /** The schedule in force; where none ever was, the one that is registered here. */
  readonly calendar: Calendar;
  /** So much later than its instant a start is due. */
  readonly offsetMs: number;
  /** The calendar of a stored text, where it can be read. */
  readonly calendarOf: (text: string) => Calendar | undefined;
}

/** What was passed over together with the instant. */
export interface PassedTogether {
  readonly reason: string;
  readonly causes?: readonly Absence[] | undefined;
}

type Verdict = Exclude<Explanation, { readonly trigger: unknown }>['verdict'];

/** A verdict, a sentence that goes on after the instant, and whether what was passed over says so. */
export type Fate = readonly [verdict: Verdict, text: string, isPassed?: true];

/** The fate of an instant; `undefined`: it is settled, and lies in what was passed over, or its record is gone. */
export function fateAhead(known: Known): Fate | undefined {
  const { instantMs, nowMs, record, calendar } = known;
  const { definition, lowWaterMarkMs: markMs, planned = [] } = record;
  const isScheduled = isInstant(calendar, instantMs);
  if (definition === undefined || markMs === undefined) {
    if (!isScheduled) return NOT_SCHEDULED;
    if (instantMs > nowMs) return ['upcoming', 'has not come yet, and no node follows the schedule so far'];
    return ['before-first-sight', 'came before any node followed this schedule, and none has so far'];
  }
  if (planned.some((one) => one.instantMs === instantMs)) return ['due', 'is planned, and about to be begun'];
  if (instantMs <= markMs) return undefined;
  return isScheduled ? above(known) : NOT_SCHEDULED;
}

const NOT_SCHEDULED: Fate = ['not-scheduled', 'is not in the schedule'];

/** Above the mark: nobody has settled it yet. It counts when it is due, which jitter moves. */
function above({ instantMs, nowMs, offsetMs, record }: Known): Fate {
  const { paused, gaps = [] } = record;
  const dueMs = instantMs + offsetMs;
  const since = paused === undefined ? '' : `paused since ${occurrenceKey(paused.sinceMs)} (${paused.note})`;
  if (dueMs > nowMs) {
    const when =
      instantMs > nowMs ? 'has not come yet' : `is due at ${occurrenceKey(dueMs)}, moved by jitter`;
    return ['upcoming', paused === undefined ? when : `${when}, and does not run while the task is ${since}`];
  }
  if (paused !== undefined && dueMs > paused.sinceMs) return ['paused', `is not run: ${since}`];
  if (gaps.some(({ fromMs, toMs }) => fromMs < dueMs && dueMs <= toMs))
    return ['was-paused', 'is not run: the task was paused, which is recorded by the node that plans next'];
  return ['due', 'has come, and no node that follows the schedule has begun it yet'];
}

/** The fate of an instant that is settled. `passed`: with what it was passed over, where that is known. */
export function fateBehind(known: Known, passed: PassedTogether | undefined): Fate {
  const { instantMs, nowMs, record, calendar } = known;
  const text = definitionAt(record, instantMs);
  const isOwn = text !== undefined && text === record.definition?.text;
  const then = isOwn ? calendar : text === undefined ? undefined : known.calendarOf(text);
  const isScheduled = isInstant(calendar, instantMs);
  const wasScheduled = then === undefined ? undefined : isInstant(then, instantMs);
  if (wasScheduled === false) {
    if (!isScheduled) return NOT_SCHEDULED;
    return ['definition-changed', `was not scheduled: another schedule was in force then (${text})`];
  }
  if (passed !== undefined && (wasScheduled || isScheduled || text !== undefined))
    return passedOver(passed, instantMs);
  if (text === undefined)
    return isScheduled
      ? ['before-first-sight', 'came before any node followed this schedule']
      : NOT_SCHEDULED;
  if (wasScheduled === undefined)
    return ['forgotten', 'was settled by an earlier schedule, which is not known any more'];
  if (instantMs <= nowMs) return ['forgotten', 'was settled, and its record is gone'];
  const from = occurrenceKey(record.lowWaterMarkMs ?? nowMs);
  return ['forgotten', `is settled and does not run: the clock of the store went back from ${from}`];
}

function passedOver({ reason, causes = [] }: PassedTogether, instantMs: number): Fate {
  switch (reason) {
    case 'paused':
      return ['was-paused', 'was passed over: the task was paused', true];
    case 'definition-changed':
      return ['definition-changed', 'was passed over: the schedule was changed', true];
    default: {
      const cause = causeAt(causes, instantMs);
      return ['missed', `was passed over: ${cause === undefined ? UNKNOWN : MISSED[cause]}`, true];
    }
  }
}

const UNKNOWN = 'no node that knows the task planned it in time, and none has written down why';

const MISSED: Readonly<Record<MissedCause, string>> = {
  'no-node': 'no node that knows the task was up and able to begin it',
  'clock-skew':
    'the node that was up had stopped itself, because its clock was too far from the clock of the store',
  'locks-away':
    'the node that was up could not hold the lock that announces it, because the lock backend was away',
  'store-away': 'the node that was up could not reach the run store',
  'shorter-jitter':
    'a longer jitter had moved its start, and it came due together with others when the jitter was made shorter',
  late: 'the node that was up came too late: it was blocked, asleep or busy, or the run store was slow',
};
