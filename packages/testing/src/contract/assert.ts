/**
 * Assertions that say in one line what a contract wants. Node's own `assert` underneath, so that any runner shows them.
 */
import assert from 'node:assert/strict';
import { GuardError, type GuardErrorCode } from '@guard/core';

export { assert };

/** An answer of the given status; everything else about it comes back typed. */
export function expectStatus<A extends { readonly status: string }, S extends A['status']>(
  answer: A,
  status: S,
  what: string,
): Extract<A, { readonly status: S }> {
  assert.equal(answer.status, status, `${what}: answered ${describeAnswer(answer)}`);
  return answer as Extract<A, { readonly status: S }>;
}

/** A number within bounds, both included. */
export function expectWithin(value: number | undefined, min: number, max: number, what: string): void {
  assert.ok(
    value !== undefined && value >= min && value <= max,
    `${what}: expected ${min} to ${max}, got ${value}`,
  );
}

/** No problem of a list of problems. */
export function expectNone(problems: readonly string[], what: string): void {
  assert.deepEqual(problems, [], what);
}

function describeAnswer(answer: { readonly status: string; readonly cause?: unknown }): string {
  const cause = answer.cause instanceof Error ? ` (${answer.cause.message})` : '';
  return `${answer.status}${cause}`;
}

/** A GuardError of the given code. */
export function expectCode(error: unknown, code: GuardErrorCode, what: string): GuardError {
  if (GuardError.is(error, code)) return error;
  const shown = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  assert.fail(`${what}: expected a GuardError ${code}, got ${shown}`);
}
