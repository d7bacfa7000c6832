/**
 * One call of `withLock`: the lock, the work under it, the release. A chain of callbacks and no async function, because
 * under an AsyncLocalStorage each promise and each await costs as much as a step of a backend in memory: what is left
 * is one promise for the caller, one for the claim, and the work's own. The work begins in the caller's context, since
 * it begins in a reaction to a promise that the caller's call made.
 */
import type { Lock } from '../api/lock.js';
import { runInFrame, type Frame } from '../runtime/context.js';
import type { Lease } from '../runtime/lock/held-lock.js';
import { busyError } from '../runtime/lock/lock-errors.js';
import type { ClaimOutcome, ClaimRequest } from '../runtime/lock/lock-service.js';
import { GuardError } from '../value/error.js';
import { isStream } from '../value/stream.js';
import type { Running } from './running.js';

/** Work under a lock. */
export type Work<T> = (lock: Lock) => T | PromiseLike<T>;

/** One call on its way. */
export class LockedWork<T> {
  private lease!: Lease;
  private value: T | undefined;
  private failure: { readonly error: unknown } | undefined;

  constructor(
    private readonly running: Running,
    private readonly work: Work<T>,
    private readonly backend: object,
    private readonly request: ClaimRequest,
    private readonly parent: Frame | undefined,
    private readonly resolve: (value: T) => void,
    private readonly reject: (error: unknown) => void,
  ) {}

  /** The claim has ended: with the lock, or because the wait is over. */
  begin(outcome: ClaimOutcome): void {
    if (outcome.status === 'busy') return this.reject(busyError(this.request));
    const lease = outcome.lock as Lease;
    this.lease = lease;
    this.running.enter();
    const frame: Frame = { lock: lease, backend: this.backend, parent: this.parent };
    try {
      const value = runInFrame(frame, this.work, lease as Lock);
      if (!isThenable(value)) return this.succeeded(value);
      // A promise of another realm or library is made one of ours, which calls back once and never at once.
      Promise.resolve(value).then(
        (settled) => this.succeeded(settled),
        (error: unknown) => this.failed(error),
      );
    } catch (error) {
      this.failed(error);
    }
  }

  private succeeded(value: T): void {
    const failure = streamFailure(this.lease, value);
    if (failure !== undefined) return this.failed(failure.error);
    this.value = value;
    this.giveBack();
  }

  private failed(error: unknown): void {
    this.failure = { error };
    this.giveBack();
  }

  private giveBack(): void {
    this.lease.giveBack(() => this.end());
  }

  /**
   * The work's own error wins, unless the lock was lost before its release began. A release by the work itself is its
   * own business.
   */
  private end(): void {
    this.running.leave();
    if (this.lease.wasLost) this.reject(lossOf(this.lease, this.failure));
    else if (this.failure !== undefined) this.reject(this.failure.error);
    else this.resolve(this.value as T);
  }
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    'then' in value &&
    typeof value.then === 'function'
  );
}

function lossOf(lease: Lease, failure: { readonly error: unknown } | undefined): GuardError {
  const loss = lease.lossError();
  if (failure === undefined || GuardError.is(failure.error, 'lock-lost')) return loss;
  return new GuardError('lock-lost', loss.message.replace('[lock-lost] ', ''), {
    key: lease.key,
    cause: failure.error,
  });
}

/** A stream is refused. What cannot even be looked at has failed as if the work had thrown it. */
function streamFailure({ key }: Lease, value: unknown): { readonly error: unknown } | undefined {
  try {
    if (!isStream(value)) return undefined;
  } catch (error) {
    return { error };
  }
  const message = `the work under ${key} returned a stream, which would go on without the lock: consume it inside`;
  return { error: new GuardError('invalid-argument', message, { key }) };
}
