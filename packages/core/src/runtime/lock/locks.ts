/**
 * The locks of one guard: the only place where claims, leases, batches, notices and the backend meet. Everything here
 * is plumbing; what decides is in `machine/`.
 */
import { grantedAtOnce, type ClaimEnd, type GrantedEnd } from '../../machine/claim.js';
import type { Clock, Policy, Random } from '../../port/clock.js';
import type {
  Claim,
  ClaimAnswer,
  Holder,
  LockBackend,
  LockInfo,
  Release,
  ReleaseAnswer,
  RenewAnswer,
} from '../../port/lock-backend.js';
import type { GuardError } from '../../value/error.js';
import type { Instant } from '../../value/instant.js';
import type { ClaimHost, WaitingClaim } from './claim-host.js';
import { ClaimBag, type OfClaim } from './bag.js';
import { Cancels } from './cancels.js';
import { HeldLocks } from './held-locks.js';
import type { Landing, Sink, Submitted } from '../flight/operation.js';
import { currentFrame, holdsInFrame, type Frame } from '../context.js';
import type { Events } from '../events.js';
import { Lease } from './held-lock.js';
import type { Grant } from './lease-host.js';
import type { CancelReason, ClaimOutcome, ClaimRequest, LockService } from './lock-service.js';
import { abortedError, closedError, deadlockError, faultError } from './lock-errors.js';
import { unavailable } from '../flight/outage.js';
import { atMost } from '../flight/pause.js';
import { PendingClaim, claimOf, firstRenewMs, type ClaimOwner } from './pending-claim.js';
import { OpenReleases } from './release-task.js';
import { Scheduler } from '../flight/scheduler.js';
import { SeenTokens } from './seen-tokens.js';
import { WaitingRoom } from './waiting-room.js';
import { asking } from '../flight/retry.js';
import { Verbs } from '../flight/verbs.js';

const INSPECT_BUDGET_MS = 5_000;

/** What the locks of a guard are made of. */
export interface LocksOptions {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  readonly policy: Policy;
  readonly session: string;
  readonly label: string;
}

/** Locks of one guard. */
export class Locks implements LockService, ClaimHost, ClaimOwner {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  readonly backend: LockBackend;
  readonly session: string;
  readonly holder: Holder;
  readonly minTtlMs: number;
  readonly answersAtOnce: boolean;
  readonly leases: Scheduler;
  readonly waits: Scheduler;
  readonly cancels: Cancels;
  readonly releasing = new OpenReleases();
  readonly room: WaitingRoom;
  private readonly held: HeldLocks;
  private readonly pending = new ClaimBag<WaitingClaim>();
  private readonly seen = new SeenTokens();
  private readonly verbs: Verbs;
  private claimCount = 0;
  private phase: 'open' | 'closing' | 'closed' = 'open';

  constructor(options: LocksOptions) {
    const { backend, clock, events } = options;
    this.backend = backend;
    this.clock = clock;
    this.random = options.random;
    this.events = events;
    this.session = options.session;
    this.holder = { label: options.label };
    this.minTtlMs = backend.traits.minTtlMs;
    this.answersAtOnce = backend.atOnce !== undefined;
    this.leases = new Scheduler(clock, false);
    this.waits = new Scheduler(clock, true);
    this.verbs = new Verbs(backend, clock, events, options.policy, this.waits);
    this.held = new HeldLocks(clock, this.leases);
    this.cancels = new Cancels(this, new Scheduler(clock, false));
    this.room = new WaitingRoom(this);
  }

  get backendName(): string {
    return this.backend.name;
  }

  get awaitsLosses(): boolean {
    return this.backend.traits.tellsLosses === true && this.held.size > 0;
  }

  async claim(request: ClaimRequest): Promise<ClaimOutcome> {
    return this.claimSoon(request, currentFrame());
  }

  /**
   * The same, without a promise where the backend grants at once. `frame`: the one of this context.
   *
   * @throws GuardError, or rejects with it: see `claim`.
   */
  claimSoon(request: ClaimRequest, frame: Frame | undefined): ClaimOutcome | Promise<ClaimOutcome> {
    const nested = frame !== undefined;
    if (this.phase === 'closed' || (this.phase === 'closing' && !nested)) throw closedError();
    if (request.signal?.aborted) throw abortedError(request);
    if (request.waitMs > 0 && holdsInFrame(frame, this.backend, request.key)) throw deadlockError(request);
    const startedAt = this.clock.now();
    const id = this.nextClaimId();
    const answer = this.answersAtOnce
      ? this.verbs.acquireAtOnce(claimOf(this, request, id), startedAt.monoMs)
      : undefined;
    if (answer?.status === 'granted' && this.seen.saw(request.key, answer.token)) {
      const end = grantedAtOnce(request.ttlMs, answer.token, startedAt);
      return { status: 'granted', lock: this.hold(request, id, startedAt, end) };
    }
    return this.waitFor(request, id, startedAt, nested, answer);
  }

  /** A claim that the first step did not settle, or that has not been sent. */
  private waitFor(
    request: ClaimRequest,
    id: string,
    startedAt: Instant,
    nested: boolean,
    answer: ClaimAnswer | undefined,
  ): Promise<ClaimOutcome> {
    const { signal } = request;
    return new Promise((resolve, reject) => {
      const claim = new PendingClaim(this, request, id, startedAt, nested, resolve, reject);
      if (signal !== undefined) claim.unlisten = this.room.onAbort(signal, () => claim.giveUp('aborted'));
      this.pending.add(claim);
      claim.start(answer);
    });
  }

  async inspect(keys: readonly string[]): Promise<readonly LockInfo[]> {
    if (this.phase === 'closed') throw closedError();
    return asking(this, INSPECT_BUDGET_MS, 'inspecting locks', () => this.verbs.inspect({ keys }));
  }

  /** Takes a lock away from whoever holds it. `true`: there was a holder. */
  async forceRelease(key: string): Promise<boolean> {
    const [info] = await this.inspect([key]);
    if (info?.lease === undefined) return false;
    const { lease } = info;
    return asking(this, INSPECT_BUDGET_MS, 'releasing a lock by force', async () => {
      const [answer] = await this.backend.release([lease]);
      if (answer?.status === 'failed') throw answer.cause;
      return answer?.status === 'released';
    });
  }

  /** Refuses new claims and ends the waiting ones, except those of work that is under a lock and wants to finish. */
  stopClaiming(): void {
    this.phase = 'closing';
    for (const claim of this.pending.all()) if (!claim.nested) claim.giveUp('closed');
  }

  /** Gives back the locks that were handed out to the application: their holders are told first. */
  closeHandles(): void {
    this.held.closeHandles();
  }

  /** Tells everybody who still works under a lock that it is lost. */
  dropAll(): void {
    this.phase = 'closed';
    for (const claim of this.pending.all()) claim.giveUp('closed');
    this.held.dropAll();
  }

  /** Waits at most `budgetMs` for releases and cancels, and for a stream that does not open or close; lets go of all. */
  async close(budgetMs: number): Promise<void> {
    await atMost(this.clock, budgetMs, Promise.all([this.releasing.drained(), this.cancels.drained()]));
    this.releasing.stop();
    this.cancels.clear();
    await atMost(this.clock, budgetMs, this.room.close());
  }

  // What leases and claims ask for.

  acquire(claim: Claim, sink: Sink<ClaimAnswer>): Submitted {
    return this.verbs.acquire(claim, sink);
  }

  renew(grant: Grant, ttlMs: number): Promise<Landing<RenewAnswer>> {
    const { fullKey: key, claim, token } = grant;
    return this.verbs.renew({ key, claim, token, session: this.session, ttlMs }, grant.ttlMs);
  }

  renewAlongWith(nowMonoMs: number): void {
    this.held.renewAlongWith(nowMonoMs);
  }

  releaseAtOnce(release: Release, nowMonoMs: number): ReleaseAnswer | undefined {
    return this.verbs.releaseAtOnce(release, nowMonoMs);
  }

  release(release: Release, ttlMs: number, sink: Sink<ReleaseAnswer>): void {
    this.verbs.release(release, ttlMs, sink);
  }

  left(lease: OfClaim): void {
    this.held.remove(lease);
  }

  gaveBack(fullKey: string): void {
    this.room.gaveBack(fullKey);
  }

  unavailable(what: string, cause: unknown): GuardError {
    return unavailable(what, cause);
  }

  nextClaimId(): string {
    this.claimCount += 1;
    return `${this.session}.${this.claimCount.toString(36)}`;
  }

  floorOf(fullKey: string): bigint | undefined {
    const seen = this.backend.traits.floor ? this.seen.get(fullKey) : undefined;
    return seen === undefined ? undefined : seen + 1n;
  }

  wentBack(fullKey: string, token: bigint): unknown {
    return this.seen.wentBack(fullKey, token);
  }

  forget(claim: WaitingClaim): void {
    this.pending.remove(claim);
  }

  remember(claim: WaitingClaim): void {
    this.pending.add(claim);
  }

  /** A notice: a ticket was handed the lock. */
  noticedGrant(claimId: string, token: bigint): void {
    const claim = this.pending.find(claimId);
    // A token that went back is no reason to believe: the next answer of the backend will say what is wrong.
    if (claim !== undefined && this.wentBack(claim.request.key, token) === undefined) claim.noticed(token);
  }

  /** A notice: a ticket may have been handed the lock. */
  noticedTurn(claimId: string): void {
    this.pending.find(claimId)?.askAfresh();
  }

  /** A notice: a claim does not hold the lock any more. */
  noticedLoss(claimId: string): void {
    this.held.get(claimId)?.refused();
    this.pending.find(claimId)?.askAfresh();
  }

  ended(claim: PendingClaim, end: ClaimEnd): void {
    claim.unlisten?.();
    this.pending.remove(claim);
    this.room.leave(claim);
    const { request, plan, resolve, reject } = claim;
    switch (end.end) {
      case 'granted':
        this.seen.saw(request.key, end.token);
        return resolve({ status: 'granted', lock: this.hold(request, claim.claim, plan.startedAt, end) });
      case 'busy':
        if (plan.waits) this.tellCancelled(request, 'timeout');
        return resolve({ status: 'busy', ...claim.busy });
      case 'aborted':
        this.tellCancelled(request, 'aborted');
        return reject(abortedError(request));
      case 'closed':
        this.tellCancelled(request, 'closed');
        return reject(closedError());
      case 'fault':
        this.tellCancelled(request, end.why === 'late' ? 'late' : 'failed');
        return reject(faultError(request, end));
    }
  }

  private hold(request: ClaimRequest, claim: string, startedAt: Instant, end: GrantedEnd): Lease {
    const lease = new Lease(this, request, claim, end, firstRenewMs(request, end));
    this.held.add(lease);
    if (this.awaitsLosses) this.room.listenForLosses();
    if (this.events.has('lock-granted')) {
      const waitedMs = this.clock.now().monoMs - startedAt.monoMs;
      this.events.emit('lock-granted', { key: request.shownKey, token: end.token, waitedMs });
    }
    return lease;
  }

  private tellCancelled({ shownKey: key }: ClaimRequest, reason: CancelReason): void {
    if (this.events.has('claim-cancelled')) this.events.emit('claim-cancelled', { key, reason });
  }
}
