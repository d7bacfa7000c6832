/**
 * Takes the keys of claims away that nobody renews any more. They stand under a lease that others of this process keep
 * alive, so without this a lock that its holder let run out, or a ticket that nobody refreshes, would live on with the
 * others. A process that is stopped or dead keeps nothing alive, so for that the end of the lease is enough.
 */
import type { Clock, Timer } from '@guard/core';
import type { Claims, Own } from './claims.js';
import { MAX_STEPS } from './statements/txn.js';

/** A release of the same claim may be on its way. */
const GRACE_MS = 250;
/** While nothing gets through, one claim is tried, and more and more rarely: its lease ends as well. */
const LONGEST_PAUSE_MS = 5_000;
/** What is due beyond that is taken a moment later. */
const BATCHES_AT_ONCE = 32;

/** The reaper of one adapter. One timer, whatever the number of claims. */
export class Reaper {
  private timer: Timer | undefined;
  private dueMs = Infinity;
  private failures = 0;
  private notBeforeMs = -Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly claims: Claims,
    /** Of claims on different locks. `false`: its key stands still. */
    private readonly take: (some: readonly Own[]) => Promise<readonly boolean[]>,
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
    this.dueMs = Infinity;
    if (nowMs < this.notBeforeMs) return this.schedule(this.notBeforeMs);
    const most = this.failures > 0 ? 1 : BATCHES_AT_ONCE * MAX_STEPS;
    const due: Own[] = [];
    const locks = new Set<string>();
    let nextMs = Infinity;
    for (const own of this.claims.all()) {
      const endMs = own.untilMs + GRACE_MS;
      if (endMs > nowMs || own.flights > 0 || due.length >= most || locks.has(own.key)) {
        nextMs = Math.min(nextMs, endMs);
        continue;
      }
      locks.add(own.key);
      due.push(own);
    }
    if (nextMs < Infinity) this.schedule(Math.max(nextMs, nowMs + GRACE_MS));
    for (let at = 0; at < due.length; at += MAX_STEPS) void this.reap(due.slice(at, at + MAX_STEPS));
  }

  private async reap(some: readonly Own[]): Promise<void> {
    // Not twice at once. A failure leaves them for later, as long as others keep their lease alive.
    for (const own of some) {
      own.flights += 1;
      own.reaped = true;
    }
    try {
      const gone = await this.take(some);
      this.failures = 0;
      some.forEach((own, n) => {
        if (gone[n] && own.flights === 1) this.claims.forget(own);
        else this.until(this.clock.now().monoMs);
      });
    } catch {
      this.failed();
    } finally {
      for (const own of some) {
        own.flights -= 1;
        own.reaped = false;
      }
    }
  }

  private failed(): void {
    const nowMs = this.clock.now().monoMs;
    if (nowMs >= this.notBeforeMs) {
      this.failures += 1;
      this.notBeforeMs = nowMs + Math.min(LONGEST_PAUSE_MS, GRACE_MS * 2 ** this.failures);
    }
    this.until(nowMs);
  }
}
