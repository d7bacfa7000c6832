/** What claims ask for in a round: the leases that their keys are to stand under, as far as they are there. */
import type { Instant } from '@guard/core';
import { sentAs, type Asking, type Sent } from './asking.js';
import type { BusyLocks } from './busy-locks.js';
import type { Own } from './claims.js';
import type { Session, Sessions } from './sessions.js';
import { sessionFor, staysAt } from './standing.js';

/** Gets claims ready to be sent. */
export class Preparing {
  constructor(
    private readonly sessions: Sessions,
    private readonly busyLocks: BusyLocks,
  ) {}

  /** Where every session is there that is needed, as nearly always: a claim then costs no promise. */
  now(asking: readonly Asking[], now: Instant): Sent[] | undefined {
    const { sessions } = this;
    const sent: Sent[] = [];
    for (const one of asking) {
      const { claim, own, queues } = one;
      const short = this.isShort(own, now);
      const lock = staysAt(own, claim.ttlMs, now) ?? sessions.ready(claim.ttlMs, now);
      if (lock === undefined) return undefined;
      let ticket: Session | undefined;
      if (own.created !== undefined) ticket = claim.wait ? own.home : undefined;
      else if (claim.wait && !short) {
        ticket = sessions.ready(claim.ticketTtlMs, now);
        if (ticket === undefined && (queues || sessions.isOpening(claim.ticketTtlMs))) return undefined;
      }
      sent.push(sentAs(one, short, lock, ticket));
    }
    return sent;
  }

  async later(one: Asking, now: Instant): Promise<Sent> {
    const { claim, own } = one;
    const { sessions } = this;
    const short = this.isShort(own, now);
    const [lock, ticket] = await Promise.all([
      sessionFor(sessions, own, claim.ttlMs, now),
      claim.wait && !short ? this.ticketFor(one) : undefined,
    ]);
    return sentAs(one, short, lock, ticket);
  }

  /** Nothing of it can be in etcd, and nobody was met at its lock. */
  private isShort(own: Own, now: Instant): boolean {
    return !own.asked && !this.busyLocks.isBusy(own.key, now.monoMs);
  }

  /** Most claims never need a ticket, so a lease for it is granted once it is needed, or beside that of the lock. */
  private async ticketFor({ claim, own, queues }: Asking): Promise<Session | undefined> {
    const { sessions } = this;
    if (own.created !== undefined) return own.home;
    const isFirst = (await sessions.peek(claim.ttlMs)) === undefined;
    return queues || isFirst ? sessions.take(claim.ticketTtlMs) : sessions.peek(claim.ticketTtlMs);
  }
}
