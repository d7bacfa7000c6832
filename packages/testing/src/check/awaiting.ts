/** How tests on the real time wait for what will happen, and look at what a promise was rejected with. */
import { inspect } from 'node:util';
import { GuardError, systemClock } from '@guard/core';
import { isError, requireFunction, requireMethods, requireNumber, requireText } from '../argument.js';

const LOOK_EVERY_MS = 10;
const WITHIN_MS = 30_000;

/**
 * Waits until `look` says yes. `withinMs` is for a test that would otherwise hang, not a bound that is shown: a busy
 * machine is slow. Default 30 s.
 *
 * @throws Error with `what` in its message: `look` did not say yes in time. What `look` throws is thrown as it is.
 * GuardError `invalid-argument`: it would look for ever, or at nothing.
 */
export async function until(
  what: string,
  look: () => boolean | Promise<boolean>,
  withinMs = WITHIN_MS,
): Promise<void> {
  requireText('what', what);
  requireFunction('look', look);
  requireNumber('withinMs', withinMs, 0);
  const endMs = systemClock.now().monoMs + withinMs;
  while (!(await look())) {
    if (systemClock.now().monoMs > endMs) throw new Error(`${what}: not within ${withinMs} ms`);
    await new Promise<void>((resolve) => void systemClock.setTimer(() => resolve(), LOOK_EVERY_MS));
  }
}

/**
 * The `GuardError` that a promise is rejected with.
 *
 * @throws Error: the promise was fulfilled, or is none. Whatever else it was rejected with is thrown as it is.
 */
export async function failureOf(promise: Promise<unknown>): Promise<GuardError> {
  requireMethods('promise', promise, 'a promise', ['then']);
  const error = await promise.then(
    (value) => new Error(`fulfilled with ${String(value)}`),
    (reason: unknown) => reason,
  );
  if (GuardError.is(error)) return error;
  throw error;
}

/** The messages of an error and of all that it rests on, in one text; what is no error is shown as it is. */
export function reasons(error: unknown): string {
  const messages: string[] = [];
  let at = error;
  for (; isError(at); at = at.cause) messages.push(at.message);
  if (at !== undefined || messages.length === 0) messages.push(inspect(at, { depth: 1 }));
  return messages.join(' < ');
}
