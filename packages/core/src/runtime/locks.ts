/**
 * The locks of one guard: the only place where claims, leases, batches, notices and the backend meet. Everything here
 * is plumbing; what decides is in `machine/`.
 */
import type { ClaimEnd, QueueView } from '../machine/claim.js';
import { granted } from '../machine/lease.js';
import type { Clock, Policy, Random } from '../port/clock.js';
import type {
  Claim,
  ClaimAnswer,
  Holder,
  LockBackend,
  LockInfo,
  Release,
  ReleaseAnswer,
  RenewAnswer,
} from '../port/lock-backend.js';
import { GuardError } from '../value/error.js';
import type { ClaimHost } from './claim-host.js';
import { Cancels, type GivenUp } from './cancels.js';
import type { Landing, Sink, Submitted } from './coalescer.js';
import { holdsInContext } from './context.js';
import type { Events } from './events.js';
import { Lease } from './held-lock.js';
import type { ClaimOutcome, ClaimRequest, LockService } from './lock-service.js';
import { abortedError, closedError } from './lock-errors.js';
import { unavailable } from './outage.js';
import { PendingClaim } from './pending-claim.js';
import { Scheduler } from './scheduler.js';
import { SeenTokens } from './seen-tokens.js';
import { WaitingRoom } from './waiting-room.js';
import { retrying } from './retry.js';
import { Verbs } from './verbs.js';

const INSPECT_BUDGET_MS = 5_000;
/** While locks are held, the two clocks are compared at least this often: a sleep of the machine shows within it. */
const CLOCK_CHECK_MS = 500;
const CLOCK_JUMP_MS = 20;

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
export class Locks implements LockService, ClaimHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  readonly backend: LockBackend;
  readonly session: string;
  readonly holder: Holder;
  readonly minTtlMs: number;
  readonly leases: Scheduler;
  readonly waits: Scheduler;
  private readonly held = new Map<string, Lease>();
  private readonly pending = new Map<string, PendingClaim>();
  private readonly seen = new SeenTokens();
  private readonly cancels: Cancels;
  private readonly room: WaitingRoom;
  private readonly verbs: Verbs;
  private readonly clockCheck = { dueMonoMs: 0, slot: -1, fire: (): void => this.checkClocks() };
  private clockOffsetMs = 0;
  private claimCount = 0;
  private closed = false;

  constructor(options: LocksOptions) {
    const { backend, clock, events } = options;
    this.backend = backend;
    this.clock = clock;
    this.random = options.random;
    this.events = events;
    this.session = options.session;
    this.holder = { label: options.label };
    this.minTtlMs = backend.traits.minTtlMs;
    this.leases = new Scheduler(clock, false);
    this.waits = new Scheduler(clock, true);
    this.verbs = new Verbs(backend, clock, events, options.policy, this.waits);
    this.cancels = new Cancels(this, new Scheduler(clock, false));
    this.room = new WaitingRoom(this);
  }

  get backendName(): string {
    return this.backend.name;
  }

  claim(request: ClaimRequest): Promise<ClaimOutcome> {
    const { signal } = request;
    if (this.closed) return Promise.reject(closedError());
    if (signal?.aborted) return Promise.reject(abortedError(request));
    if (request.waitMs > 0 && holdsInContext(this.backend, request.key)) {
      const message = `lock ${request.shownKey} is held by the code that asks for it: waiting would never end`;
      return Promise.reject(new GuardError('would-deadlock', message, { key: request.shownKey }));
    }
    return new Promise((resolve, reject) => {
      const startedAt = this.clock.now();
      const unlisten = signal && this.room.onAbort(signal, () => claim.giveUp('aborted'));
      const claim = new PendingClaim(
        this,
        request,
        (end) => {
          unlisten?.();
          this.ended(claim, end, resolve, reject);
        },
        startedAt,
      );
      this.pending.set(claim.id, claim);
      claim.start();
    });
  }

  async inspect(keys: readonly string[]): Promise<readonly LockInfo[]> {
    if (this.closed) throw closedError();
    return retrying(this, INSPECT_BUDGET_MS, 'inspecting locks', () => this.verbs.inspect({ keys }));
  }

  /** Takes a lock away from whoever holds it. `true`: there was a holder. */
  async forceRelease(key: string): Promise<boolean> {
    const [info] = await this.inspect([key]);
    if (info?.lease === undefined) return false;
    const { lease } = info;
    return retrying(this, INSPECT_BUDGET_MS, 'releasing a lock by force', async () => {
      const [answer] = await this.backend.release([lease]);
      if (answer?.status === 'failed') throw answer.cause;
      return answer?.status === 'released';
    });
  }

  /** Refuses new claims and ends the waiting ones. */
  stopClaiming(): void {
    this.closed = true;
    for (const claim of [...this.pending.values()]) claim.giveUp('closed');
  }

  /** Gives back the locks that were handed out to the application: their holders are told first. */
  closeHandles(): Promise<unknown> {
    const handles = [...this.held.values()].filter((lease) => lease.isHandle);
    return Promise.all(handles.map((lease) => lease.close()));
  }

  /** Gives back every lock that is still held, and waits for releases and cancels for at most `budgetMs`. */
  async close(budgetMs: number): Promise<void> {
    this.stopClaiming();
    const releases = [...this.held.values()].map((lease) => lease.close());
    await Promise.race([Promise.all([...releases, this.cancels.drained()]), this.pause(budgetMs)]);
    this.cancels.clear();
    await this.room.close();
  }

  // What leases and claims ask for.

  acquire(claim: Claim, sink: Sink<ClaimAnswer>): Submitted {
    return this.verbs.acquire(claim, sink);
  }

  renew(lease: Lease, ttlMs: number): Promise<Landing<RenewAnswer>> {
    const { fullKey: key, claim, token } = lease;
    return this.verbs.renew({ key, claim, token, session: this.session, ttlMs }, lease.ttlMs);
  }

  renewAlongWith(nowMonoMs: number): void {
    for (
      let due = this.leases.peek();
      due instanceof Lease && due.canRenewEarly(nowMonoMs);
      due = this.leases.peek()
    ) {
      this.leases.cancel(due);
      due.renewEarly();
    }
  }

  release(release: Release, ttlMs: number, sink: Sink<ReleaseAnswer>): void {
    this.verbs.release(release, ttlMs, sink);
  }

  left(lease: Lease): void {
    this.held.delete(lease.claim);
  }

  gaveBack(fullKey: string): void {
    this.room.gaveBack(fullKey);
  }

  pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const due = { dueMonoMs: 0, slot: -1, fire: () => resolve() };
      this.waits.schedule(due, this.clock.now().monoMs + delayMs);
    });
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
    const seen = this.seen.get(fullKey);
    if (seen === undefined || token >= seen) return undefined;
    return new Error(`the backend granted token ${token} after ${seen}: its counter went back`);
  }

  queueView(claim: PendingClaim): QueueView | undefined {
    return this.room.viewOf(claim);
  }

  queued(claim: PendingClaim, view: QueueView, ahead: number | undefined, renewed: boolean): void {
    this.room.queued(claim, view, ahead, renewed);
  }

  polls(claim: PendingClaim): void {
    this.room.polls(claim);
  }

  refreshFailed(claim: PendingClaim): void {
    this.room.failed(claim);
  }

  cancel(givenUp: GivenUp): void {
    this.cancels.add(givenUp);
  }

  forget(claim: PendingClaim): void {
    this.pending.delete(claim.id);
  }

  remember(claim: PendingClaim): void {
    this.pending.set(claim.id, claim);
  }

  // Notices.

  /** A ticket was handed the lock. */
  noticedGrant(claimId: string, token: bigint): void {
    this.pending.get(claimId)?.noticed(token);
  }

  /** A claim does not hold the lock any more. */
  noticedLoss(claimId: string): void {
    this.held.get(claimId)?.refused();
    this.pending.get(claimId)?.ask();
  }

  private ended(
    claim: PendingClaim,
    end: ClaimEnd,
    resolve: (outcome: ClaimOutcome) => void,
    reject: (error: GuardError) => void,
  ): void {
    this.pending.delete(claim.id);
    this.room.leave(claim);
    const { request } = claim;
    switch (end.end) {
      case 'granted':
        return resolve({ status: 'granted', lock: this.hold(claim, end) });
      case 'busy':
        if (claim.plan.waits) this.tellCancelled(request, 'timeout');
        return resolve({ status: 'busy', ...claim.busy });
      case 'aborted':
        this.tellCancelled(request, 'aborted');
        return reject(abortedError(request));
      case 'closed':
        this.tellCancelled(request, 'closed');
        return reject(closedError());
      case 'fault':
        this.tellCancelled(request, end.why === 'late' ? 'late' : 'failed');
        return reject(
          unavailable(`lock ${request.shownKey} could not be asked for (${WHY[end.why]})`, end.cause),
        );
    }
  }

  private hold(claim: PendingClaim, end: ClaimEnd & { end: 'granted' }): Lease {
    const { request, plan } = claim;
    this.seen.saw(request.key, end.token);
    // A hand-over lasts a ticket's life only, so its first renewal is due within a third of that.
    const firstMs = end.handedOver
      ? plan.ticketTtlMs / 3
      : request.renewMs === false
        ? Infinity
        : request.renewMs;
    const lease = new Lease(this, {
      key: request.key,
      shownKey: request.shownKey,
      claim: claim.id,
      token: end.token,
      ttlMs: request.ttlMs,
      renewMs: request.renewMs,
      state: granted(end.trust),
      renewDueMonoMs: end.trust.sentAt.monoMs + firstMs,
    });
    if (this.held.size === 0) this.watchClocks();
    this.held.set(claim.id, lease);
    if (this.events.has('lock-granted')) {
      const waitedMs = this.clock.now().monoMs - plan.startedAt.monoMs;
      this.events.emit('lock-granted', { key: request.shownKey, token: end.token, waitedMs });
    }
    return lease;
  }

  private tellCancelled(
    request: ClaimRequest,
    reason: 'aborted' | 'timeout' | 'failed' | 'closed' | 'late',
  ): void {
    if (this.events.has('claim-cancelled'))
      this.events.emit('claim-cancelled', { key: request.shownKey, reason });
  }

  private watchClocks(): void {
    const { monoMs, wallMs } = this.clock.now();
    this.clockOffsetMs = wallMs - monoMs;
    if (this.clockCheck.slot < 0) this.leases.schedule(this.clockCheck, monoMs + CLOCK_CHECK_MS);
  }

  private checkClocks(): void {
    if (this.held.size === 0) return;
    const { monoMs, wallMs } = this.clock.now();
    const jumpedMs = wallMs - monoMs - this.clockOffsetMs;
    this.clockOffsetMs = wallMs - monoMs;
    if (jumpedMs > CLOCK_JUMP_MS) for (const lease of [...this.held.values()]) lease.look();
    this.leases.schedule(this.clockCheck, monoMs + CLOCK_CHECK_MS);
  }
}

const WHY = {
  failed: 'the backend failed',
  'no-answer': 'no answer within the wait',
  late: 'granted too late',
};
