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
  /** How often the claim had ended when this call began. */
  ends: number;
  /** A ticket is to be made in the next round, whatever it costs. */
  queues: boolean;
}

/** A claim in one round. */
export interface Sent {
  readonly claim: Claim;
  readonly index: number;
  readonly own: Own;
  readonly ends: number;
  readonly queues: boolean;
  /** It asks in the short form: it leaves nothing behind where it is not granted. */
  readonly short: boolean;
  readonly lock: Session;
  readonly ticket: Session | undefined;
  /** The revision of its key, where the round started from one. */
  readonly created: bigint | undefined;
  /** The revision that wrote that key last. */
  readonly modified: bigint;
  /** The largest revision of an answer about it, when the round started. */
  readonly known: bigint;
  /** A ticket that stays is written again, so that a request that was never answered comes to nothing. */
  readonly rewrites: boolean;
}

/** A claim as it goes into a round. */
export function sentAs(asking: Asking, short: boolean, lock: Session, ticket: Session | undefined): Sent {
  const { claim, index, own, ends, queues } = asking;
  const { created, modified, seen: known, unanswered } = own;
  const rewrites = unanswered && created !== undefined && claim.wait && !own.held;
  return { claim, index, own, ends, queues, short, lock, ticket, created, modified, known, rewrites };
}

/** Whether the claim was given back, given up or lost since this call of it began. */
export function isOver({ own, ends }: Asking | Sent): boolean {
  return own.ends !== ends;
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
