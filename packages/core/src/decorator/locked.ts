/** `@Locked` and its twin for plain functions. */
import type { AcquireOptions } from '../api/lock.js';
import { checkTtl } from '../facade/locks.js';
import { parseDuration } from '../value/duration.js';
import { encodeKey, type Key } from '../value/key.js';
import { checkFunction, checkOptions } from '../value/options.js';
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
import { type GuardedMethod, guardFor, type GuardSource, nameOf, remember } from './registry.js';
import { keyOf } from './single-run.js';

/** Key of a lock, or how to make it of the arguments. */
type LockKey<A extends readonly unknown[]> = Key | ((...args: A) => Key);

/** Options of `@Locked` and `locked`. */
export interface LockedOptions<A extends readonly unknown[] = AnyArguments> extends Pick<
  AcquireOptions,
  'ttl' | 'wait' | 'renew'
> {
  /** Key of the lock, of the arguments. Default: the `name`. */
  readonly key?: LockKey<A>;
  /** Default: `Class.method`, of the class that defines the method. */
  readonly name?: string;
  /** The guard. Default: the one the instance is bound to, else the process's default. */
  readonly guard?: GuardSource;
}

/**
 * Runs the method under a lock, and waits for it as `guard.withLock` does: 30 s unless the guard or the options say
 * otherwise. Inside, `currentLock()` is the lock.
 *
 * Works as a standard and as a legacy decorator, on instance, static and (with a `name`) private methods.
 *
 * @throws GuardError while the class is being defined: `invalid-argument`. The method itself throws what
 * `guard.withLock` throws, and `not-bound` where no guard is found.
 */
export function Locked<A extends readonly unknown[] = AnyArguments>(
  options?: LockedOptions<A>,
): GuardDecorator<Promising<A, unknown>>;
export function Locked(options: LockedOptions = {}, ...more: readonly unknown[]): GuardDecorator<AnyMethod> {
  checkCalled('@Locked', more);
  checkLocked('@Locked', options);
  return methodDecorator('Locked', (place) => {
    const method = methodOf(place, options);
    method.wrapper = wrapperOf(method, options);
    remember(place, method);
    return method.wrapper;
  });
}

/**
 * The same for a plain function: needs a `key` or a `name`, and a `guard` unless there is a default one.
 *
 * @throws GuardError `invalid-argument`.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a constraint over every function there is
export function locked<F extends (...args: any[]) => Promise<any>>(
  options: LockedOptions<Parameters<F>> &
    ({ readonly name: string } | { readonly key: LockKey<Parameters<F>> }),
  work: F,
): F;
export function locked(options: LockedOptions, work: AnyMethod): AnyMethod {
  checkLocked('locked', options);
  checkFunction('work', work);
  if (options.key === undefined) encodeKey('name', options.name);
  return lookingLike(
    work,
    wrapperOf(methodOf({ original: work, key: work.name, isStatic: false }, options), options),
  );
}

function methodOf(
  place: Pick<MethodPlace, 'original' | 'key' | 'isStatic'>,
  options: LockedOptions,
): GuardedMethod {
  const { original, key, isStatic } = place;
  const { name: givenName, guard } = options;
  const unknown = { owner: undefined, wrapper: undefined };
  return { kind: 'locked', original, key, isStatic, givenName, guard, options, ...unknown };
}

function wrapperOf(method: GuardedMethod, options: LockedOptions): AnyMethod {
  const { ttl, wait, renew } = options;
  const acquire: AcquireOptions = {
    ...(ttl === undefined ? {} : { ttl }),
    ...(wait === undefined ? {} : { wait }),
    ...(renew === undefined ? {} : { renew }),
  };
  return async function (this: unknown, ...args: unknown[]): Promise<unknown> {
    const guard = guardFor(method, this);
    const key = options.key === undefined ? nameOf(method, this) : keyOf(options.key, this, args);
    return guard.withLock(key, acquire, () => method.original.apply(this, args) as unknown);
  };
}

function checkLocked(decorator: string, options: LockedOptions): void {
  checkOptions(`${decorator} options`, options, ['key', 'name', 'ttl', 'wait', 'renew', 'guard']);
  const { key, name, ttl, wait, renew } = options;
  if (name !== undefined) encodeKey('name', name);
  if (key !== undefined && typeof key !== 'function') encodeKey('key', key);
  if (ttl !== undefined) checkTtl('ttl', ttl, 0, 1);
  if (wait !== undefined) parseDuration('wait', wait, { minMs: 0, infinite: true });
  if (renew !== undefined && renew !== false) parseDuration('renew', renew);
}
