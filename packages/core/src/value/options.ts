/** Checks of option objects that every facade shares: an option with a typing error must not be ignored. */
import { GuardError, invalidArgument } from './error.js';

/**
 * Refuses what is not an object, options that do not exist, and null for an option.
 *
 * @throws GuardError `invalid-argument` naming the argument and the option.
 */
export function checkOptions(argument: string, options: unknown, known: readonly string[]): void {
  if (options === undefined) return;
  // By its tag: a date, a map or a promise has no options, and would be taken for "none given".
  if (Object.prototype.toString.call(options) !== '[object Object]') {
    throw invalidArgument(argument, options, 'must be an object');
  }
  // By their names: a list of pairs would cost a lock in memory more than the lock.
  for (const name of Object.keys(options as object)) {
    if (!known.includes(name)) {
      throw new GuardError(
        'invalid-argument',
        `${argument} has no option '${name}'; it has ${known.join(', ')}`,
      );
    }
    // Only `undefined` is "not given": a null that was computed somewhere may have meant anything.
    if ((options as Record<string, unknown>)[name] === null)
      throw invalidArgument(`${argument}.${name}`, null, 'must not be null');
  }
}

/**
 * Refuses what is not a function, and generators: a call of one runs nothing.
 *
 * @throws GuardError `invalid-argument`.
 */
export function checkFunction(argument: string, value: unknown): void {
  if (typeof value !== 'function') throw invalidArgument(argument, value, 'must be a function');
  const tag: unknown = (value as { readonly [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
  if (tag === 'GeneratorFunction' || tag === 'AsyncGeneratorFunction') {
    throw invalidArgument(argument, value, 'must not be a generator: a call of one runs nothing');
  }
}

/**
 * Refuses what is not an abort signal; `undefined` is fine.
 *
 * @throws GuardError `invalid-argument`.
 */
export function checkSignal(argument: string, value: unknown): void {
  if (value === undefined) return;
  const isSignal =
    typeof value === 'object' && value !== null && 'aborted' in value && 'addEventListener' in value;
  if (!isSignal) throw invalidArgument(argument, value, 'must be an AbortSignal');
}
