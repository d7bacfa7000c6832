/**
 * One release, from the first sending to a result: repeated until the lease is over, because a lock that nobody uses
 * blocks everybody else. The caller is told after a bounded time; the repetition goes on without it.
 */
import type { ReleaseResult } from '../../api/lock.js';
import { backoffMs } from '../../machine/backoff.js';
import type { LeaseEvent, LeaseState, Trust } from '../../machine/lease.js';
import type { ReleaseAnswer } from '../../port/lock-backend.js';
import type { Landing } from '../flight/coalescer.js';
import type { Grant, LeaseHost, OpenRelease } from './lease-host.js';
import type { Due } from '../flight/scheduler.js';

/** How long a caller of `release()` waits for the backend's answer. */
const CALLER_WAITS_MS = 5_000;

/** The releases of a guard that are on their way. */
export class OpenReleases {
  private readonly tasks = new Set<OpenRelease>();
  private readonly idle = new Set<() => void>();

  add(task: OpenRelease): void {
    this.tasks.add(task);
  }

  remove(task: OpenRelease): void {
    this.tasks.delete(task);
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
    for (const task of [...this.tasks]) task.stop();
  }
}

/** A release on its way. */
export class ReleaseTask implements Due {
  dueMonoMs = 0;
  slot = -1;
  private readonly overMonoMs: number;
  private readonly callerMonoMs: number;
  private resolve: ((result: ReleaseResult) => void) | undefined;
  private failures = 0;
  private inFlight = false;
  private done = false;

  constructor(
    private readonly host: LeaseHost,
    private readonly grant: Grant,
    trust: Trust,
    /** Applies an event to the lease that is given back. */
    private readonly step: (event: LeaseEvent) => LeaseState,
  ) {
    this.overMonoMs = trust.sentAt.monoMs + grant.ttlMs;
    this.callerMonoMs = host.clock.now().monoMs + CALLER_WAITS_MS;
  }

  /** Sends the release. Never rejects. */
  run(): Promise<ReleaseResult> {
    this.host.releasing.add(this);
    return new Promise((resolve) => {
      this.resolve = resolve;
      this.send();
    });
  }

  /** Called by the scheduler: send again, or stop. */
  fire(nowMonoMs: number): void {
    if (this.done) return;
    if (nowMonoMs >= this.overMonoMs) return this.finish({ type: 'release-given-up' });
    if (nowMonoMs >= this.callerMonoMs) this.tell('unknown');
    if (this.inFlight) this.scheduleNext(Infinity);
    else this.send();
  }

  /** The guard closes: nobody asks any more. */
  stop(): void {
    if (!this.done) this.finish({ type: 'release-given-up' });
  }

  private send(): void {
    const { host, grant } = this;
    this.inFlight = true;
    this.step({ type: 'release-sent', now: host.clock.now() });
    const release = { key: grant.fullKey, claim: grant.claim, token: grant.token, session: host.session };
    host.release(release, grant.ttlMs, (landing) => this.landed(landing));
    if (!this.done) this.scheduleNext(Infinity);
  }

  private landed(landing: Landing<ReleaseAnswer>): void {
    this.inFlight = false;
    if (this.done) return;
    if (landing.ok && landing.answer.status !== 'failed') {
      const { answer } = landing;
      // A client that re-sent by itself leaves the same doubt as a re-sending of ours.
      if (answer.status === 'lost' && answer.resent)
        this.step({ type: 'release-sent', now: this.host.clock.now() });
      return this.finish({ type: 'release-answered', answer: answer.status });
    }
    this.failures += 1;
    const nowMs = this.host.clock.now().monoMs;
    this.scheduleNext(nowMs + backoffMs(this.failures, this.host.random.fraction()));
  }

  private scheduleNext(sendMonoMs: number): void {
    const caller = this.resolve === undefined ? Infinity : this.callerMonoMs;
    this.host.waits.schedule(this, Math.min(sendMonoMs, caller, this.overMonoMs));
  }

  private finish(event: LeaseEvent): void {
    this.done = true;
    this.host.waits.cancel(this);
    this.host.releasing.remove(this);
    const state = this.step(event);
    const result = state.phase === 'released' ? state.result : 'unknown';
    this.tell(result);
    this.host.gaveBack(this.grant.fullKey);
    const { events } = this.host;
    if (events.has('lock-released')) {
      events.emit('lock-released', { key: this.grant.key, token: this.grant.token, result });
    }
  }

  private tell(result: ReleaseResult): void {
    this.resolve?.(result);
    this.resolve = undefined;
  }
}
