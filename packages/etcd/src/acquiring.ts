/**
 * Acquire, until every claim of a call has its answer. A free lock is one round. Further rounds are for what is rare:
 * a ticket for which there is no lease yet, a lease that was over, a claim whose earlier request was never answered.
 */
import type { Claim, ClaimAnswer, Clock, Instant } from '@guard/core';
import type { IKeyValue } from 'etcd3';
import { addNeeds, isOver, type Asking, type Sent } from './asking.js';
import type { BusyLocks } from './busy-locks.js';
import { isOvertaken, type Claims, type Own } from './claims.js';
import type { EtcdConnection } from './connection.js';
import { LeaseGone, type Flights, type Landed } from './flight.js';
import type { HandOvers } from './hand-over.js';
import { readValue, writeValue } from './lock-value.js';
import type { OwnKeys } from './own-keys.js';
import type { Predecessors } from './predecessors.js';
import type { Preparing } from './preparing.js';
import type { Reaper } from './reaper.js';
import type { Session, Sessions } from './sessions.js';
import { standsUnderNothing } from './standing.js';
import type { Strays } from './strays.js';
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
  readonly strays: Strays;
  readonly preparing: Preparing;
  readonly predecessors: Predecessors;
  readonly ownKeys: OwnKeys;
}

/** One call of acquire. */
export class Acquiring {
  private readonly answers: ClaimAnswer[] = [];
  private readonly owns = new Set<Own>();
  private again: Asking[] = [];
  private untold = false;
  /** What has an answer that says that a key stands. */
  private readonly standing: Sent[] = [];

  constructor(private readonly host: AcquireHost) {}

  async run(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    const { host } = this;
    let asking = claims.map((claim, index) => this.asks(claim, index, false));
    try {
      for (let round = 0; asking.length > 0 && round < MAX_ROUNDS; round += 1) {
        this.again = [];
        await this.round(asking);
        asking = this.again;
      }
      if (this.untold) await this.letOthersKnow();
    } finally {
      for (const own of this.owns) this.landed(own);
    }
    for (const { index, claim } of asking)
      this.fail(index, new Error(`etcd gave no lasting lease for ${claim.key}`));
    // The rest of the call was under way, and meanwhile a claim may have ended, or a lease been ended by others.
    for (const one of this.standing) this.isCancelled(one);
    for (const [index, { id, key }] of claims.entries()) {
      if (host.claims.get(id)?.home?.over) this.fail(index, new Error(`the lease of ${key} was ended`));
    }
    return this.answers;
  }

  private asks(claim: Claim, index: number, queues: boolean): Asking {
    const own = this.host.claims.ask(claim);
    if (!this.owns.has(own)) own.flights += 1;
    this.owns.add(own);
    return { claim, index, own, ends: own.ends, queues };
  }

  /** What was never sent, or was given up meanwhile, is taken from the books as well. */
  private landed(own: Own): void {
    own.flights -= 1;
    if (own.untilMs === Infinity) this.believe(own, this.host.clock.now().monoMs + 2 * own.claim.ttlMs);
  }

  private letOthersKnow(): Promise<void> {
    return new Promise((resolve) => void this.host.clock.setTimer(resolve, TELL_FIRST_MS));
  }

  private async round(asking: readonly Asking[]): Promise<void> {
    const { preparing } = this.host;
    const over = asking.filter(({ own }) => standsUnderNothing(own));
    if (over.length > 0) await this.leaveOver(over);
    const now = this.host.clock.now();
    const prepared =
      preparing.now(asking, now) ?? (await Promise.all(asking.map((one) => preparing.later(one, now))));
    const sent = prepared.filter((one) => !this.isCancelled(one));
    if (sent.length === 0) return;
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
    await flights.take(asking.map(({ own }) => own));
  }

  /** Nothing more is asked for a claim that is over: nobody would give back what that makes. */
  private isCancelled(one: Sent): boolean {
    if (!isOver(one)) return false;
    this.answers[one.index] = { status: 'cancelled' };
    return true;
  }

  private stepOf({ claim, own, short, lock, ticket, created, modified, rewrites }: Sent): Step {
    own.asked = true;
    const { names } = this.host.connection;
    const parts = {
      lock: own.lock,
      name: own.name,
      tombstone: names.tombstone(claim.id),
      held: { value: writeValue(claim, false), lease: lock.lease },
    };
    if (short) return acquireFree(parts);
    const place = ticket && { value: writeValue(claim, true), lease: ticket.lease };
    if (created === undefined) return acquireNew({ ...parts, ticket: place });
    return acquireKnown(
      { ...parts, ticket: rewrites ? place : undefined },
      { created, modified },
      claim.wait,
    );
  }

  private land(one: Sent, answer: Answer, landed: Landed, sentAt: Instant): void {
    const { own, known } = one;
    if (this.isCancelled(one)) {
      // What it made is nobody's.
      if (one.created === undefined) this.host.strays.look(own.name);
      return;
    }
    // It asks once more, from what is known by now, and as the claim was asked last.
    if (isOvertaken(own, known, landed.revision)) return this.retry({ ...one, claim: own.claim });
    own.seen = landed.revision;
    if (answer.succeeded) return this.granted(one, one.created ?? landed.revision, landed, sentAt);
    if (one.short) return this.taken(one, found(answer.responses[0]), landed, sentAt);
    const rest = answer.responses[0]!.response_txn as Answer;
    if (rest.succeeded) this.behind(one, found(rest.responses[0]), landed, sentAt);
    else this.refused(one, rest);
  }

  private granted(one: Sent, token: bigint, landed: Landed, sentAt: Instant): void {
    const { own, lock, claim } = one;
    this.host.claims.settle(own, lock, token, landed.revision);
    own.unanswered = false;
    const verdict = landed.verdict(lock);
    if (verdict === 'over') return this.retry(one);
    this.untold ||= one.created !== undefined && !own.held && own.toldMs === undefined;
    own.held = true;
    this.host.ownKeys.held();
    const untilMs = sentAt.monoMs + claim.ttlMs;
    this.believe(own, own.untilMs === Infinity ? untilMs : Math.max(own.untilMs, untilMs));
    if (verdict === 'unsure') return this.fail(one.index, lock.unsure());
    this.standing.push(one);
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
    const { busyLocks, claims, handOvers, predecessors } = this.host;
    busyLocks.met(own.key, sentAt.monoMs);
    if (claim.wait && ticket === undefined) return this.retry(one, true);
    if (claim.wait && ticket !== undefined) {
      if (one.created !== undefined) predecessors.met(oldest);
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
    const { own, claim, index, created, modified, rewrites } = one;
    const writes = created === undefined || rewrites;
    this.host.claims.settle(own, ticket, created ?? landed.revision, writes ? landed.revision : modified);
    if (writes) own.unanswered = false;
    const verdict = landed.verdict(ticket);
    if (verdict === 'over') return this.retry(one);
    if (created === undefined) this.believe(own, sentAt.monoMs + claim.ticketTtlMs);
    else this.refreshed(one, sentAt);
    if (verdict === 'unsure') return this.fail(index, ticket.unsure());
    this.standing.push(one);
    this.answers[index] = { status: 'queued', minted, fresh: created === undefined };
  }

  /**
   * One ticket that asks again speaks for all of its session. Not for one that was told before that it holds the lock:
   * a hand-over lasts a ticket's life, and where nobody wants it others must not wait behind it for longer (L3).
   */
  private refreshed({ own, claim }: Sent, sentAt: Instant): void {
    for (const other of this.host.claims.ofSession(own.key, own.session)) {
      const isTicket = !other.held && other.created !== undefined && other.home === own.home;
      const waits = other === own || other.toldMs === undefined || other.toldMs > sentAt.monoMs;
      if (isTicket && waits) other.untilMs = Math.max(other.untilMs, sentAt.monoMs + claim.ticketTtlMs);
    }
  }

  private refused(one: Sent, rest: Answer): void {
    const { claims, strays } = this.host;
    const { own, claim } = one;
    if (found(rest.responses[0]).length > 0) {
      claims.forget(own);
      this.answers[one.index] = { status: 'cancelled' };
      return;
    }
    const [key] = found(rest.responses[1]);
    // Its key is gone, or was written since: an earlier request was carried out, and its answer was lost.
    if (one.created !== undefined || key === undefined || claims.behind(key) === own) {
      claims.found(own, key);
      return this.retry(one);
    }
    // A key that nobody knows has the name.
    claims.forget(own, true);
    strays.look(own.name);
    this.again.push(this.asks(claim, one.index, one.queues));
  }

  private failed(one: Sent, cause: unknown): void {
    const { claims, strays } = this.host;
    const { own, claim, created, lock } = one;
    if (cause instanceof LeaseGone) return this.retry(one);
    const isNew = created === undefined;
    const named = isNew ? addNeeds([], one).map(({ session }) => session) : [lock];
    claims.doubt(own, named, isNew);
    own.unanswered = true;
    // It may still be carried out, when nobody knows of the claim any more.
    if (isNew) strays.lookAfter(own, 2 * claim.ttlMs);
    this.fail(one.index, cause);
  }

  private believe(own: Own, untilMs: number): void {
    own.untilMs = untilMs;
    this.host.reaper.until(untilMs);
  }

  private retry({ claim, index, own, ends, queues }: Asking, queuesNow = queues): void {
    this.again.push({ claim, index, own, ends, queues: queuesNow });
  }

  private fail(index: number, cause: unknown): void {
    this.answers[index] = { status: 'failed', cause };
  }
}
