/** Options of schedules, checked before any traffic: one place for tasks, calls and decorators. */
import type { CatchUp, ScheduleOptions, Series as SeriesOptions } from '../api/schedule.js';
import type { CatchUpPolicy } from '../machine/schedule.js';
import type { TaskSchedule } from '../runtime/run/run-task.js';
import { cronSeries, everySeries, offsetMsOf, type Series } from '../runtime/schedule/definition.js';
import { parseDuration } from '../value/duration.js';
import { GuardError, invalidArgument, show } from '../value/error.js';
import { checkOptions } from '../value/options.js';

/** Names of the options that say which series of instants is meant. */
export const SERIES_OPTIONS = ['cron', 'every', 'timeZone'] as const;
const BESIDE_SERIES = ['catchUp', 'jitter', 'alarmAfter'] as const;
/** Names of the options of a schedule. */
export const SCHEDULE_OPTIONS: readonly (keyof ScheduleOptions)[] = [...SERIES_OPTIONS, ...BESIDE_SERIES];

const SHORTEST_EVERY_MS = 100;
const MAX_CAUGHT_UP = 100;

/** Options of a task, with those of its policy that decide whether an occurrence begins. */
type TaskTimes = ScheduleOptions & {
  readonly key?: unknown;
  readonly window?: unknown;
  readonly startingDeadlineMs?: number | undefined;
  readonly waitMs?: number;
};

/**
 * What `read` makes of somebody's options; where it refuses them, the message says of which task they are. Of many that
 * are registered at boot, one is wrong.
 */
export function ofTask<T>(task: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!GuardError.is(error, 'invalid-argument')) throw error;
    const message = `${error.message.replace(/^\[[a-z-]+\] /, '')} (task ${show(task)})`;
    throw new GuardError('invalid-argument', message, { cause: error });
  }
}

/**
 * The schedule of a task; `undefined`: it has none.
 *
 * @throws GuardError `invalid-argument`: an option is not what it should be, or contradicts another.
 */
export function scheduleOf(task: string, options: TaskTimes): TaskSchedule | undefined {
  const series = seriesOf(options);
  if (series === undefined) {
    const lonely = BESIDE_SERIES.find((name) => options[name] !== undefined);
    if (lonely === undefined) return undefined;
    throw new GuardError('invalid-argument', `${lonely} needs a schedule beside it: give cron or every`);
  }
  const { jitter, alarmAfter, startingDeadlineMs, waitMs = 0 } = options;
  const jitterMs = jitter === undefined ? 0 : parseDuration('jitter', jitter, { minMs: 0 });
  const alarmAfterMs = alarmAfter === undefined ? undefined : parseDuration('alarmAfter', alarmAfter);
  const catchUp = catchUpOf(options.catchUp);
  const terms = termsOf({
    catchUp:
      catchUp.mode === 'all' ? `all, max ${catchUp.max}, within ${shown(catchUp.withinMs)}` : catchUp.mode,
    jitter: shown(jitterMs),
    startingDeadline: shown(startingDeadlineMs),
    wait: shown(waitMs),
    alarmAfter: shown(alarmAfterMs),
  });
  return { ...series, catchUp, offsetMs: offsetMsOf(task, jitterMs), alarmAfterMs, terms };
}

function termsOf(terms: Readonly<Record<string, string>>): string {
  return Object.entries(terms)
    .map(([name, value]) => `${name}: ${value}`)
    .join('; ');
}

function shown(ms: number | undefined): string {
  return ms === undefined || ms === Infinity ? 'none' : `${ms}ms`;
}

/** The series that options name; `undefined`: none. A run has one name, so a series goes with neither key nor window. */
export function seriesOf(
  options: SeriesOptions & { readonly key?: unknown; readonly window?: unknown },
): Series | undefined {
  const { cron, every, timeZone, key, window } = options;
  if (cron === undefined && every === undefined) {
    if (timeZone === undefined) return undefined;
    throw new GuardError('invalid-argument', `timeZone needs a cron expression beside it`);
  }
  for (const [name, other] of Object.entries({
    every: cron === undefined ? undefined : every,
    key,
    window,
  })) {
    if (other === undefined) continue;
    const which = cron === undefined ? 'every' : 'cron';
    throw new GuardError('invalid-argument', `${which} and ${name} contradict each other: both name the run`);
  }
  if (cron !== undefined) return cronSeries(cron, timeZone);
  if (timeZone === undefined) return everySeries(parseDuration('every', every, { minMs: SHORTEST_EVERY_MS }));
  throw new GuardError(
    'invalid-argument',
    `every and timeZone contradict each other: intervals have no zone`,
  );
}

function catchUpOf(catchUp: CatchUp | undefined): CatchUpPolicy {
  if (catchUp === undefined || catchUp === 'latest') return { mode: 'latest' };
  if (catchUp === 'none') return { mode: 'none' };
  if (typeof catchUp !== 'object' || catchUp === null)
    throw invalidArgument('catchUp', catchUp, `must be 'none', 'latest' or { all: { max, within } }`);
  checkOptions('catchUp', catchUp, ['all']);
  checkOptions('catchUp.all', catchUp.all, ['max', 'within']);
  const { max, within = Infinity } = (catchUp.all ?? {}) as Partial<typeof catchUp.all>;
  if (max === undefined || !Number.isInteger(max) || max < 1 || max > MAX_CAUGHT_UP)
    throw invalidArgument('catchUp.all.max', max, `must be a whole number from 1 to ${MAX_CAUGHT_UP}`);
  return { mode: 'all', max, withinMs: parseDuration('catchUp.all.within', within, { infinite: true }) };
}
