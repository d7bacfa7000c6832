/** What pending claims need from the guard around them; `Locks` implements it. */
import type { QueueView } from '../machine/claim.js';
import type { Claim, ClaimAnswer, Holder } from '../port/lock-backend.js';
import type { Sink, Submitted } from './coalescer.js';
import type { GivenUp } from './cancels.js';
import type { LeaseHost } from './lease-host.js';
import type { PendingClaim } from './pending-claim.js';

/** The surroundings of one guard's claims. */
export interface ClaimHost extends LeaseHost {
  readonly holder: Holder;
  nextClaimId(): string;
  acquire(claim: Claim, sink: Sink<ClaimAnswer>): Submitted;
  /** The token that the next grant of the key must reach, where one is known and the backend honours it. */
  floorOf(fullKey: string): bigint | undefined;
  /** The fault of a grant whose token is below one that this process saw (S2), or `undefined`. */
  wentBack(fullKey: string, token: bigint): unknown;
  queueView(claim: PendingClaim): QueueView | undefined;
  /** The claim has a ticket. `renewed`: it had to be made anew, so the others of its key died as well. */
  queued(claim: PendingClaim, view: QueueView, ahead: number | undefined, renewed: boolean): void;
  /** The claim waits at a backend that keeps no queue. */
  polls(claim: PendingClaim): void;
  /** The request that refreshed the key's tickets failed. */
  refreshFailed(claim: PendingClaim, cause: unknown): void;
  cancel(givenUp: GivenUp): void;
  /** A notice: the claim's ticket was handed the lock. */
  noticedGrant(claimId: string, token: bigint): void;
  /** A notice: the claim does not hold the lock any more. */
  noticedLoss(claimId: string): void;
  /** The claim's id is about to change, or has changed. */
  forget(claim: PendingClaim): void;
  remember(claim: PendingClaim): void;
}
