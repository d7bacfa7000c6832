/**
 * The compensation of a failed run: under the lock of the attempt that failed, before that lock is given back, or
 * under a newer grant when the node that began it is gone. At least once: it may be begun again.
 */
import type { Run } from '../../api/run.js';
import type { Worker } from '../../machine/run-move.js';
import type { StoredRun } from '../../machine/run-record.js';
import { ActiveRun } from './active-run.js';
import type { HeldLock } from '../lock/lock-service.js';
import { beginAttempt } from './run-attempt.js';
import { emit, type RunHost } from './run-host.js';
import type { RunPolicy } from './run-task.js';
import { faultOf } from './run-values.js';

/** A failed run whose compensation is due, and the lock under which to compensate. */
export interface DueCompensation {
  readonly stored: StoredRun;
  readonly by: Worker;
  readonly lock: HeldLock | undefined;
  readonly policy: RunPolicy;
  readonly compensate: (run: Run) => unknown;
}

/**
 * Compensates, and writes how it went. Answers the newest record: still `due` where the lock was lost or the work did
 * not settle, for the sweep to take up.
 */
export async function runCompensation(host: RunHost, due: DueCompensation): Promise<StoredRun> {
  const { stored, by, lock, compensate } = due;
  if (lock !== undefined && !lock.isHeld()) return stored;
  const policy = { ...due.policy, stallAfterMs: undefined };
  const { book, clock, stopSignal } = host;
  const run = new ActiveRun({ stored, by, lock, policy, book, clock, stopSignal });
  const attempt = beginAttempt(host, run, compensate);
  host.active.add(run, attempt);
  const end = await attempt.ended;
  if (end.end === 'unsettled') return stored;
  const failure = end.end === 'threw' ? end : undefined;
  if (failure !== undefined) {
    emit(host, 'error', { error: failure.error, during: `the compensation of ${run.task}` });
    if (lock !== undefined && !lock.isHeld()) return stored;
  }
  const result = failure === undefined ? 'done' : 'error';
  const fault = failure === undefined ? {} : { fault: faultOf(failure.error) };
  const wish = { type: 'compensation-end', token: by.lock.token, result, ...fault } as const;
  const limits = {
    budgetMs: policy.settleTimeoutMs,
    goOn: () => !host.shutdown.graceOver,
    own: by.lock.token,
  };
  const moved = await book.move(stored, wish, limits);
  return moved.stored ?? stored;
}
