/** `@SingleRun` and its twin for plain functions. */
import type { Run, RunOptions } from '../api/run.js';
import { GuardError, invalidArgument } from '../value/error.js';
import { encodeKey, type Key } from '../value/key.js';
import { checkFunction } from '../value/options.js';
import {
  type AnyArguments,
  type AnyMethod,
  checkCalled,
  lookingLike,
  type GuardDecorator,
  methodDecorator,
  type MethodPlace,
  type Promising,
} from './method.js';
import { type GuardedMethod, guardFor, nameOf, remember } from './registry.js';
import { besideOf } from './beside.js';
import {
  callSettingsOf,
  checkScheduled,
  checkSingleRun,
  hasSchedule,
  type SingleRunOptions,
} from './single-run-options.js';

/**
 * Runs the method once, on one node at a time.
 *
 * Without `key`, `window` or a schedule only the lock guards: two calls never overlap, on whatever nodes; but a call
 * that comes after the first one has finished runs again. That does *not* protect a short task from a second node
 * whose timer fires a moment later: give it a `key` or a `window`, which make the run itself unique.
 *
 * With `cron` or `every` Guard's own timer calls the method on one node, once for each instant, as soon as the instance
 * is bound (`bindGuard`) and the guard is started; a call by hand is then a plain call. Beside `@Cron` or `@Interval`
 * of @nestjs/schedule their timer stays, and each call is named by the instant it stands for, so that of all nodes one
 * runs it; a call by hand is then taken for the last instant.
 *
 * A call that is skipped returns `undefined`, so without `onDuplicate` only methods that promise nothing are accepted.
 * With `'throw'` it throws `run-skipped`; with `'result'` it returns the recorded result, and throws `run-skipped`
 * where there is none.
 *
 * Works as a standard and as a legacy decorator, on instance, static and (with a `name`) private methods, above or
 * below any decorator that leaves metadata on the method. Inside, `currentRun()` is the run.
 *
 * @throws GuardError while the class is being defined: `invalid-argument` for bad options and for everything that is
 * no method. The method itself throws what `guard.run` throws, and `not-bound` where no guard is found.
 */
export function SingleRun<
  A extends readonly unknown[] = AnyArguments,
  B extends readonly unknown[] = AnyArguments,
>(
  options?: SingleRunOptions<A, B> & { readonly onDuplicate?: 'skip' },
): GuardDecorator<Promising<A, void> & Promising<B, void>>;
export function SingleRun<
  A extends readonly unknown[] = AnyArguments,
  B extends readonly unknown[] = AnyArguments,
>(
  options: SingleRunOptions<A, B> & { readonly onDuplicate: 'throw' | 'result' },
): GuardDecorator<Promising<A, unknown> & Promising<B, unknown>>;
export function SingleRun(
  options: SingleRunOptions = {},
  ...more: readonly unknown[]
): GuardDecorator<AnyMethod> {
  checkCalled('@SingleRun', more);
  checkSingleRun('@SingleRun', options);
  return methodDecorator('SingleRun', (place) => {
    checkScheduled(`the method ${String(place.key)}`, options, place.original.length);
    const method = methodOf(place, options);
    method.wrapper = wrapperOf(method, options);
    remember(place, method);
    return method.wrapper;
  });
}

/**
 * The same for a plain function: needs a `name`, and a `guard` unless there is a default one.
 *
 * @throws GuardError `invalid-argument`.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a constraint over every function there is
export function singleRun<F extends (...args: any[]) => Promise<void>>(
  options: SingleRunOptions<Parameters<F>, Parameters<F>> & {
    readonly name: string;
    readonly onDuplicate?: 'skip';
  },
  work: F,
): F;
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
export function singleRun<F extends (...args: any[]) => Promise<any>>(
  options: SingleRunOptions<Parameters<F>, Parameters<F>> & {
    readonly name: string;
    readonly onDuplicate: 'throw' | 'result';
  },
  work: F,
): F;
export function singleRun(options: SingleRunOptions & { readonly name: string }, work: AnyMethod): AnyMethod {
  checkSingleRun('singleRun', options);
  checkFunction('work', work);
  encodeKey('name', options.name);
  if (hasSchedule(options)) {
    throw new GuardError('invalid-argument', `singleRun has no timer: give the schedule to guard.task`);
  }
  return lookingLike(
    work,
    wrapperOf(methodOf({ original: work, key: work.name, isStatic: false }, options), options),
  );
}

function methodOf(
  place: Pick<MethodPlace, 'original' | 'key' | 'isStatic'>,
  options: SingleRunOptions,
): GuardedMethod {
  const { original, key, isStatic } = place;
  const { name: givenName, guard } = options;
  const unknown = { owner: undefined, wrapper: undefined };
  return { kind: 'single-run', original, key, isStatic, givenName, guard, options, ...unknown };
}

function wrapperOf(method: GuardedMethod, options: SingleRunOptions): AnyMethod {
  return async function (this: unknown, ...args: unknown[]): Promise<unknown> {
    const guard = guardFor(method, this);
    const name = nameOf(method, this);
    const work = (): unknown => method.original.apply(this, args) as unknown;
    const outcome = await guard.run(name, runOptions(method, options, this, args), work);
    if (outcome.status === 'completed') return outcome.value;
    if (options.onDuplicate === undefined || options.onDuplicate === 'skip') return undefined;
    const { reason, run } = outcome;
    const key = run === undefined ? {} : { key: run.key };
    throw new GuardError('run-skipped', `${name} was skipped: ${reason}`, { reason, ...key });
  };
}

function runOptions(
  method: GuardedMethod,
  options: SingleRunOptions,
  self: unknown,
  args: readonly unknown[],
): RunOptions {
  const { compensate, ...settings } = callSettingsOf(options);
  const undo = compensate?.bind(self);
  const isNamed = options.key !== undefined || options.window !== undefined || hasSchedule(options);
  return {
    ...settings,
    ...(isNamed || method.wrapper === undefined ? {} : besideOf(method, self)),
    ...(options.key === undefined ? {} : { key: keyOf(options.key, self, args) }),
    ...(options.input === undefined ? {} : { input: options.input.apply(self, [...args]) }),
    ...(undo === undefined ? {} : { compensate: (run: Run): unknown => undo(run, ...args) }),
  };
}

/** A key of the arguments. One that comes out as nothing must not mean "without a key". */
export function keyOf(key: Key | ((...args: never[]) => Key), self: unknown, args: readonly unknown[]): Key {
  if (typeof key !== 'function') return key;
  const made: unknown = (key as AnyMethod).apply(self, [...args]);
  if (made === undefined || made === null) throw invalidArgument('key', made, 'must not be nothing');
  return made as Key;
}
