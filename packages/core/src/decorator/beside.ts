/**
 * The schedule that another decorator gave a method: `@Cron` or `@Interval` of @nestjs/schedule, found by the metadata
 * they leave on it, in whichever order the decorators stand. Their timers stay as they are; only the run is named by
 * the instant that the timer stands for. Nothing of that package is imported.
 */
import type { RunOptions } from '../api/run.js';
import { seriesOf } from '../facade/schedule-options.js';
import { GuardError, invalidArgument } from '../value/error.js';
import type { AnyMethod } from './method.js';
import { type GuardedMethod, reachedBy } from './registry.js';

const CRON = 'SCHEDULE_CRON_OPTIONS';
const INTERVAL = 'SCHEDULE_INTERVAL_OPTIONS';
const HOUR_MIN = 60;

/** How a call of such a method is named. */
export type Beside = Pick<RunOptions, 'cron' | 'every' | 'timeZone' | 'key'>;

/**
 * The schedule beside `@SingleRun()` on this method; `undefined`: there is none. An expression without a zone is read
 * in the zone of the machine, as its own timer does.
 *
 * @throws GuardError `invalid-argument`: an offset that no zone has.
 */
export function scheduleBeside(method: AnyMethod): Beside | undefined {
  const { getMetadata } = Reflect as { getMetadata?: (key: unknown, target: object) => unknown };
  const cron = getMetadata?.(CRON, method) as CronMetadata | undefined;
  if (cron !== undefined) return ofCron(cron);
  const interval = getMetadata?.(INTERVAL, method) as { readonly timeout?: unknown } | undefined;
  return typeof interval?.timeout === 'number' ? { every: interval.timeout } : undefined;
}

/**
 * The same for a decorated method of `self`, wherever the other decorator left its metadata: on this one's function, or
 * on that of a third decorator between the two (`@Cron` above `@Transactional` above `@SingleRun`).
 */
export function besideOf(method: GuardedMethod, self: unknown): Beside | undefined {
  const own = method.wrapper === undefined ? undefined : scheduleBeside(method.wrapper);
  if (own !== undefined) return own;
  const reached = reachedBy(method, self);
  return reached === undefined ? undefined : scheduleBeside(reached);
}

/**
 * Why the schedule beside `@SingleRun()` names no runs, in a sentence; `undefined`: it does, or there is none. Its own
 * scheduler may take it all the same, and then every tick would reject with this.
 */
export function problemBeside(method: GuardedMethod, self: unknown): string | undefined {
  try {
    const { key, ...series } = besideOf(method, self) ?? {};
    if (key === undefined) seriesOf(series);
    return undefined;
  } catch (error) {
    if (!GuardError.is(error, 'invalid-argument')) throw error;
    return error.message.replace(/^\[[a-z-]+\] /, '');
  }
}

interface CronMetadata {
  readonly cronTime?: unknown;
  readonly timeZone?: string;
  readonly utcOffset?: number | string;
}

function ofCron({ cronTime, timeZone, utcOffset }: CronMetadata): Beside {
  // A moment instead of an expression: the one occurrence there is.
  const once = momentOf(cronTime);
  if (once !== undefined) return { key: once.toISOString() };
  const zone = timeZone ?? (utcOffset === undefined ? localZone() : zoneOf(utcOffset));
  return { cron: cronTime as string, timeZone: zone };
}

function momentOf(time: unknown): Date | undefined {
  if (time instanceof Date) return time;
  const { toJSDate } = Object(time) as { toJSDate?: () => Date };
  return typeof toJSDate === 'function' ? toJSDate.call(time) : undefined;
}

function localZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Whole hours have a zone of their own; the sign in its name is the other way round. Small numbers are hours. */
function zoneOf(utcOffset: number | string): string {
  const given = Number(utcOffset);
  const hours = Math.abs(given) < HOUR_MIN ? given : given / HOUR_MIN;
  if (Number.isInteger(hours))
    return hours === 0 ? 'UTC' : `Etc/GMT${hours > 0 ? '-' : '+'}${Math.abs(hours)}`;
  throw invalidArgument('utcOffset', utcOffset, `must be whole hours: give @Cron a 'timeZone' instead`);
}
