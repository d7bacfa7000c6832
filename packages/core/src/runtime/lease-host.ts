/** What leases, claims and releases need from the guard around them; `Locks` implements it. */
import type { LockBackend, Release, ReleaseAnswer, RenewAnswer } from '../port/lock-backend.js';
import type { Clock, Random } from '../port/clock.js';
import type { GuardError } from '../value/error.js';
import type { Landing, Sink } from './coalescer.js';
import type { Events } from './events.js';
import type { Lease } from './held-lock.js';
import type { Scheduler } from './scheduler.js';

/** The surroundings of one guard's locks. */
export interface LeaseHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  readonly backend: LockBackend;
  readonly session: string;
  readonly minTtlMs: number;
  /** Renewals and deadlines of held locks: does not keep the process alive (L5). */
  readonly leases: Scheduler;
  /** Waits, retries and flights: keeps the process alive (L5). */
  readonly waits: Scheduler;
  renew(lease: Lease, ttlMs: number): Promise<Landing<RenewAnswer>>;
  /** Renews whatever else is due soon, so that renewals travel together (C3). */
  renewAlongWith(nowMonoMs: number): void;
  release(release: Release, ttlMs: number, sink: Sink<ReleaseAnswer>): void;
  /** The lease is not held any more, for whatever reason. */
  left(lease: Lease): void;
  /** A lock of this guard was given back: somebody may wait for it here. */
  gaveBack(fullKey: string): void;
  /** Resolves after so long; keeps the process alive. */
  pause(delayMs: number): Promise<void>;
  unavailable(what: string, cause: unknown): GuardError;
}
