/** The ways in which a claim ends without a lock, other than busy, and what a holder is told. */
import type { ClaimEnd } from '../../machine/claim.js';
import { GuardError } from '../../value/error.js';
import type { ClaimRequest } from './lock-service.js';
import { unavailable } from '../flight/outage.js';

const WHY = {
  failed: 'the backend failed',
  'no-answer': 'no answer within the wait',
  late: 'granted too late',
};

/** The guard takes no new work. */
export function closedError(): GuardError {
  return new GuardError('closed', 'the guard is closed');
}

/** The caller does not want the lock any more; its reason is the cause. */
export function abortedError(request: ClaimRequest): GuardError {
  const cause: unknown = request.signal?.reason;
  return new GuardError('aborted', `the claim on ${request.shownKey} was aborted`, {
    key: request.shownKey,
    cause,
  });
}

/** Waiting would never end. */
export function deadlockError({ shownKey: key }: ClaimRequest): GuardError {
  const message = `lock ${key} is held by the code that asks for it: waiting would never end`;
  return new GuardError('would-deadlock', message, { key });
}

/** The wait is over, and somebody else holds the lock. */
export function busyError(request: ClaimRequest): GuardError {
  const wait = request.waitMs === 0 ? '' : ` after ${request.waitMs} ms`;
  const message = `lock ${request.shownKey} is held by somebody else${wait}`;
  return new GuardError('lock-busy', message, { key: request.shownKey });
}

/** The backend could not be asked, or its answer was of no use. */
export function faultError(request: ClaimRequest, end: ClaimEnd & { readonly end: 'fault' }): GuardError {
  return unavailable(`lock ${request.shownKey} could not be asked for (${WHY[end.why]})`, end.cause);
}

/** Nobody may act under the lock until a renewal has decided. */
export function suspectError(key: string): GuardError {
  return new GuardError(
    'lock-suspect',
    `lock ${key}: the wall clock passed its deadline, a renewal decides`,
    {
      key,
    },
  );
}

/** The lock is not held (any more). */
export function lostError(key: string, why: string): GuardError {
  return new GuardError('lock-lost', `lock ${key} is not held: ${why}`, { key });
}
