/**
 * Checks of what a test hands in, before anything is done with it: a typing error in a test must not look like a
 * finding. All throw `invalid-argument` naming the argument, as every facade of Guard does.
 */
import { types } from 'node:util';
import { checkOptions, GuardError, invalidArgument } from '@guard/core';

/** Refuses what is no object, and names that are no options; what is left out is refused too. */
export function requireOptions(argument: string, options: unknown, known: readonly string[]): void {
  if (options === undefined) throw invalidArgument(argument, options, 'must be an object');
  checkOptions(argument, options, known);
}

/** Refuses what is no text. */
export function requireText(argument: string, value: unknown): void {
  if (typeof value !== 'string') throw invalidArgument(argument, value, 'must be a text');
}

/** Refuses what is no list of texts. */
export function requireTexts(argument: string, value: unknown): void {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return;
  throw invalidArgument(argument, value, 'must be an array of texts');
}

/** Refuses what is no function. */
export function requireFunction(argument: string, value: unknown): void {
  if (typeof value !== 'function') throw invalidArgument(argument, value, 'must be a function');
}

/** Refuses what is neither `true` nor `false`. */
export function requireFlag(argument: string, value: unknown): void {
  if (typeof value !== 'boolean') throw invalidArgument(argument, value, 'must be true or false');
}

/** Whether it is an error, of whatever realm: those of Node's own modules are of another one than a test of Jest. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}

/** Refuses what is given and is no error. */
export function checkError(argument: string, value: unknown): void {
  if (value !== undefined && !isError(value)) throw invalidArgument(argument, value, 'must be an Error');
}

/** Refuses what is no guard. */
export function requireGuard(argument: string, value: unknown): void {
  requireMethods(argument, value, 'a Guard', ['acquire', 'run', 'on', 'close']);
}

/** Refuses what is not one of the choices. */
export function requireOneOf(argument: string, value: unknown, choices: readonly string[]): void {
  if (typeof value === 'string' && choices.includes(value)) return;
  throw invalidArgument(argument, value, `must be ${choices.map((choice) => `'${choice}'`).join(' or ')}`);
}

/** Refuses what is not a whole number of at least `min`. */
export function requireWhole(argument: string, value: unknown, min: number, max = Infinity): void {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return;
  const least = min === -Infinity ? '' : ` of at least ${min}`;
  const bounds = max === Infinity ? least : ` from ${min} to ${max}`;
  throw invalidArgument(argument, value, `must be a whole number${bounds}`);
}

/** Refuses what is not a finite number of at least `min`. */
export function requireNumber(argument: string, value: unknown, min = -Infinity): void {
  if (typeof value === 'number' && Number.isFinite(value) && value >= min) return;
  throw invalidArgument(
    argument,
    value,
    `must be a finite number${min === -Infinity ? '' : ` of at least ${min}`}`,
  );
}

/** Refuses what is not an object with these functions; `what` says what it should have been. */
export function requireMethods(
  argument: string,
  value: unknown,
  what: string,
  methods: readonly string[],
): void {
  if (value !== null && (typeof value === 'object' || typeof value === 'function')) {
    const missing = methods.find((name) => typeof Reflect.get(value, name) !== 'function');
    if (missing === undefined) return;
    throw new GuardError('invalid-argument', `${argument} must be ${what}, and has no function '${missing}'`);
  }
  throw invalidArgument(argument, value, `must be ${what}`);
}

/** Refuses what is given and is no clock. */
export function checkClock(argument: string, value: unknown): void {
  if (value !== undefined) requireMethods(argument, value, 'a Clock', ['now', 'setTimer', 'yield']);
}

/** Refuses what is given and is neither `true` nor `false`. */
export function checkFlag(argument: string, value: unknown): void {
  if (value !== undefined) requireFlag(argument, value);
}

/** Refuses what is given and is no function. */
export function checkCallback(argument: string, value: unknown): void {
  if (value !== undefined) requireFunction(argument, value);
}
