/**
 * Takes the keys of claims away that nobody renews any more. They stand under a lease that others of this process keep
 * alive, so without this a lock that its holder let run out, or a ticket that nobody refreshes, would live on with the
 * others. A process that is stopped or dead keeps nothing alive, so for that the end of the lease is enough.
 */
import type { Clock, Timer } from '@guard/core';
import type { Claims, Own } from './claims.js';

/** A release of the same claim may be on its way. */
const GRACE_MS = 250;

/** The reaper of one adapter. One timer, whatever the number of claims. */
export class Reaper {
  private timer: Timer | undefined;
  private dueMs = Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly claims: Claims,
    /** `false`: it stands still. */
    private readonly take: (own: Own) => Promise<boolean>,
  ) {}

  /** Somebody believes in a claim until then. */
  until(untilMs: number): void {
    if (untilMs + GRACE_MS < this.dueMs) this.schedule(untilMs + GRACE_MS);
  }

  close(): void {
    this.timer?.cancel();
    this.dueMs = -Infinity;
  }

  private schedule(dueMs: number): void {
    this.timer?.cancel();
    this.dueMs = dueMs;
    const delayMs = Math.max(0, dueMs - this.clock.now().monoMs);
    this.timer = this.clock.setTimer(() => this.fire(), delayMs, { ref: false });
  }

  private fire(): void {
    const nowMs = this.clock.now().monoMs;
    let nextMs = Infinity;
    for (const own of this.claims.all()) {
      const endMs = own.untilMs + GRACE_MS;
      if (endMs > nowMs || own.flights > 0) nextMs = Math.min(nextMs, endMs);
      else void this.reap(own);
    }
    this.dueMs = Infinity;
    if (nextMs < Infinity) this.schedule(Math.max(nextMs, nowMs + GRACE_MS));
  }

  private async reap(own: Own): Promise<void> {
    // Not twice at once. A failure leaves it for later, as long as others keep its lease alive.
    own.flights += 1;
    own.reaped = true;
    try {
      const isGone = await this.take(own);
      if (isGone && own.flights === 1) this.claims.forget(own);
      else this.until(this.clock.now().monoMs);
    } catch {
      this.until(this.clock.now().monoMs);
    } finally {
      own.flights -= 1;
      own.reaped = false;
    }
  }
}
