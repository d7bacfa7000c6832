/**
 * What an application holds when it holds a lock, and what it may ask for. Types only: the handle is made by the
 * runtime, which owns the lease behind it.
 */
import type { Duration } from '../value/duration.js';
import type { Key } from '../value/key.js';

/** A granted claim. */
export interface Lock extends AsyncDisposable {
  /** The key as the application gave it, as text. */
  readonly key: string;
  /** Fencing token: grows over the grants of one key (S2). Hand it to whatever the lock protects. */
  readonly token: bigint;
  /**
   * Aborts with `GuardError('lock-lost')` when the lock is lost, at the latest at the trust deadline, whether or not
   * the backend ever answers (L1). Does not abort on release. Made on first use.
   */
  readonly signal: AbortSignal;
  /** Milliseconds until the trust deadline on the local clock; 0 when the lock is not held. */
  remainingMs(): number;
  /** Granted, not released, before the trust deadline, not suspect (S1). Right even after a blocked event loop. */
  isHeld(): boolean;
  /** @throws GuardError `lock-lost` (lost or released) or `lock-suspect` (only the wall clock says so: ask again). */
  assertHeld(): void;
  /**
   * Makes the lease last at least `duration` from now; a longer lease stays as it is (S5). Renewal goes on.
   *
   * @throws GuardError `lock-lost`, `unavailable`, `invalid-argument`.
   */
  extend(duration: Duration): Promise<void>;
  /**
   * Gives the lock back; any number of calls is one release. `'lost'`: it was not held any more. `'unknown'`: the
   * backend could not be asked until the lease was over, or a re-sent release found nothing. Never rejects.
   */
  release(): Promise<ReleaseResult>;
  /** Shows key and token; no claim id, which is the proof of ownership. */
  toJSON(): { readonly key: string; readonly token: string };
}

/** What became of a release. */
export type ReleaseResult = 'released' | 'lost' | 'unknown';

/** Several locks held together, in the order of their keys. */
export interface LockSet extends AsyncDisposable {
  readonly locks: readonly Lock[];
  /** Aborts when any of them is lost. */
  readonly signal: AbortSignal;
  isHeld(): boolean;
  assertHeld(): void;
  /** Releases all; the worst result of them. */
  release(): Promise<ReleaseResult>;
}

/** Options of one claim that does not wait. */
export interface TryOptions {
  /** How long the backend promises the lock without a renewal. Default: the guard's `defaults.ttl`, 30 s. */
  readonly ttl?: Duration;
  /** How often the lease is renewed while the lock is held; `false`: never. Default: a third of the ttl. */
  readonly renew?: Duration | false;
  /** Gives the claim up: rejects with `aborted` and the signal's reason as `cause`. Has no effect once granted. */
  readonly signal?: AbortSignal;
}

/** Options of one claim that may wait. */
export interface AcquireOptions extends TryOptions {
  /** How long to wait for the lock, counted on the monotonic clock; `0` tries once, `Infinity` waits for ever.
   * Default: the guard's `defaults.wait`, 30 s. */
  readonly wait?: Duration;
}

/** What other processes can see of a lock. */
export interface LockStatus {
  readonly key: string;
  readonly held: boolean;
  /** Label of the holder's node, where the lock is held. */
  readonly holder?: string;
  /** The largest token minted so far; 0 if none is known. */
  readonly token: bigint;
  readonly expiresInMs?: number;
  readonly waiting: number;
}

/** The lock part of a guard. */
export interface LockApi {
  /**
   * Runs `work` under the lock and releases it, whatever `work` does. Inside, `currentLock()` is the lock.
   *
   * @throws GuardError `lock-busy` (the wait ended), `lock-lost` (lost before the release began; the work's own error
   * is its `cause`), `would-deadlock`, `aborted`, `unavailable`, `closed`, `invalid-argument`; the work's own error.
   */
  withLock<T>(key: Key, work: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  withLock<T>(key: Key, options: AcquireOptions, work: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  /** A lock, or a `lock-busy` error when the wait ends. Release it, or declare it with `await using`. */
  acquire(key: Key, options?: AcquireOptions): Promise<Lock>;
  /** A lock, or `null`: somebody else holds it or waits for it. `null` means busy and nothing else (S6). */
  tryAcquire(key: Key, options?: TryOptions): Promise<Lock | null>;
  /** All of the locks or none, taken in the order of their keys within one wait. */
  acquireAll(keys: readonly Key[], options?: AcquireOptions): Promise<LockSet>;
  /** What the backend knows about the lock now. */
  inspect(key: Key): Promise<LockStatus>;
  /**
   * Takes the lock away from its holder, which is told so; for people. Emits `lock-forced` with the note.
   * `true`: there was a holder.
   */
  forceRelease(key: Key, options: { readonly note: string }): Promise<boolean>;
}
