/** A claim on its way: what it asks for in a round, and what that needs. */
import type { Claim } from '@guard/core';
import type { Own } from './claims.js';
import type { Need } from './flight.js';
import type { Session } from './sessions.js';

/** A claim that has no answer yet. */
export interface Asking {
  readonly claim: Claim;
  readonly index: number;
  own: Own;
  /** A ticket is to be made in the next round, whatever it costs. */
  queues: boolean;
}

/** A claim in one round. */
export interface Sent {
  readonly claim: Claim;
  readonly index: number;
  readonly own: Own;
  readonly queues: boolean;
  /** It asks in the short form: it leaves nothing behind where it is not granted. */
  readonly short: boolean;
  readonly lock: Session;
  readonly ticket: Session | undefined;
  /** The revision of its key, where the round started from one. */
  readonly created: bigint | undefined;
}

/** A claim as it goes into a round. */
export function sentAs(asking: Asking, short: boolean, lock: Session, ticket: Session | undefined): Sent {
  const { claim, index, own, queues } = asking;
  return { claim, index, own, queues, short, lock, ticket, created: own.created };
}

/** What a claim needs, after what others do: most of a batch need the same. */
export function addNeeds(needs: Need[], { claim, lock, ticket }: Sent): Need[] {
  addNeed(needs, lock, claim.ttlMs);
  if (ticket !== undefined && ticket !== lock) addNeed(needs, ticket, claim.ticketTtlMs);
  return needs;
}

function addNeed(needs: Need[], session: Session, ttlMs: number): void {
  if (!needs.some((need) => need.session === session && need.ttlMs === ttlMs)) needs.push({ session, ttlMs });
}
