/**
 * A schedule as text, and back. The text is what is stored and compared, so a node that does not know a task can still
 * say when it would have been due, and two nodes agree whether they mean the same.
 */
import { type Calendar, everyCalendar } from '../../machine/calendar.js';
import type { Schedule } from '../../machine/schedule.js';
import { fingerprint } from '../../value/key.js';
import { cronCalendar } from './cron.js';

/** A series of instants with its text. */
export type Series = Pick<Schedule, 'calendar' | 'definition'>;

/** @throws GuardError `invalid-argument`: no cron expression, or no time zone. */
export function cronSeries(expression: unknown, timeZone?: unknown): Series {
  const calendar = cronCalendar(expression, timeZone);
  const fields = (expression as string).trim().split(/\s+/).join(' ');
  return series(calendar, `cron ${fields} in ${(timeZone as string | undefined) ?? 'UTC'}`);
}

/** Instants at whole multiples since the epoch. */
export function everySeries(everyMs: number): Series {
  return series(everyCalendar(everyMs), `every ${everyMs}ms`);
}

/** The calendar of a stored text; `undefined`: another version of Guard wrote it, and it cannot be read here. */
export function calendarOf(text: string): Calendar | undefined {
  const [, everyMs] = /^every (\d{1,15})ms$/.exec(text) ?? [];
  if (everyMs !== undefined) return everyCalendar(Number(everyMs));
  const [, fields, zone] = /^cron (.+) in (\S+)$/.exec(text) ?? [];
  try {
    return fields === undefined ? undefined : cronCalendar(fields, zone);
  } catch {
    return undefined;
  }
}

/** By how much all starts of a task are moved: a part of its jitter that follows from its name. */
export function offsetMsOf(task: string, jitterMs: number): number {
  return Math.floor(jitterMs * (Buffer.from(fingerprint(task), 'base64url').readUInt32BE(0) / 2 ** 32));
}

/** The same by the terms of a stored definition; `undefined`: they do not say it. */
export function storedOffsetMs(task: string, terms: string | undefined): number | undefined {
  const [, jitterMs] = /(?:^|; )jitter: (\d{1,15})ms(?:;|$)/.exec(terms ?? '') ?? [];
  return jitterMs === undefined ? undefined : offsetMsOf(task, Number(jitterMs));
}

function series(calendar: Calendar, text: string): Series {
  return { calendar, definition: { hash: fingerprint(text).slice(0, 16), text } };
}
