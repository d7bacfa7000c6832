/** The two ways in which a claim ends without an answer of the backend. */
import { GuardError } from '../value/error.js';
import type { ClaimRequest } from './lock-service.js';

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
