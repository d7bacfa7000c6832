/**
 * Cron expressions as calendars: the only file that knows the library behind them. It hands in an instant and takes
 * one back; no timer and no clock of the library is ever used.
 *
 * Daylight saving, in words (the guide has a table): an expression without `*` and `/` among its seconds, minutes and
 * hours names its times. What it names in the hour that does not exist runs when the clock has jumped, and in the hour
 * that comes twice the first time counts. Any other runs whenever a clock on the wall shows a time that fits: not in an
 * hour that does not exist, and in both of an hour that comes twice.
 */
import { Cron } from 'croner';
import type { Calendar } from '../../machine/calendar.js';
import { invalidArgument } from '../../value/error.js';
import { cronFault } from './cron-fault.js';

const RULES = { mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard', paused: true } as const;
const MAX_LENGTH = 256;
/** As many answers are kept as a look at a schedule needs that catches up with an hour or two. */
const MAX_SPANS = 64;
/** Any moment: whether an expression has instants at all must not depend on the day on which it is asked. */
const SOME_DAY_MS = Date.UTC(2024, 0, 1);

/**
 * The instants of a cron expression of five fields, or six with seconds, in an IANA time zone.
 *
 * @throws GuardError `invalid-argument`: the expression or the zone is not one, or no date ever fits.
 */
export function cronCalendar(expression: unknown, timeZone: unknown = 'UTC'): Calendar {
  if (typeof expression !== 'string')
    throw invalidArgument('cron', expression, 'must be a text: a cron expression of five or six fields');
  if (expression.length > MAX_LENGTH)
    throw invalidArgument('cron', expression, `must be at most ${MAX_LENGTH} characters long`);
  checkZone(timeZone);
  const cron = parsed(expression, timeZone as string);
  const next = (afterMs: number): number | undefined => cron.nextRun(new Date(afterMs))?.getTime();
  if (next(SOME_DAY_MS) === undefined) {
    throw invalidArgument('cron', expression, 'must fit some date: no day has this day and month');
  }
  return { next: remembering(next) };
}

/**
 * Nodes ask for the same instants at every look, and the library counts through the calendar for each. Between a moment
 * and the instant that follows it, all moments have the same next instant.
 */
function remembering(next: Calendar['next']): Calendar['next'] {
  const spans: { readonly fromMs: number; readonly atMs: number }[] = [];
  return (afterMs) => {
    const known = spans.find(({ fromMs, atMs }) => fromMs <= afterMs && afterMs < atMs);
    if (known !== undefined) return known.atMs;
    const atMs = next(afterMs);
    if (atMs !== undefined) spans.unshift({ fromMs: afterMs, atMs });
    if (spans.length > MAX_SPANS) spans.pop();
    return atMs;
  };
}

function parsed(expression: string, timezone: string): Cron {
  // What has no space would be taken for a date.
  if (!/\s|^@/.test(expression.trim())) throw invalidArgument('cron', expression, cronFault(expression));
  try {
    return new Cron(expression.trim(), { ...RULES, timezone });
  } catch {
    throw invalidArgument('cron', expression, cronFault(expression));
  }
}

function checkZone(timeZone: unknown): void {
  try {
    if (typeof timeZone !== 'string' || !/^[A-Za-z]/.test(timeZone)) throw new RangeError('not a name');
    new Intl.DateTimeFormat('en', { timeZone });
  } catch {
    throw invalidArgument('timeZone', timeZone, `must name an IANA time zone, such as 'Europe/Berlin'`);
  }
}
