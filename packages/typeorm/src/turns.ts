/**
 * Turns of the event loop for calls of SQLite. They are synchronous and answered in microtasks, so callers that go on at
 * once would keep timers and I/O waiting for as long as there are any. Whoever comes when a turn is over waits for the
 * next one, behind all who wait already: a stream of claims that passed a renewal in every turn would cost its lock.
 */
import type { Clock } from '@guard/core';

/** How long calls may follow each other before timers and I/O get their turn. */
export const MAX_TURN_MS = 10;

/** The turns of one connection. */
export class Turns {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #startMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs it at once if there is time left and nobody waits, or else when its turn has come. */
  take<T>(run: () => Promise<T>): Promise<T> {
    if (this.#waiting.length === 0 && !this.#isOver()) return run();
    return new Promise<T>((resolve) => {
      this.#waiting.push(() => resolve(started(run)));
      if (this.#waiting.length === 1) this.#clock.yield(() => this.#serve());
    });
  }

  /** In the order in which they came, until this turn is over too. */
  #serve(): void {
    this.#startMs = undefined;
    while (this.#waiting.length > 0 && !this.#isOver()) this.#waiting.shift()!();
    if (this.#waiting.length > 0) this.#clock.yield(() => this.#serve());
  }

  #isOver(): boolean {
    const nowMs = this.#clock.now().monoMs;
    if (this.#startMs !== undefined) return nowMs - this.#startMs > MAX_TURN_MS;
    this.#startMs = nowMs;
    this.#clock.yield(() => (this.#startMs = undefined));
    return false;
  }
}

/** Runs it now; what it throws is a rejection. */
async function started<T>(run: () => Promise<T>): Promise<T> {
  return run();
}
