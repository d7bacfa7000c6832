/** Options of `@SingleRun`, checked while the class is being defined. */
import type { Run, RunSettings } from '../api/run.js';
import type { ScheduleOptions } from '../api/schedule.js';
import { policyOf, TASK_OPTIONS } from '../facade/run-options.js';
import { ofTask, SCHEDULE_OPTIONS, scheduleOf } from '../facade/schedule-options.js';
import { GuardError } from '../value/error.js';
import type { Key } from '../value/key.js';
import { encodeKey } from '../value/key.js';
import { checkFunction, checkOptions } from '../value/options.js';
import type { AnyArguments } from './method.js';
import type { GuardSource } from './registry.js';

/** Options of `@SingleRun` and `singleRun`: `A` are the arguments that `key` names, `B` those of the others. */
export interface SingleRunOptions<
  A extends readonly unknown[] = AnyArguments,
  B extends readonly unknown[] = AnyArguments,
>
  extends RunSettings, ScheduleOptions {
  /** Name of the task. Default: `Class.method`, of the class that defines the method. */
  readonly name?: string;
  /** Identity of the run, of the arguments. Runs of one key never happen twice, and have a lock of their own. */
  readonly key?: Key | ((...args: A) => Key);
  /**
   * The arguments as JSON (up to 64 KiB), so that another node can call the method with them: a list is the
   * arguments, anything else the only one. Put a single argument that is itself a list into a list.
   */
  readonly input?: (...args: B) => unknown;
  /** Undoes what a run left behind that has failed for good; `this` is the instance. At least once. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the instance of any class
  readonly compensate?: (this: any, run: Run, ...args: B) => unknown;
  /** The guard. Default: the one the instance is bound to, else the process's default. */
  readonly guard?: GuardSource;
}

/**
 * Checks what can be checked without a guard.
 *
 * @throws GuardError `invalid-argument`.
 */
export function checkSingleRun(decorator: string, options: SingleRunOptions): void {
  const name: unknown = (options as SingleRunOptions | null)?.name;
  if (typeof name === 'string') ofTask(name, () => checkWith(decorator, options));
  else checkWith(decorator, options);
}

function checkWith(decorator: string, options: SingleRunOptions): void {
  checkOptions(`${decorator} options`, options, [...TASK_OPTIONS, 'name', 'input', 'guard']);
  const { name, key, input, compensate } = options;
  if (name !== undefined) encodeKey('name', name);
  if (key !== undefined && typeof key !== 'function') encodeKey('key', key);
  if (input !== undefined) checkFunction('input', input);
  if (compensate !== undefined) checkFunction('compensate', compensate);
  // The guard's own defaults are not known yet: only what holds for every guard is refused here.
  policyOf({ ...settingsOf(options), key }, { ttlMs: 30_000, minTtlMs: 1, onUnavailable: 'throw' });
  if (scheduleOf(name ?? decorator, options) === undefined || options.guard === undefined) return;
  throw new GuardError(
    'invalid-argument',
    `${decorator}: a schedule needs a guard that is bound to the instance (bindGuard), not the option 'guard'`,
  );
}

/**
 * Refuses a schedule on what nobody could call at its instants.
 *
 * @throws GuardError `invalid-argument`.
 */
export function checkScheduled(what: string, options: SingleRunOptions, argumentCount: number): void {
  if (!hasSchedule(options) || argumentCount === 0) return;
  throw new GuardError('invalid-argument', `${what} has a schedule, so it cannot have arguments`);
}

/** Whether Guard's own timer runs the method. */
export function hasSchedule({ cron, every }: SingleRunOptions): boolean {
  return cron !== undefined || every !== undefined;
}

/** The options without what belongs to the decorator alone. */
export function settingsOf(
  options: SingleRunOptions,
): RunSettings & ScheduleOptions & { readonly compensate?: SingleRunOptions['compensate'] } {
  const { name: _name, key: _key, input: _input, guard: _guard, ...settings } = options;
  return settings;
}

/** The settings of one call: a call of a method with a schedule of its own is a call, not an occurrence. */
export function callSettingsOf(
  options: SingleRunOptions,
): RunSettings & { readonly compensate?: SingleRunOptions['compensate'] } {
  const settings = Object.entries(settingsOf(options));
  const scheduled: readonly string[] = SCHEDULE_OPTIONS;
  return Object.fromEntries(settings.filter(([name]) => !scheduled.includes(name)));
}
