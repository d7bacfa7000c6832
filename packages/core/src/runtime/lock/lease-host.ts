/** What leases, claims and releases need from the guard around them; `Locks` implements it. */
import type { LockBackend, Release, ReleaseAnswer, RenewAnswer } from '../../port/lock-backend.js';
import type { Clock, Random } from '../../port/clock.js';
import type { GuardError } from '../../value/error.js';
import type { Landing, Sink } from '../flight/operation.js';
import type { Events } from '../events.js';
import type { OfClaim, Placed } from './bag.js';
import type { Scheduler } from '../flight/scheduler.js';

/** What names a grant to the backend. */
export interface Grant {
  readonly key: string;
  readonly fullKey: string;
  readonly claim: string;
  readonly token: bigint;
  readonly ttlMs: number;
}

/** A release that can be told to stop. */
export interface OpenRelease extends Placed {
  stop(): void;
}

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
  /** Releases on their way; closing waits for them. */
  readonly releasing: { add(task: OpenRelease): void; remove(task: OpenRelease): void };
  /** Waits, retries and flights: keeps the process alive (L5). */
  readonly waits: Scheduler;
  renew(grant: Grant, ttlMs: number): Promise<Landing<RenewAnswer>>;
  /** Renews whatever else is due soon, so that renewals travel together (C3). */
  renewAlongWith(nowMonoMs: number): void;
  /** Whether the backend may have an answer at once: otherwise it need not be asked for one. */
  readonly answersAtOnce: boolean;
  /** The answer to a release that the backend has at once; `undefined`: it was not asked. */
  releaseAtOnce(release: Release, nowMonoMs: number): ReleaseAnswer | undefined;
  release(release: Release, ttlMs: number, sink: Sink<ReleaseAnswer>): void;
  /** The lease is not held any more, for whatever reason. */
  left(lease: OfClaim): void;
  /** A lock of this guard was given back: somebody may wait for it here. */
  gaveBack(fullKey: string): void;
  unavailable(what: string, cause: unknown): GuardError;
}
