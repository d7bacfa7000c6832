/**
 * What the rest of the runtime (single runs, nodes, facades) sees of locks: full keys in, handles out. Waiting,
 * renewing, batching and giving up happen behind it.
 */
import type { GuardEvents } from '../../api/event.js';
import type { Lock } from '../../api/lock.js';
import type { Holder, LockInfo } from '../../port/lock-backend.js';

/** One wish for a lock, already checked. */
export interface ClaimRequest {
  /** Full key. */
  readonly key: string;
  /** What errors, events and `lock.key` show. */
  readonly shownKey: string;
  readonly ttlMs: number;
  /** How long to wait; 0 tries once and leaves no ticket; `Infinity` is allowed. */
  readonly waitMs: number;
  /** Period of renewal, or `false`. */
  readonly renewMs: number | false;
  readonly signal?: AbortSignal | undefined;
  /** Identity of the run that the lock is for: what `busy` shows to others. */
  readonly run?: string | undefined;
}

/** What became of the wish. Faults are thrown: `aborted`, `unavailable`, `closed`. */
export type ClaimOutcome =
  | { readonly status: 'granted'; readonly lock: HeldLock }
  /** The wait ended, and somebody else holds the lock (or stands before us). */
  | { readonly status: 'busy'; readonly holder?: Holder; readonly expiresInMs?: number };

/** Why a claim ended without a lock, as its event tells it. */
export type CancelReason = GuardEvents['claim-cancelled']['reason'];

/** A handle with what the run engine needs beyond the public face. */
export interface HeldLock extends Lock {
  /** Full key. */
  readonly fullKey: string;
  /** `name` of the backend that granted it: fences compare tokens of one backend only. */
  readonly backendName: string;
  /** Like `assertHeld`, but a suspect lock waits for its verdict. */
  assertHeldSoon(): Promise<void>;
  /** Lets the lease run out: no renewal any more, no release. For work that does not settle. */
  letGo(): void;
  /** Calls back once when the lock is lost; at once if it is. Returns a function that takes the wish back. */
  onLost(listener: () => void): () => void;
}

/** Locks of one guard. */
export interface LockService {
  /** `name` of the lock backend. */
  readonly backendName: string;
  /** The lock backend by identity: a context remembers of which one its locks are. */
  readonly backend: object;
  claim(request: ClaimRequest): Promise<ClaimOutcome>;
  /** What the backend knows about these full keys, in their order. Throws `unavailable`. */
  inspect(keys: readonly string[]): Promise<readonly LockInfo[]>;
}
