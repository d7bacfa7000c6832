/**
 * Claims that were given up. What a request left behind, or will leave when it is carried out late, is taken back by
 * claim id: repeated for twice the ttl after the acquire was last sent, because later than that the backend's own
 * expiry has done it (S4). Bounded: beyond the limit the oldest is dropped, and said so.
 */
import { backoffMs } from '../../machine/backoff.js';
import type { ReleaseAnswer } from '../../port/lock-backend.js';
import type { Landing } from '../flight/coalescer.js';
import type { LeaseHost } from './lease-host.js';
import type { Due, Scheduler } from '../flight/scheduler.js';

const SHORTEST_TOMBSTONE_MS = 60_000;
const MAX_CANCELS = 10_000;

/** A claim that nobody wants any more. */
export interface GivenUp {
  readonly key: string;
  readonly claim: string;
  readonly ttlMs: number;
  readonly lastSentMonoMs: number;
  /** An acquire of it may still be on its way: leave a tombstone. */
  readonly unanswered: boolean;
}

/** The cancels of one guard. */
export class Cancels {
  private readonly open = new Set<Cancel>();
  private readonly idle = new Set<() => void>();
  /** How many are open on each key. */
  private readonly byKey = new Map<string, number>();

  /** `retries` does not keep the process alive: the backend's expiry does the same later. */
  constructor(
    private readonly host: LeaseHost,
    private readonly retries: Scheduler,
  ) {}

  /** Takes back whatever the claim has. */
  add(givenUp: GivenUp): void {
    if (this.open.size >= MAX_CANCELS) this.dropOldest();
    const cancel = new Cancel(this.host, this.retries, givenUp, () => this.settled(cancel));
    this.open.add(cancel);
    this.count(givenUp.key, 1);
    cancel.send();
  }

  /** Whether a claim of this guard on the key is still being taken back: it may be what looks like a holder. */
  isOpenOn(key: string): boolean {
    return this.byKey.has(key);
  }

  /** Resolves when none is open any more. */
  async drained(): Promise<void> {
    if (this.open.size === 0) return;
    await new Promise<void>((resolve) => this.idle.add(resolve));
  }

  /** Forgets all of them. */
  clear(): void {
    for (const cancel of this.open) cancel.stop();
    this.open.clear();
    this.byKey.clear();
    this.tellIdle();
  }

  private count(key: string, by: 1 | -1): void {
    const open = (this.byKey.get(key) ?? 0) + by;
    if (open > 0) this.byKey.set(key, open);
    else this.byKey.delete(key);
  }

  private settled(cancel: Cancel): void {
    if (this.open.delete(cancel)) this.count(cancel.key, -1);
    if (this.open.size === 0) this.tellIdle();
  }

  private tellIdle(): void {
    for (const resolve of this.idle) resolve();
    this.idle.clear();
  }

  private dropOldest(): void {
    const [oldest] = this.open;
    if (oldest === undefined) return;
    oldest.stop();
    this.open.delete(oldest);
    this.count(oldest.key, -1);
    const error = this.host.unavailable(`more than ${MAX_CANCELS} claims wait to be cancelled`, oldest.cause);
    this.host.events.emit('error', { error, during: 'cancelling claims' });
  }
}

class Cancel implements Due {
  dueMonoMs = 0;
  slot = -1;
  cause: unknown;
  private failures = 0;
  private stopped = false;
  private readonly untilMonoMs: number;

  constructor(
    private readonly host: LeaseHost,
    private readonly retries: Scheduler,
    private readonly givenUp: GivenUp,
    private readonly onSettled: () => void,
  ) {
    this.untilMonoMs = givenUp.lastSentMonoMs + 2 * givenUp.ttlMs;
  }

  get key(): string {
    return this.givenUp.key;
  }

  send(): void {
    const { key, claim, ttlMs, unanswered } = this.givenUp;
    const tombstoneMs = unanswered ? Math.max(ttlMs, SHORTEST_TOMBSTONE_MS) : 0;
    const release = { cancel: true, key, claim, session: this.host.session, tombstoneMs } as const;
    this.host.release(release, ttlMs, (landing) => this.landed(landing));
  }

  fire(): void {
    if (!this.stopped) this.send();
  }

  stop(): void {
    this.stopped = true;
    this.retries.cancel(this);
  }

  private landed(landing: Landing<ReleaseAnswer>): void {
    if (this.stopped) return;
    if (landing.ok && landing.answer.status !== 'failed') {
      this.host.gaveBack(this.givenUp.key);
      return this.onSettled();
    }
    this.failures += 1;
    this.cause = landing.ok ? landing.answer.status === 'failed' && landing.answer.cause : landing.cause;
    const nowMs = this.host.clock.now().monoMs;
    if (nowMs >= this.untilMonoMs) return this.onSettled();
    this.retries.schedule(this, nowMs + backoffMs(this.failures, this.host.random.fraction()));
  }
}
