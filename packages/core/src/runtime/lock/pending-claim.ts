/**
 * One claim on its way: the claim machine with a backend, a clock and a caller around it. The common case, a free
 * lock, is one request, one answer and no timer of its own.
 */
import {
  FIRST_CLAIM_STATE,
  claimStep,
  type ClaimEnd,
  type ClaimEvent,
  type ClaimPlan,
  type ClaimState,
  type ClaimStep,
  type GrantedEnd,
  type GiveUp,
  type QueueView,
} from '../../machine/claim.js';
import { backoffMs } from '../../machine/backoff.js';
import type { Claim, ClaimAnswer, Holder } from '../../port/lock-backend.js';
import type { Instant } from '../../value/instant.js';
import type { Landing, Submitted } from '../flight/operation.js';
import type { ClaimHost, WaitingClaim } from './claim-host.js';
import type { GuardError } from '../../value/error.js';
import type { ClaimOutcome, ClaimRequest } from './lock-service.js';
import { isPermanent } from '../flight/outage.js';
import type { Due } from '../flight/scheduler.js';

/** A try that failed is repeated for so long. */
const TRY_BUDGET_MS = 1_000;
const LONGEST_TICKET_MS = 6_000;

const BEING_CANCELLED = 'an abandoned claim of this guard on the key is still being taken back';

/** Who made the claim: told once how it ended. */
export interface ClaimOwner {
  ended(claim: PendingClaim, end: ClaimEnd): void;
}

/** A claim that has not ended. */
export class PendingClaim implements WaitingClaim, Due {
  dueMonoMs = 0;
  slot = -1;
  place = -1;
  readonly plan: ClaimPlan;
  /** What the last `busy` told. */
  busy: { readonly holder?: Holder; readonly expiresInMs?: number } | undefined;
  private state: ClaimState = FIRST_CLAIM_STATE;
  private submitted: Submitted | undefined;
  /** When an acquire under this id was last sent; `undefined`: never. */
  private lastSentMonoMs: number | undefined;
  /** An acquire under this id was sent and its answer is not known. */
  private unanswered = false;
  /** Something happened that the request on its way may not have seen. */
  private stale = false;
  private retry: Due | undefined;
  private grantedToken: bigint | undefined;
  /** Ends the listening to the caller's signal. */
  unlisten: (() => void) | undefined;

  constructor(
    private readonly host: ClaimHost & ClaimOwner,
    readonly request: ClaimRequest,
    /** What the backend calls the claim; a new one after the old one was spent. */
    public claim: string,
    startedAt: Instant,
    readonly nested: boolean,
    /** What the owner answers its caller by. */
    readonly resolve: (outcome: ClaimOutcome) => void,
    readonly reject: (error: GuardError) => void,
  ) {
    this.plan = {
      waits: request.waitMs > 0,
      ttlMs: request.ttlMs,
      ticketTtlMs: ticketTtlMs(request.ttlMs),
      faultBudgetMs: TRY_BUDGET_MS,
      startedAt,
    };
  }

  /** Sends the first request, or goes on from the answer that it had at once. */
  start(answer?: ClaimAnswer): void {
    const { startedAt, waits } = this.plan;
    if (waits && this.request.waitMs !== Infinity) {
      this.host.waits.schedule(this, startedAt.monoMs + this.request.waitMs);
    }
    if (answer === undefined) this.ask();
    else this.landed({ ok: true, answer, sentAt: startedAt });
  }

  /** Called by the scheduler: the wait is over. */
  fire(): void {
    this.giveUp('timeout');
  }

  giveUp(reason: GiveUp): void {
    this.apply({ type: 'given-up', reason });
  }

  /** A notice says that this ticket was handed the lock. */
  noticed(token: bigint): void {
    this.apply({ type: 'noticed', token, view: this.host.room.viewOf(this), now: this.host.clock.now() });
  }

  /** Sends the acquire (again): under the same id it is the same claim (S4). */
  ask(): void {
    if (this.state.phase === 'done' || this.submitted !== undefined) return;
    if (this.retry !== undefined) this.host.waits.cancel(this.retry);
    const claim = claimOf(this.host, this.request, this.claim);
    this.submitted = this.host.acquire(claim, (landing) => this.landed(landing));
  }

  /** Asks for what is so by now. A request on its way may have been carried out before, so another one follows it. */
  askAfresh(): void {
    if (this.submitted === undefined) return this.ask();
    this.stale = true;
  }

  /** Whether a request is on its way. */
  get isAsking(): boolean {
    return this.submitted !== undefined;
  }

  private landed(landing: Landing<ClaimAnswer>): void {
    if (this.state.phase === 'done') return this.overtaken(landing);
    this.submitted = undefined;
    this.lastSentMonoMs = landing.sentAt.monoMs;
    const { stale } = this;
    this.stale = false;
    const now = this.host.clock.now();
    if (!landing.ok || landing.answer.status === 'failed') {
      this.unanswered = true;
      const cause = landing.ok ? (landing.answer as { cause?: unknown }).cause : landing.cause;
      return this.apply({ type: 'failed', cause, permanent: isPermanent(cause), now });
    }
    this.answered(landing.answer, landing.sentAt, now);
    if (stale) this.ask();
  }

  private answered(answer: Exclude<ClaimAnswer, { status: 'failed' }>, sentAt: Instant, now: Instant): void {
    switch (answer.status) {
      case 'granted': {
        const wentBack = this.host.wentBack(this.request.key, answer.token);
        if (wentBack === undefined) return this.apply({ type: 'granted', token: answer.token, sentAt, now });
        // The grant is real, and nobody may use it: giving up as after a permanent fault gives it back.
        return this.apply({ type: 'failed', cause: wentBack, permanent: true, now });
      }
      case 'queued': {
        const view: QueueView = { minted: answer.minted, sentAt };
        const renewed = this.state.phase === 'queued' && answer.fresh === true;
        this.host.room.queued(this, view, answer.ahead, renewed);
        return this.apply({ type: 'queued', view, now });
      }
      case 'busy':
        // An abandoned claim of our own is not somebody else (S6): its cancel is on the way.
        if (!this.plan.waits && this.host.cancels.isOpenOn(this.request.key)) {
          return this.apply({ type: 'failed', cause: new Error(BEING_CANCELLED), permanent: false, now });
        }
        this.busy = answer;
        return this.apply({ type: 'busy' });
      case 'cancelled':
        return this.apply({ type: 'cancelled' });
    }
  }

  /**
   * A notice brought the lock while this request was on its way. Where the request was carried out after that grant
   * was over, which its token tells, its ticket or its own grant is nobody's (S4).
   */
  private overtaken(landing: Landing<ClaimAnswer>): void {
    if (this.grantedToken === undefined || !landing.ok) return;
    const { answer, sentAt } = landing;
    const isNobodys =
      (answer.status === 'queued' && answer.minted >= this.grantedToken) ||
      (answer.status === 'granted' && answer.token > this.grantedToken);
    if (!isNobodys) return;
    const { key } = this.request;
    const { ttlMs } = this.plan;
    const lastSentMonoMs = sentAt.monoMs;
    this.host.cancels.add({ key, claim: this.claim, ttlMs, lastSentMonoMs, unanswered: false });
  }

  private apply(event: ClaimEvent): void {
    if (this.state.phase === 'done') return;
    const step = claimStep(this.plan, this.state, event);
    this.state = step.state;
    if (step.cancel) this.cancel();
    if (step.renewId) this.renewId();
    if (step.ask !== undefined) this.askLater(step.ask);
    if (step.settle !== undefined) this.settle(step.settle);
    else if (event.type === 'failed' && step.state.phase === 'queued') this.host.room.failed(this);
  }

  private askLater(ask: NonNullable<ClaimStep['ask']>): void {
    if (ask === 'now') return this.ask();
    // Without a queue in the backend, one claim per key and process polls for all of them.
    if (ask === 'poll') return this.host.room.polls(this);
    const failures = this.state.phase === 'done' ? 1 : this.state.told.failures;
    const { clock, random, waits } = this.host;
    this.retry ??= { dueMonoMs: 0, slot: -1, fire: () => this.ask() };
    waits.schedule(this.retry, clock.now().monoMs + backoffMs(failures, random.fraction()));
  }

  private cancel(): void {
    const inFlight = this.submitted !== undefined && !this.submitted.withdraw();
    if (!inFlight && this.lastSentMonoMs === undefined) return;
    this.host.cancels.add({
      key: this.request.key,
      claim: this.claim,
      ttlMs: this.plan.ttlMs,
      lastSentMonoMs: inFlight ? this.host.clock.now().monoMs : this.lastSentMonoMs!,
      unanswered: this.unanswered || inFlight,
    });
  }

  private renewId(): void {
    this.host.forget(this);
    this.claim = this.host.nextClaimId();
    this.submitted = undefined;
    this.lastSentMonoMs = undefined;
    this.unanswered = false;
    this.host.remember(this);
  }

  private settle(end: ClaimEnd): void {
    this.host.waits.cancel(this);
    if (this.retry !== undefined) this.host.waits.cancel(this.retry);
    if (end.end === 'granted') {
      this.grantedToken = end.token;
      this.submitted?.withdraw();
    }
    this.host.ended(this, end);
  }
}

/** What the backend is asked for: the same by a flight and at once. */
export function claimOf(host: ClaimHost, request: ClaimRequest, id: string): Claim {
  const claim: { -readonly [Part in keyof Claim]: Claim[Part] } = {
    key: request.key,
    id,
    ttlMs: request.ttlMs,
    wait: request.waitMs > 0,
    ticketTtlMs: ticketTtlMs(request.ttlMs),
    session: host.session,
    holder: request.run === undefined ? host.holder : { ...host.holder, run: request.run },
  };
  const floor = host.floorOf(request.key);
  if (floor !== undefined) claim.floor = floor;
  return claim;
}

/** How long a ticket lives, and how long a hand-over is granted for. */
function ticketTtlMs(ttlMs: number): number {
  return Math.min(ttlMs, LONGEST_TICKET_MS);
}

/** When a lease is renewed first. A hand-over lasts a ticket's life only, so it is within a third of that. */
export function firstRenewMs({ ttlMs, renewMs }: ClaimRequest, end: GrantedEnd): number {
  if (end.handedOver) return ticketTtlMs(ttlMs) / 3;
  return renewMs === false ? Infinity : renewMs;
}
