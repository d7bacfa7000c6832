/**
 * The handle of a granted claim: the lease machine with a clock, timers and a backend around it. Every look at the
 * handle checks the deadline first, so it is right even when no timer could run (S1, L1). The handle is its own entry
 * in the scheduler, and its AbortController is made on first use: a lock that nobody watches costs one object.
 */
import type { ReleaseResult } from '../../api/lock.js';
import {
  granted,
  isHolding,
  leaseStep,
  mayAct,
  remainingMs,
  type LeaseEvent,
  type LeaseState,
} from '../../machine/lease.js';
import { trustMs, type GrantedEnd } from '../../machine/claim.js';
import { backoffMs } from '../../machine/backoff.js';
import type { RenewAnswer } from '../../port/lock-backend.js';
import { marginMs, parseDuration, type Duration } from '../../value/duration.js';
import type { GuardError } from '../../value/error.js';
import type { Landing } from '../flight/operation.js';
import { extendLease } from './extend-lease.js';
import type { LeaseHost } from './lease-host.js';
import { lostError, suspectError } from './lock-errors.js';
import type { ClaimRequest, HeldLock } from './lock-service.js';
import { pause } from '../flight/pause.js';
import type { Due } from '../flight/scheduler.js';
import {
  giveBack,
  giveBackDropped,
  ReleaseTask,
  type DroppedState,
  type Releasable,
} from './release-task.js';

/** Shortest time in which a renewal has to settle a suspicion. */
const SUSPECT_MS = 1_000;
/** How often a call that waits for a verdict looks at it. */
const VERDICT_POLL_MS = 20;

/** A lock in hand. */
export class Lease implements HeldLock, Due, Releasable {
  readonly key: string;
  readonly fullKey: string;
  readonly token: bigint;
  readonly ttlMs: number;
  dueMonoMs = 0;
  slot = -1;
  place = -1;
  // Private to the language: a copy of the handle, however made, carries no proof of ownership (S3).
  readonly #host: LeaseHost;
  readonly #claim: string;
  /** Handed out by `acquire`: nobody tells when the work under it settles, so `close` gives it back at once. */
  isHandle = false;
  private state: LeaseState;
  private readonly renewMs: number | false;
  private renewDueMonoMs: number;
  private renewing = false;
  private failures = 0;
  #controller: AbortController | undefined;
  #listeners: Set<() => void> | undefined;
  /** The one release of this lock, or its result. */
  #releasing: ReleaseResult | ReleaseTask | undefined;
  /** What the lease was when the guard closed under it. */
  private dropped: DroppedState | undefined;

  constructor(host: LeaseHost, request: ClaimRequest, claim: string, end: GrantedEnd, firstRenewMs: number) {
    this.#host = host;
    this.key = request.shownKey;
    this.fullKey = request.key;
    this.#claim = claim;
    this.token = end.token;
    this.ttlMs = request.ttlMs;
    this.renewMs = request.renewMs;
    this.state = granted(end.trust);
    this.renewDueMonoMs = end.trust.sentAt.monoMs + firstRenewMs;
    this.scheduleNext();
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    this.look();
    // A lock that was lost before anybody asked for its signal has told nobody yet.
    if (this.state.phase === 'lost' && !this.#controller.signal.aborted)
      this.#controller.abort(this.lossError());
    return this.#controller.signal;
  }

  get claim(): string {
    return this.#claim;
  }

  get backendName(): string {
    return this.#host.backend.name;
  }

  isHeld(): boolean {
    if (mayAct(this.state, this.#host.clock.now())) return true;
    this.look();
    return false;
  }

  assertHeld(): void {
    this.look();
    if (this.state.phase === 'held') return;
    if (this.state.phase === 'suspect') throw suspectError(this.key);
    throw this.lossError();
  }

  async assertHeldSoon(): Promise<void> {
    for (this.look(); this.state.phase === 'suspect'; this.look())
      await pause(this.#host.clock, VERDICT_POLL_MS);
    this.assertHeld();
  }

  remainingMs(): number {
    this.look();
    return remainingMs(this.state, this.#host.clock.now());
  }

  async extend(duration: Duration): Promise<void> {
    return extendLease(this.#host, this, parseDuration('extend', duration, { minMs: this.#host.minTtlMs }));
  }

  release(): Promise<ReleaseResult> {
    return new Promise((resolve) => this.giveBack(resolve));
  }

  /** The same without a promise; `done` is called at once where the backend answers at once. */
  giveBack(done: (result: ReleaseResult) => void): void {
    const releasing = (this.#releasing ??= this.startRelease());
    if (releasing instanceof ReleaseTask) releasing.whenTold(done);
    else done(releasing);
  }

  letGo(): void {
    this.step({ type: 'dropped', reason: 'the lock was let go' });
  }

  /** The guard closes: the holder is told, and a release from now on still gives the lock back. */
  drop(): void {
    if (isHolding(this.state)) this.dropped = this.state;
    this.step({ type: 'dropped', reason: 'the guard was closed' });
  }

  /** Tells the holder and gives the lock back at once. */
  close(): void {
    this.drop();
    void this.release();
  }

  /** The backend says by a notice that the claim does not hold the lock. */
  refused(): void {
    this.step({ type: 'refused' });
  }

  /** The wall clock jumped: look whether that makes this lock suspect. */
  look(now = this.#host.clock.now()): void {
    if (isHolding(this.state)) this.step({ type: 'looked', now, suspectMs: this.suspectMs() });
  }

  /** Whether this lock is held by an answer to a request that was sent before then. */
  isTrustedSinceBefore(monoMs: number): boolean {
    return isHolding(this.state) && this.state.trust.sentAt.monoMs < monoMs;
  }

  onLost(listener: () => void): () => void {
    this.look();
    if (this.state.phase === 'lost') {
      listener();
      return () => undefined;
    }
    this.#listeners = (this.#listeners ?? new Set()).add(listener);
    return () => this.#listeners?.delete(listener);
  }

  /** Whether a renewal is due within an eighth of its period: it can go along with others. */
  canRenewEarly(nowMonoMs: number): boolean {
    const earlyMs = this.renewMs === false ? 0 : this.renewMs / 8;
    return this.wantsRenewal() && this.renewDueMonoMs - nowMonoMs <= earlyMs;
  }

  /** Called by the scheduler: the renewal or the deadline is due. */
  fire(nowMonoMs: number): void {
    this.look();
    if (!isHolding(this.state)) return;
    if (this.wantsRenewal() && this.renewDueMonoMs <= nowMonoMs) this.renewNow();
    this.scheduleNext();
    this.#host.renewAlongWith(nowMonoMs);
  }

  /** The renewal travels with another one. */
  renewEarly(): void {
    this.renewNow();
    this.scheduleNext();
  }

  toJSON(): { readonly key: string; readonly token: string } {
    return { key: this.key, token: this.token.toString() };
  }

  /** What `console.log` shows: no claim id, which is the proof of ownership (S3). */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Lock { key: ${JSON.stringify(this.key)}, token: ${this.token}n, held: ${this.isHeld()} }`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** The error that a lost or released lock answers with. */
  lossError(): GuardError {
    return lostError(this.key, this.state.phase === 'lost' ? this.state.reason : 'it was released');
  }

  /** Whether the lock was lost, not merely released: as of the last look, and for good once its release has begun. */
  get wasLost(): boolean {
    return this.state.phase === 'lost';
  }

  private startRelease(): ReleaseResult | ReleaseTask {
    const now = this.#host.clock.now();
    if (!mayAct(this.state, now)) this.look(now);
    if (this.dropped !== undefined) return giveBackDropped(this.#host, this, this.dropped, now);
    if (!isHolding(this.state)) return 'lost';
    this.#host.leases.cancel(this);
    this.#host.left(this);
    return giveBack(this.#host, this, this.state.trust, now);
  }

  /** What the lease machine makes of an event; called by what works on this lock. */
  step(event: LeaseEvent): LeaseState {
    const { state, effect } = leaseStep(this.state, event);
    if (state === this.state) return state;
    this.state = state;
    if (effect === 'tell-lost') this.tellLost();
    if (effect === 'tell-suspect') this.tellSuspect();
    return this.state;
  }

  private tellLost(): void {
    this.#host.leases.cancel(this);
    this.#host.left(this);
    const reason = this.state.phase === 'lost' ? this.state.reason : '';
    this.#controller?.abort(this.lossError());
    for (const listener of this.#listeners ?? []) listener();
    this.#listeners = undefined;
    this.#host.events.emit('lock-lost', { key: this.key, token: this.token, reason });
  }

  private tellSuspect(): void {
    this.#host.events.emit('lock-suspect', { key: this.key, token: this.token });
    this.renewNow();
    this.scheduleNext();
  }

  private renewNow(): void {
    this.renewing = true;
    void this.#host.renew(this, this.ttlMs).then((landing) => {
      this.renewing = false;
      this.landed(landing, this.ttlMs);
    });
  }

  /** A renewal, or an extension, was answered. */
  landed(landing: Landing<RenewAnswer>, ttlMs: number): void {
    const { clock, random } = this.#host;
    const now = clock.now();
    if (!landing.ok || landing.answer.status === 'failed') {
      this.failures += 1;
      this.renewDueMonoMs =
        now.monoMs + Math.min(backoffMs(this.failures, random.fraction()), this.ttlMs / 8);
    } else if (landing.answer.status === 'lost') {
      this.step({ type: 'refused' });
    } else {
      this.failures = 0;
      const trust = { sentAt: landing.sentAt, trustMs: trustMs(ttlMs) };
      this.step({ type: 'renewed', now, trust, suspectMs: this.suspectMs() });
      this.renewDueMonoMs = landing.sentAt.monoMs + (this.renewMs === false ? Infinity : this.renewMs);
    }
    this.scheduleNext();
  }

  private wantsRenewal(): boolean {
    return !this.renewing && this.renewDueMonoMs < Infinity;
  }

  private suspectMs(): number {
    return Math.max(SUSPECT_MS, marginMs(this.ttlMs));
  }

  private scheduleNext(): void {
    const { state } = this;
    if (!isHolding(state)) return;
    const deadline =
      state.phase === 'held' ? state.trust.sentAt.monoMs + state.trust.trustMs : state.verdictByMonoMs;
    const next = this.wantsRenewal() ? Math.min(deadline, this.renewDueMonoMs) : deadline;
    this.#host.leases.schedule(this, next);
  }
}
