/** What pending claims need from the guard around them; `Locks` implements it. */
import type { ClaimPlan, GiveUp, QueueView } from '../../machine/claim.js';
import type { Claim, ClaimAnswer, Holder } from '../../port/lock-backend.js';
import type { Sink, Submitted } from '../flight/operation.js';
import type { OfClaim } from './bag.js';
import type { Cancels } from './cancels.js';
import type { LeaseHost } from './lease-host.js';
import type { ClaimRequest } from './lock-service.js';

/** A claim as those see it that wait with it. */
export interface WaitingClaim extends OfClaim {
  /** What the backend calls it: a new one after the old one was spent. */
  readonly claim: string;
  readonly plan: ClaimPlan;
  readonly request: ClaimRequest;
  /** Asked for by work that is under a lock or run already: a closing guard lets it finish. */
  readonly nested: boolean;
  /** Whether a request is on its way. */
  readonly isAsking: boolean;
  /** Sends the acquire again. */
  ask(): void;
  /** The same, after a request that is on its way as well: that one may have been carried out too early. */
  askAfresh(): void;
  noticed(token: bigint): void;
  giveUp(reason: GiveUp): void;
}

/** Where claims wait. */
export interface Room {
  /** The claim has a ticket. `renewed`: it had to be made anew, so the others of its key died as well. */
  queued(claim: WaitingClaim, view: QueueView, ahead: number | undefined, renewed: boolean): void;
  /** The claim waits at a backend that keeps no queue. */
  polls(claim: WaitingClaim): void;
  /** The request that refreshed the key's tickets failed. */
  failed(claim: WaitingClaim): void;
  viewOf(claim: WaitingClaim): QueueView | undefined;
}

/** The surroundings of one guard's claims. */
export interface ClaimHost extends LeaseHost {
  readonly holder: Holder;
  readonly cancels: Cancels;
  readonly room: Room;
  /** Locks are held whose loss is told by notices. */
  readonly awaitsLosses: boolean;
  nextClaimId(): string;
  acquire(claim: Claim, sink: Sink<ClaimAnswer>): Submitted;
  /** The token that the next grant of the key must reach, where one is known and the backend honours it. */
  floorOf(fullKey: string): bigint | undefined;
  /** The fault of a grant whose token is below one that this process saw (S2), or `undefined`. */
  wentBack(fullKey: string, token: bigint): unknown;
  /** A notice: the claim's ticket was handed the lock. */
  noticedGrant(claimId: string, token: bigint): void;
  /** A notice: the claim's ticket may have been handed the lock, and asking tells. */
  noticedTurn(claimId: string): void;
  /** A notice: the claim does not hold the lock any more. */
  noticedLoss(claimId: string): void;
  /** The claim's id is about to change, or has changed. */
  forget(claim: WaitingClaim): void;
  remember(claim: WaitingClaim): void;
}
