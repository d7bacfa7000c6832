/**
 * Cron expressions as calendars: the only file that knows the library behind them. It hands in an instant and takes
 * one back; no timer and no clock of the library is ever used.
 *
 * Daylight saving, in words (the guide has a table): an expression that names its hours (`30 2 * * *`, `0 2,14 * * *`)
 * runs once a day; what falls into the hour that does not exist runs when the clock has jumped, and in the hour that
 * comes twice the first time counts. One with a wildcard or a step among seconds, minutes and hours follows real time.
 */
import { Cron } from 'croner';
import type { Calendar } from '../../machine/calendar.js';
import { GuardError, invalidArgument } from '../../value/error.js';

const RULES = { mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard', paused: true } as const;
const MAX_LENGTH = 256;
/** Any moment: whether an expression has instants at all must not depend on the day on which it is asked. */
const SOME_DAY_MS = Date.UTC(2024, 0, 1);

/**
 * The instants of a cron expression of five fields, or six with seconds, in an IANA time zone.
 *
 * @throws GuardError `invalid-argument`: the expression or the zone is not one, or no date ever fits.
 */
export function cronCalendar(expression: unknown, timeZone: unknown = 'UTC'): Calendar {
  if (typeof expression !== 'string' || expression.length > MAX_LENGTH || !/\s|^@/.test(expression.trim())) {
    throw invalidArgument('cron', expression, 'must be a cron expression of five or six fields');
  }
  checkZone(timeZone);
  const cron = parsed(expression, timeZone as string);
  const next = (afterMs: number): number | undefined => cron.nextRun(new Date(afterMs))?.getTime();
  if (next(SOME_DAY_MS) === undefined) {
    throw invalidArgument('cron', expression, 'must fit some date: no day has this day and month');
  }
  return { next };
}

function parsed(expression: string, timezone: string): Cron {
  try {
    return new Cron(expression.trim(), { ...RULES, timezone });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^CronPattern: /, '') : String(cause);
    const message = `cron is not an expression that can be read: '${expression}' (${why})`;
    throw new GuardError('invalid-argument', message, { cause });
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
