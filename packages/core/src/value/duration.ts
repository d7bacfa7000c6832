/**
 * The one parser of durations. Everything inside Guard is whole milliseconds; text exists at the edge only, so that
 * no code ever has to ask what unit it holds.
 */
import { invalidArgument } from './error.js';

/** Milliseconds as a whole number, or a whole number with a unit: `'250ms' | '30s' | '5m' | '2h' | '1d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

/** What an option allows beyond an ordinary positive duration. */
export interface DurationRules {
  /** Smallest value in milliseconds. Default 1. */
  readonly minMs?: number;
  /** Whether `Infinity` has a meaning here. Default `false`. */
  readonly infinite?: boolean;
}

/** The longest finite duration: a hundred years. Every backend keeps it exactly, and no sum of two overflows. */
export const MAX_DURATION_MS = 36_500 * 86_400_000;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const TEXT = /^(\d{1,15})(ms|s|m|h|d)$/;

/**
 * A duration in milliseconds.
 *
 * @throws GuardError `invalid-argument` naming `argument` and the value: NaN, negative, too small, a fraction of a
 * millisecond, longer than a hundred years, infinite where that has no meaning, or not a duration at all.
 */
export function parseDuration(argument: string, value: unknown, rules: DurationRules = {}): number {
  const ms = typeof value === 'string' ? fromText(value) : value;
  if (typeof ms !== 'number' || Number.isNaN(ms)) {
    throw invalidArgument(argument, value, `must be milliseconds or a text like '30s'`);
  }
  if (ms === Infinity && rules.infinite) return ms;
  const minMs = rules.minMs ?? 1;
  if (ms < minMs || Object.is(ms, -0)) throw invalidArgument(argument, value, `must be at least ${minMs} ms`);
  if (ms > MAX_DURATION_MS) throw invalidArgument(argument, value, `must be at most ${MAX_DURATION_MS} ms`);
  if (!Number.isInteger(ms)) throw invalidArgument(argument, value, 'must be a whole number of milliseconds');
  return ms;
}

function fromText(text: string): number | undefined {
  const [, digits, unit] = TEXT.exec(text) ?? [];
  return digits === undefined || unit === undefined ? undefined : Number(digits) * UNIT_MS[unit]!;
}

/**
 * How much earlier than the backend a holder stops believing its lease, for clocks that run at slightly different
 * speeds: the larger of 2 % of the ttl and 50 ms (assumption of S1).
 */
export function marginMs(ttlMs: number): number {
  return Math.max(Math.ceil(ttlMs * 0.02), 50);
}

/** The ttl of a lease that is believed for so long: the ttl less its margin. */
export function ttlBelieved(trustMs: number): number {
  return trustMs + Math.max(Math.ceil((trustMs * 0.02) / 0.98), 50);
}
