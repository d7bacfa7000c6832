/**
 * The one error class of Guard. Outcomes (busy, skipped, somebody was faster) are values; what is thrown is a fault,
 * a refusal of bad input, or a loss, and callers tell them apart by `code`, never by class identity: an application
 * can hold two copies of this package (ESM beside CommonJS), and both must recognise each other's errors.
 */

/** The closed list of reasons for which Guard throws. */
export type GuardErrorCode =
  | 'invalid-argument'
  | 'lock-busy'
  | 'lock-lost'
  | 'lock-suspect'
  | 'stale-token'
  | 'would-deadlock'
  | 'aborted'
  | 'unavailable'
  | 'run-skipped'
  | 'run-timeout'
  | 'backend-mismatch'
  | 'not-bound'
  | 'schema-missing'
  | 'closed';

/** What a `GuardError` carries beside its code and message. */
export interface GuardErrorDetails {
  /** What the error rests on: the driver's error, the caller's abort reason, the work's own error. */
  readonly cause?: unknown;
  /** `true`: a write was sent and nobody knows whether it was applied (S4). */
  readonly inDoubt?: boolean;
  /** The key that the error is about, without the namespace. */
  readonly key?: string;
  /** Why a run was skipped (`run-skipped`); `grace-over` of a run that was going on (`closed`). */
  readonly reason?: string;
}

const BRAND = Symbol.for('@guard/core/error@1');

/**
 * Thrown by every part of Guard.
 *
 * @example
 * if (GuardError.is(error, 'lock-busy')) return retryLater();
 */
export class GuardError extends Error {
  /** What went wrong, from a closed list. */
  readonly code: GuardErrorCode;
  /** `true`: the write may or may not have been applied (S4). */
  readonly inDoubt: boolean;
  /** The key that the error is about, without the namespace, where there is one. */
  readonly key: string | undefined;
  /**
   * Why a run was skipped, where `code` is `run-skipped`. Where it is `closed`: `'grace-over'` says that the run was going
   * on, and was told to stop at the end of the grace.
   */
  readonly reason: string | undefined;

  /** Makes an error with a code, a sentence for people, and what it rests on. */
  constructor(code: GuardErrorCode, message: string, details: GuardErrorDetails = {}) {
    super(`[${code}] ${message}`, 'cause' in details ? { cause: details.cause } : undefined);
    this.name = 'GuardError';
    this.code = code;
    this.inDoubt = details.inDoubt ?? false;
    this.key = details.key;
    this.reason = details.reason;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** Whether `error` is a `GuardError` of any copy of this package, with the given code if one is asked for. */
  static is(error: unknown, code?: GuardErrorCode): error is GuardError {
    if (typeof error !== 'object' || error === null || !(BRAND in error)) return false;
    return code === undefined || (error as unknown as GuardError).code === code;
  }
}

/** An `invalid-argument` error that names the argument and shows its value. */
export function invalidArgument(argument: string, value: unknown, expectation: string): GuardError {
  return new GuardError('invalid-argument', `${argument} ${expectation}, got ${show(value)}`);
}

/** A value as a person would write it, short enough for a message. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol' || typeof value === 'function') return String(value).slice(0, 80);
  if (Object.is(value, -0)) return '-0';
  if (typeof value !== 'object' || value === null) return String(value);
  return Array.isArray(value) ? `an array of ${value.length}` : `an object`;
}
