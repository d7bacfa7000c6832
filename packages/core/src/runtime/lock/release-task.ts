/**
 * One release, from the first sending to a result: repeated until the lease is over, because a lock that nobody uses
 * blocks everybody else. The caller is told after a bounded time; the repetition goes on without it.
 */
import type { ReleaseResult } from '../../api/lock.js';
import { backoffMs } from '../../machine/backoff.js';
import { leaseStep, type LeaseEvent, type LeaseState, type Trust } from '../../machine/lease.js';
import type { Failed, LeaseRef, ReleaseAnswer } from '../../port/lock-backend.js';
import { ttlBelieved } from '../../value/duration.js';
import type { Instant } from '../../value/instant.js';
import type { Landing } from '../flight/operation.js';
import { Bag } from './bag.js';
import type { Grant, LeaseHost, OpenRelease } from './lease-host.js';
import type { Due } from '../flight/scheduler.js';

/** How long a caller of `release()` waits for the backend's answer. */
const CALLER_WAITS_MS = 5_000;

/** The releases of a guard that are on their way. */
export class OpenReleases {
  private readonly tasks = new Bag<OpenRelease>();
  private readonly idle = new Set<() => void>();

  add(task: OpenRelease): void {
    this.tasks.add(task);
  }

  remove(task: OpenRelease): void {
    this.tasks.remove(task);
    if (this.tasks.size > 0) return;
    for (const resolve of this.idle) resolve();
    this.idle.clear();
  }

  /** Resolves when none is open. */
  async drained(): Promise<void> {
    if (this.tasks.size > 0) await new Promise<void>((resolve) => this.idle.add(resolve));
  }

  /** Ends all of them with what is known. */
  stop(): void {
    for (const task of this.tasks.all()) task.stop();
  }
}

/** What is given back. */
export interface Releasable extends Grant {
  /** Applies an event to the lease. */
  step(event: LeaseEvent): LeaseState;
}

/** Gives a lease back: the result where the backend has it at once, otherwise the release on its way. */
export function giveBack(
  host: LeaseHost,
  lease: Releasable,
  trust: Trust,
  now: Instant,
): ReleaseResult | ReleaseTask {
  const answer = host.answersAtOnce ? host.releaseAtOnce(refOf(host, lease), now.monoMs) : undefined;
  if (answer !== undefined) {
    lease.step({ type: 'release-sent', now });
    if (answer.status !== 'failed') return ended(host, lease, answered(lease, answer, now));
  }
  return new ReleaseTask(host, lease, trust, now).start(now);
}

/** A lease as it was when its guard closed. */
export type DroppedState = LeaseState & { readonly trust: Trust };

/** The same for a lease that was dropped: for its holder it is lost already, for everybody else free only now. */
export function giveBackDropped(
  host: LeaseHost,
  { key, fullKey, claim, token, ttlMs }: Grant,
  dropped: DroppedState,
  now: Instant,
): ReleaseResult | ReleaseTask {
  let state: LeaseState = dropped;
  const step = (event: LeaseEvent): LeaseState => (state = leaseStep(state, event).state);
  return giveBack(host, { key, fullKey, claim, token, ttlMs, step }, dropped.trust, now);
}

/** A release on its way. */
export class ReleaseTask implements Due, OpenRelease {
  dueMonoMs = 0;
  slot = -1;
  place = -1;
  private readonly overMonoMs: number;
  private readonly callerMonoMs: number;
  /** What callers were told, or are told from now on. */
  private told: ReleaseResult | undefined;
  private listeners: ((result: ReleaseResult) => void)[] | undefined;
  private failures = 0;
  private inFlight = false;
  private done = false;

  constructor(
    private readonly host: LeaseHost,
    private readonly lease: Releasable,
    trust: Trust,
    now: Instant,
  ) {
    // It may have been extended beyond the ttl that it was asked for with.
    this.overMonoMs = trust.sentAt.monoMs + Math.max(lease.ttlMs, ttlBelieved(trust.trustMs));
    this.callerMonoMs = now.monoMs + CALLER_WAITS_MS;
  }

  /** Sends the release. */
  start(now: Instant): this {
    this.host.releasing.add(this);
    this.send(now);
    return this;
  }

  /** Calls back once with what is known after a bounded time; at once if it is known. A promise costs more than that. */
  whenTold(listener: (result: ReleaseResult) => void): void {
    if (this.told !== undefined) listener(this.told);
    // Most have one listener, and an array that begins empty makes room for many.
    else if (this.listeners === undefined) this.listeners = [listener];
    else this.listeners.push(listener);
  }

  /** Called by the scheduler: send again, or stop. */
  fire(nowMonoMs: number): void {
    if (this.done) return;
    if (nowMonoMs >= this.overMonoMs) return this.finish({ type: 'release-given-up' });
    if (nowMonoMs >= this.callerMonoMs) this.tell('unknown');
    if (this.inFlight) this.scheduleNext(Infinity);
    else this.send(this.host.clock.now());
  }

  /** The guard closes: nobody asks any more. */
  stop(): void {
    if (!this.done) this.finish({ type: 'release-given-up' });
  }

  private send(now: Instant): void {
    const { host, lease } = this;
    this.inFlight = true;
    lease.step({ type: 'release-sent', now });
    host.release(refOf(host, lease), lease.ttlMs, (landing) => this.landed(landing));
    if (!this.done) this.scheduleNext(Infinity);
  }

  private landed(landing: Landing<ReleaseAnswer>): void {
    this.inFlight = false;
    if (this.done) return;
    if (landing.ok && landing.answer.status !== 'failed') {
      return this.finish(answered(this.lease, landing.answer, landing.sentAt));
    }
    this.failures += 1;
    const nowMs = this.host.clock.now().monoMs;
    this.scheduleNext(nowMs + backoffMs(this.failures, this.host.random.fraction()));
  }

  private scheduleNext(sendMonoMs: number): void {
    const caller = this.told === undefined ? this.callerMonoMs : Infinity;
    this.host.waits.schedule(this, Math.min(sendMonoMs, caller, this.overMonoMs));
  }

  private finish(event: LeaseEvent): void {
    this.done = true;
    this.host.waits.cancel(this);
    this.host.releasing.remove(this);
    this.tell(ended(this.host, this.lease, event));
  }

  private tell(result: ReleaseResult): void {
    if (this.told !== undefined) return;
    this.told = result;
    for (const listener of this.listeners ?? []) listener(result);
  }
}

/** What names the lease to the backend. */
function refOf(host: LeaseHost, { fullKey: key, claim, token }: Grant): LeaseRef {
  return { key, claim, token, session: host.session };
}

/** A client that re-sent by itself leaves the same doubt as a re-sending of ours. */
function answered(lease: Releasable, answer: Exclude<ReleaseAnswer, Failed>, sentAt: Instant): LeaseEvent {
  if (answer.status === 'lost' && answer.resent) lease.step({ type: 'release-sent', now: sentAt });
  return { type: 'release-answered', answer: answer.status };
}

/** The last event of a release: tells everybody who may want to know. */
function ended(host: LeaseHost, lease: Releasable, event: LeaseEvent): ReleaseResult {
  const state = lease.step(event);
  const result = state.phase === 'released' ? state.result : 'unknown';
  host.gaveBack(lease.fullKey);
  const { events } = host;
  if (events.has('lock-released')) {
    events.emit('lock-released', { key: lease.key, token: lease.token, result });
  }
  return result;
}
