/**
 * What to say of an answer that no script of Guard gives, such as `QUEUED` on a client with an open transaction. Nothing
 * is known then: it must never be taken for a "no" (S6).
 */
import { inspect } from 'node:util';
import { GuardError } from '@guard/core';

const LONGEST_SHOWN = 100;

/** The fault, for a call that was answered so. */
export function strangeAnswer(to: string, answer: unknown): GuardError {
  const shown = inspect(answer, { depth: 1, breakLength: Infinity }).slice(0, LONGEST_SHOWN);
  return new GuardError(
    'unavailable',
    `Redis answered ${shown} to ${to}, which no script of Guard does: give Guard a client that nobody has a transaction (MULTI) open on`,
  );
}

/** The answers to so many questions. */
export function listed(to: string, value: unknown, count: number): readonly unknown[] {
  if (Array.isArray(value) && value.length === count) return value as readonly unknown[];
  throw strangeAnswer(to, value);
}
