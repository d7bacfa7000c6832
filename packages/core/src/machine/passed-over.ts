/** How instants that nobody runs are written down: one summary of a range, with a count and the reason. */
import { type Absence, absencesIn } from './absence.js';
import { type Calendar, countUpTo } from './calendar.js';
import type { PassedOver, PassedSummary, TaskRecord } from './task-record.js';

/** The record with everything up to now passed over; the mark never goes back. */
export function passed(
  record: TaskRecord,
  calendar: Calendar | undefined,
  { fromMs, nowMs, reason }: { readonly fromMs: number; readonly nowMs: number; readonly reason: PassedOver },
): TaskRecord {
  if (nowMs <= fromMs) return record;
  const summary = calendar === undefined ? undefined : summaryOf(calendar, fromMs, nowMs, nowMs, reason);
  return { ...record, lowWaterMarkMs: nowMs, ...(summary === undefined ? {} : { summary }) };
}

/** What lies after `fromMs` and up to `upToMs`; `undefined`: nothing. */
export function summaryOf(
  calendar: Calendar,
  fromMs: number,
  upToMs: number,
  toMs: number,
  reason: PassedOver,
): PassedSummary | undefined {
  const { count, atLeast } = countUpTo(calendar, fromMs, upToMs);
  if (count === 0) return undefined;
  return { fromMs, toMs, count, ...(atLeast ? { atLeast } : {}), reason };
}

/** With why they were missed, of those absences that have to do with it. */
export function withCauses(summary: PassedSummary, absences: readonly Absence[] = []): PassedSummary {
  const causes = absencesIn(absences, summary.fromMs, summary.toMs);
  return causes.length === 0 ? summary : { ...summary, causes };
}
