/**
 * Acquire, until every claim of a call has its answer. A free lock is one round. Further rounds are for what is rare:
 * a ticket for which there is no lease yet, a lease that was over, a claim whose earlier request was never answered.
 */
import type { Claim, ClaimAnswer, Clock, Instant } from '@guard/core';
import type { IKeyValue } from 'etcd3';
import { addNeeds, sentAs, type Asking, type Sent } from './asking.js';
import type { BusyLocks } from './busy-locks.js';
import type { Claims, Own } from './claims.js';
import type { EtcdConnection } from './connection.js';
import { LeaseGone, type Flights, type Landed } from './flight.js';
import type { HandOvers } from './hand-over.js';
import { readValue, writeValue } from './lock-value.js';
import type { Reaper } from './reaper.js';
import type { Session, Sessions } from './sessions.js';
import { sessionFor, standsUnderNothing, staysAt } from './standing.js';
import { acquireFree, acquireKnown, acquireNew } from './statements/acquire.js';
import { found, type Answer, type Step } from './statements/txn.js';

const MAX_ROUNDS = 5;
/**
 * A waiter that nobody told, and that finds itself the oldest, may come after a holder whose lease others ended. Where
 * that holder lives, its watch tells it about now, and it is to know before the next one begins (B19).
 */
const TELL_FIRST_MS = 150;

/** What acquiring needs of its adapter. */
export interface AcquireHost {
  readonly connection: EtcdConnection;
  readonly clock: Clock;
  readonly sessions: Sessions;
  readonly claims: Claims;
  readonly busyLocks: BusyLocks;
  readonly handOvers: HandOvers;
  readonly flights: Flights;
  readonly reaper: Reaper;
}

/** One call of acquire. */
export class Acquiring {
  private readonly answers: ClaimAnswer[] = [];
  private again: Asking[] = [];
  private untold = false;

  constructor(private readonly host: AcquireHost) {}

  async run(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    const { host } = this;
    let asking = claims.map((claim, index): Asking => {
      return { claim, index, own: host.claims.ask(claim), queues: false };
    });
    const owns = new Set(asking.map(({ own }) => own));
    for (const own of owns) own.flights += 1;
    try {
      for (let round = 0; asking.length > 0 && round < MAX_ROUNDS; round += 1) {
        this.again = [];
        await this.round(asking);
        asking = this.again;
      }
      if (this.untold) await this.letOthersKnow();
    } finally {
      for (const own of owns) own.flights -= 1;
    }
    for (const { index, claim } of asking)
      this.fail(index, new Error(`etcd gave no lasting lease for ${claim.key}`));
    // A lease may have been ended by others while the rest of the call was under way.
    for (const [index, { id, key }] of claims.entries()) {
      if (host.claims.get(id)?.home?.over) this.fail(index, new Error(`the lease of ${key} was ended`));
    }
    return this.answers;
  }

  private letOthersKnow(): Promise<void> {
    return new Promise((resolve) => void this.host.clock.setTimer(resolve, TELL_FIRST_MS));
  }

  private async round(asking: readonly Asking[]): Promise<void> {
    const over = asking.filter(({ own }) => standsUnderNothing(own));
    if (over.length > 0) await this.leaveOver(over);
    const now = this.host.clock.now();
    const sent =
      this.prepareNow(asking, now) ?? (await Promise.all(asking.map((one) => this.prepare(one, now))));
    const needs = sent.reduce(addNeeds, []);
    try {
      const sentAt = this.host.clock.now();
      const landed = await this.host.flights.fly(
        sent.map((one) => this.stepOf(one)),
        needs,
      );
      for (const [n, one] of sent.entries()) this.land(one, landed.answers[n]!, landed, sentAt);
    } catch (cause) {
      for (const one of sent) this.failed(one, cause);
    }
  }

  /** A key that stands under a lease that is over is gone soon: it is taken away, and the claim asks as a new one. */
  private async leaveOver(asking: readonly Asking[]): Promise<void> {
    const { flights } = this.host;
    await Promise.all(asking.map(({ own }) => flights.take(own)));
  }

  /** Where every session is there that is needed, as nearly always: a claim then costs no promise. */
  private prepareNow(asking: readonly Asking[], now: Instant): Sent[] | undefined {
    const { sessions } = this.host;
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

  private async prepare(one: Asking, now: Instant): Promise<Sent> {
    const { claim, own } = one;
    const { sessions } = this.host;
    const short = this.isShort(own, now);
    const [lock, ticket] = await Promise.all([
      sessionFor(sessions, own, claim.ttlMs, now),
      claim.wait && !short ? this.ticketFor(one) : undefined,
    ]);
    return sentAs(one, short, lock, ticket);
  }

  /** Nothing of it can be in etcd, and nobody was met at its lock. */
  private isShort(own: Own, now: Instant): boolean {
    return !own.asked && !this.host.busyLocks.isBusy(own.key, now.monoMs);
  }

  /** Most claims never need a ticket, so a lease for it is granted once it is needed, or beside that of the lock. */
  private async ticketFor({ claim, own, queues }: Asking): Promise<Session | undefined> {
    const { sessions } = this.host;
    if (own.created !== undefined) return own.home;
    const isFirst = (await sessions.peek(claim.ttlMs)) === undefined;
    return queues || isFirst ? sessions.take(claim.ticketTtlMs) : sessions.peek(claim.ticketTtlMs);
  }

  private stepOf({ claim, own, short, lock, ticket, created }: Sent): Step {
    own.asked = true;
    const { names } = this.host.connection;
    const parts = {
      lock: own.lock,
      name: own.name,
      tombstone: names.tombstone(claim.id),
      held: { value: writeValue(claim, false), lease: lock.lease },
    };
    if (created !== undefined) return acquireKnown(parts, created, claim.wait);
    if (short) return acquireFree(parts);
    const place = ticket && { value: writeValue(claim, true), lease: ticket.lease };
    return acquireNew({ ...parts, ticket: place });
  }

  private land(one: Sent, answer: Answer, landed: Landed, sentAt: Instant): void {
    if (answer.succeeded) return this.granted(one, one.created ?? landed.revision, landed, sentAt);
    if (one.short) return this.taken(one, found(answer.responses[0]), landed, sentAt);
    const rest = answer.responses[0]!.response_txn as Answer;
    if (rest.succeeded) this.behind(one, found(rest.responses[0]), landed, sentAt);
    else this.refused(one, rest);
  }

  private granted(one: Sent, token: bigint, landed: Landed, sentAt: Instant): void {
    const { own, lock, claim } = one;
    this.host.claims.settle(own, lock, token);
    const verdict = landed.verdict(lock);
    if (verdict === 'over') return this.retry(one);
    this.untold ||= one.created !== undefined && !own.held && !own.told;
    own.held = true;
    const untilMs = sentAt.monoMs + claim.ttlMs;
    this.believe(own, own.untilMs === Infinity ? untilMs : Math.max(own.untilMs, untilMs));
    if (verdict === 'unsure') return this.fail(one.index, new Error('etcd did not confirm the lease'));
    this.answers[one.index] = { status: 'granted', token };
  }

  /** The short form was not enough. A try is done where it is sure that the key it saw is not its own. */
  private taken(one: Sent, oldest: readonly IKeyValue[], landed: Landed, sentAt: Instant): void {
    if (!one.claim.wait && oldest.length > 0 && !landed.resent) {
      return this.behind(one, oldest, landed, sentAt);
    }
    this.host.busyLocks.met(one.own.key, sentAt.monoMs);
    this.retry(one, one.claim.wait);
  }

  /** Somebody else holds the lock. */
  private behind(one: Sent, oldest: readonly IKeyValue[], landed: Landed, sentAt: Instant): void {
    const { claim, own, ticket } = one;
    const { busyLocks, claims, handOvers } = this.host;
    busyLocks.met(own.key, sentAt.monoMs);
    if (claim.wait && ticket === undefined) return this.retry(one, true);
    if (claim.wait && ticket !== undefined) {
      this.queued(one, ticket, this.minted(oldest), landed, sentAt);
    } else {
      claims.forget(own);
      const holder = oldest[0] && readValue(oldest[0].value)?.holder;
      this.answers[one.index] = { status: 'busy', ...(holder === undefined ? undefined : { holder }) };
    }
    handOvers.met(own.key, oldest);
  }

  /**
   * The token of the holder. Tickets behind it have larger ones, those of this process too, which share what is answered
   * here. Where the holder is a ticket of this process that may not know yet, its notice is still to be believed.
   */
  private minted([head]: readonly IKeyValue[]): bigint {
    if (head === undefined) return 0n;
    const { process } = this.host.connection.names.parseClaim(head.key);
    const isNews = process === this.host.claims.process && readValue(head.value)?.waits === true;
    return BigInt(head.create_revision) - (isNews ? 1n : 0n);
  }

  private queued(one: Sent, ticket: Session, minted: bigint, landed: Landed, sentAt: Instant): void {
    const { own, claim, index, created } = one;
    const place = created ?? landed.revision;
    this.host.claims.settle(own, ticket, place);
    const verdict = landed.verdict(ticket);
    if (verdict === 'over') return this.retry(one);
    if (created === undefined) this.believe(own, sentAt.monoMs + claim.ticketTtlMs);
    else this.refreshed(one, sentAt);
    if (verdict === 'unsure') return this.fail(index, new Error('etcd did not confirm the lease'));
    this.answers[index] = { status: 'queued', minted, fresh: created === undefined };
  }

  /** One ticket that asks again speaks for all of its session. */
  private refreshed({ own, claim }: Sent, sentAt: Instant): void {
    for (const other of this.host.claims.ofSession(own.key, own.session)) {
      const isTicket = !other.held && other.created !== undefined && other.home === own.home;
      if (isTicket) other.untilMs = Math.max(other.untilMs, sentAt.monoMs + claim.ticketTtlMs);
    }
  }

  private refused(one: Sent, rest: Answer): void {
    const { claims, sessions } = this.host;
    const { own, claim } = one;
    if (found(rest.responses[0]).length > 0) {
      claims.forget(own);
      this.answers[one.index] = { status: 'cancelled' };
      return;
    }
    // A known key that is gone: it asks as a new claim.
    if (one.created !== undefined) {
      claims.lose(own);
      return this.retry(one);
    }
    const [key] = found(rest.responses[1]);
    const isOurs = key !== undefined && readValue(key.value)?.claim === claim.id;
    if (isOurs) {
      // An earlier request was carried out, and its answer was lost.
      own.created = BigInt(key.create_revision);
      const home = sessions.byLease(key.lease);
      if (home !== undefined) claims.settle(own, home, own.created);
      return this.retry(one);
    }
    claims.forget(own, true);
    this.retry({ ...one, own: claims.ask(claim) });
  }

  private failed(one: Sent, cause: unknown): void {
    const { claims } = this.host;
    const named = addNeeds([], one).map(({ session }) => session);
    if (cause instanceof LeaseGone) return this.retry(one);
    if (one.own.created === undefined) claims.doubt(one.own, named);
    // It is given up by its claim id; where that never happens, its key must not live on with the others.
    if (one.own.untilMs === Infinity)
      this.believe(one.own, this.host.clock.now().monoMs + 2 * one.claim.ttlMs);
    this.fail(one.index, cause);
  }

  private believe(own: Own, untilMs: number): void {
    own.untilMs = untilMs;
    this.host.reaper.until(untilMs);
  }

  private retry({ claim, index, own, queues }: Asking, queuesNow = queues): void {
    this.again.push({ claim, index, own, queues: queuesNow });
  }

  private fail(index: number, cause: unknown): void {
    this.answers[index] = { status: 'failed', cause };
  }
}
