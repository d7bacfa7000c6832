/** Checks of option objects that every facade shares: an option with a typing error must not be ignored. */
import { GuardError, invalidArgument } from './error.js';

/**
 * Refuses what is not an object, and options that do not exist.
 *
 * @throws GuardError `invalid-argument` naming the argument and the unknown option.
 */
export function checkOptions(argument: string, options: unknown, known: readonly string[]): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalidArgument(argument, options, 'must be an object');
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    throw new GuardError(
      'invalid-argument',
      `${argument} has no option '${name}'; it has ${known.join(', ')}`,
    );
  }
}

/**
 * Refuses what is not a function.
 *
 * @throws GuardError `invalid-argument`.
 */
export function checkFunction(argument: string, value: unknown): void {
  if (typeof value !== 'function') throw invalidArgument(argument, value, 'must be a function');
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
