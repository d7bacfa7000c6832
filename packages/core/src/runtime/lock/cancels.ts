/**
 * Claims that were given up. What a request left behind, or will leave when it is carried out late, is taken back by
 * claim id: repeated for twice the ttl after the acquire was last sent, because later than that the backend's own
 * expiry has done it (S4). While a backend is away, every try of a lock leaves one: of those of a key one at a time is
 * on its way, so that an outage does not grow its own traffic, and what waits here is dropped here. Bounded: beyond the
 * limit the oldest is dropped, and said so.
 */
import { backoffMs } from '../../machine/backoff.js';
import type { ReleaseAnswer } from '../../port/lock-backend.js';
import type { Landing } from '../flight/operation.js';
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
  private readonly byKey = new Map<string, CancelsOfKey>();
  private closed = false;

  /** `retries` does not keep the process alive: the backend's expiry does the same later. */
  constructor(
    private readonly host: LeaseHost,
    private readonly retries: Scheduler,
  ) {}

  /** Takes back whatever the claim has. */
  add(givenUp: GivenUp): void {
    if (this.open.size >= MAX_CANCELS) this.dropOldest();
    const { key } = givenUp;
    let ofKey = this.byKey.get(key);
    if (ofKey === undefined) this.byKey.set(key, (ofKey = new CancelsOfKey(this.host, this.retries)));
    const untilMonoMs = this.closed ? -Infinity : givenUp.lastSentMonoMs + 2 * givenUp.ttlMs;
    const cancel = new Cancel(this.host, givenUp, untilMonoMs, ofKey, () => this.settled(cancel));
    this.open.add(cancel);
    ofKey.open += 1;
    ofKey.begin(cancel);
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

  /** Forgets all of them, and repeats nothing that is given up from now on. */
  clear(): void {
    this.closed = true;
    for (const cancel of this.open) this.forget(cancel);
    this.tellIdle();
  }

  private settled(cancel: Cancel): void {
    this.forget(cancel);
    if (this.open.size === 0) this.tellIdle();
  }

  private forget(cancel: Cancel): void {
    if (!this.open.delete(cancel)) return;
    cancel.stopped = true;
    const { ofKey } = cancel;
    ofKey.open -= 1;
    if (ofKey.open > 0) return;
    this.retries.cancel(ofKey);
    this.byKey.delete(cancel.key);
  }

  private tellIdle(): void {
    for (const resolve of this.idle) resolve();
    this.idle.clear();
  }

  private dropOldest(): void {
    const [oldest] = this.open;
    if (oldest === undefined) return;
    this.forget(oldest);
    const error = this.host.unavailable(`more than ${MAX_CANCELS} claims wait to be cancelled`, oldest.cause);
    this.host.events.emit('error', { error, during: 'cancelling claims' });
  }
}

/** Those of one key, one on its way at a time. What failed waits for its turn; one that never succeeds holds up no other. */
class CancelsOfKey implements Due {
  dueMonoMs = 0;
  slot = -1;
  /** How many have not settled. */
  open = 0;
  private readonly waiting: Cancel[] = [];
  private failures = 0;
  private flying: Cancel | undefined;

  constructor(
    private readonly host: LeaseHost,
    private readonly retries: Scheduler,
  ) {}

  /** Sends it, unless one is on its way. */
  begin(cancel: Cancel): void {
    if (this.flying !== undefined) return this.wait(cancel);
    this.flying = cancel;
    cancel.send();
  }

  wait(cancel: Cancel): void {
    this.waiting.push(cancel);
  }

  /** The one that was on its way has landed. Where the backend answered, nothing waits longer. */
  landed(answered: boolean): void {
    this.flying = undefined;
    if (answered) this.failures = 0;
    if (this.open === 0 || this.waiting.length === 0) return;
    if (answered) {
      this.retries.cancel(this);
      this.fire();
    } else if (this.slot < 0) {
      const delayMs = backoffMs(++this.failures, this.host.random.fraction());
      this.retries.schedule(this, this.host.clock.now().monoMs + delayMs);
    }
  }

  fire(): void {
    if (this.flying !== undefined) return;
    const nowMs = this.host.clock.now().monoMs;
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      if (next.stopped) continue;
      if (nowMs >= next.untilMonoMs) {
        next.onSettled();
        continue;
      }
      return this.begin(next);
    }
  }
}

class Cancel {
  cause: unknown;
  stopped = false;

  constructor(
    private readonly host: LeaseHost,
    private readonly givenUp: GivenUp,
    readonly untilMonoMs: number,
    readonly ofKey: CancelsOfKey,
    readonly onSettled: () => void,
  ) {}

  get key(): string {
    return this.givenUp.key;
  }

  send(): void {
    const { key, claim, ttlMs, unanswered } = this.givenUp;
    const tombstoneMs = unanswered ? Math.max(ttlMs, SHORTEST_TOMBSTONE_MS) : 0;
    const release = { cancel: true, key, claim, session: this.host.session, tombstoneMs } as const;
    this.host.release(release, ttlMs, (landing) => this.landed(landing));
  }

  private landed(landing: Landing<ReleaseAnswer>): void {
    const answered = landing.ok && landing.answer.status !== 'failed';
    if (!this.stopped) this.settleOrWait(landing, answered);
    this.ofKey.landed(answered);
  }

  private settleOrWait(landing: Landing<ReleaseAnswer>, answered: boolean): void {
    if (answered) {
      this.host.gaveBack(this.givenUp.key);
      return this.onSettled();
    }
    this.cause = landing.ok ? landing.answer.status === 'failed' && landing.answer.cause : landing.cause;
    if (this.host.clock.now().monoMs >= this.untilMonoMs) this.onSettled();
    else this.ofKey.wait(this);
  }
}
