/** The queue of a held key: tickets by claim id, in the order in which they came. A dead one is dropped when it is met. */
import type { Claim } from '../port/lock-backend.js';
import type { FreshMap } from '../value/fresh-map.js';

/** A claim that waits. */
export interface Ticket {
  readonly claim: Claim;
  untilMs: number;
}

/**
 * Refreshes the session's tickets and drops dead ones; answers how many stand before the claim's own. A ticket that
 * died is not revived: others may have been told that it is gone, so its claim starts again at the end.
 */
export function refresh(queue: FreshMap<string, Ticket>, { id, session }: Claim, nowMs: number): number {
  let position = 0;
  let ahead: number | undefined;
  for (const [ticketId, ticket] of queue) {
    if (ticket.untilMs <= nowMs) {
      queue.delete(ticketId);
      continue;
    }
    if (ticket.claim.session === session) ticket.untilMs = nowMs + ticket.claim.ticketTtlMs;
    if (ticketId === id) ahead = position;
    position += 1;
  }
  return ahead ?? position;
}

/** How many stand in the queue, once the dead ones at its head are dropped: a newcomer never walks all of it. */
export function headCount(queue: FreshMap<string, Ticket>, nowMs: number): number {
  for (const { claim, untilMs } of queue.values()) {
    if (untilMs > nowMs) break;
    queue.delete(claim.id);
  }
  return queue.size;
}
