/** How instants that nobody runs are written down: one summary of a range, with a count and the reason. */
import { type Absence, absencesIn } from './absence.js';
import { type Calendar, countUpTo, listUpTo, MAX_COUNTED } from './calendar.js';
import type { PassedOver, PassedSummary, TaskRecord } from './task-record.js';

/** Whether an instant has a record of its own already: then nobody missed it. */
export type IsRecorded = (instantMs: number) => boolean;

/** From when to when something is passed over, and why. */
export interface Over {
  readonly fromMs: number;
  readonly nowMs: number;
  readonly reason: PassedOver;
  readonly recorded: IsRecorded;
}

/** The record with everything up to now passed over; the mark never goes back. */
export function passed(record: TaskRecord, calendar: Calendar | undefined, over: Over): TaskRecord {
  const { fromMs, nowMs, reason, recorded } = over;
  if (nowMs <= fromMs) return record;
  const summary =
    calendar === undefined ? undefined : summaryOf(calendar, fromMs, nowMs, nowMs, reason, recorded);
  return { ...record, lowWaterMarkMs: nowMs, ...(summary === undefined ? {} : { summary }) };
}

/**
 * The instants about which the step between two records decides, the oldest ones: what of them has a record already
 * has to be known before the step is taken.
 */
export function decidedIn(
  calendar: Calendar,
  before: TaskRecord | undefined,
  next: TaskRecord,
): readonly number[] {
  const { lowWaterMarkMs: fromMs } = before ?? {};
  const { lowWaterMarkMs: toMs } = next;
  return fromMs === undefined || toMs === undefined ? [] : listUpTo(calendar, fromMs, toMs, MAX_COUNTED);
}

/** What lies after `fromMs` and up to `upToMs` and has no record of its own; `undefined`: nothing. */
export function summaryOf(
  calendar: Calendar,
  fromMs: number,
  upToMs: number,
  toMs: number,
  reason: PassedOver,
  recorded: IsRecorded,
): PassedSummary | undefined {
  const { count, atLeast } = countUpTo(calendar, fromMs, upToMs, recorded);
  if (count === 0 && !atLeast) return undefined;
  return { fromMs, toMs, count, ...(atLeast ? { atLeast } : {}), reason };
}

/** With why they were missed, of those absences that have to do with it. */
export function withCauses(summary: PassedSummary, absences: readonly Absence[] = []): PassedSummary {
  const causes = absencesIn(absences, summary.fromMs, summary.toMs);
  return causes.length === 0 ? summary : { ...summary, causes };
}
