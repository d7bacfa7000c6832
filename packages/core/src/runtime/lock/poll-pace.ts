/**
 * When a claim asks whether it is its turn, where no message tells. The answers say how many stand before it, so two of
 * them say how fast the queue moves on. A queue that stands still is asked rarely, and one that moves is asked about when
 * the turn should have come (L2).
 */

/** Who is first in line asks again after so long at the least. */
const SHORTEST_MS = 50;
/** The most that a turn is thought to take at first: a poll too early tells something, and one too late costs all. */
const FIRST_TURN_MS = 50;
/** The most that it is thought to take: nobody asks more rarely because one took longer. */
const LONGEST_TURN_MS = 200;
/** A turn is expected after this part of what turns took: who asks late makes turns long, and would never learn it. */
const HOPE = 0.5;
/** Nine polls a second on average, and one ahead of its time: never more than ten in a second. */
const SPACING_MS = 112;
/** Polls beyond that, for locks that this process gave back, do not put off the next one for longer. */
const LONGEST_DEBT_MS = 3 * SPACING_MS;

/** The polls of this process on one key. */
export class PollPace {
  #turnMs = FIRST_TURN_MS;
  #ahead = 0;
  /** Since when as many stand before the claim; `undefined`: nothing is known of the claim. */
  #sinceMs: number | undefined;
  /** When the next poll would come, were all of them spaced evenly. */
  #evenMs = -Infinity;

  /** So many stood before the claim at that time. */
  stands(ahead: number, atMs: number): void {
    const sinceMs = this.#sinceMs;
    if (sinceMs === undefined || ahead !== this.#ahead) this.#sinceMs = atMs;
    if (sinceMs !== undefined) {
      const turns = this.#ahead - ahead;
      // As long as nobody moves on, a turn takes at least the time that passed.
      if (turns > 0) this.#learn((atMs - sinceMs) / turns);
      else if (turns === 0) this.#turnMs = Math.max(this.#turnMs, Math.min(LONGEST_TURN_MS, atMs - sinceMs));
    }
    this.#ahead = ahead;
  }

  /** The claim had its turn, or gave up; of the one behind it nothing is known, so it hopes anew. */
  turned(atMs: number): void {
    if (this.#sinceMs !== undefined) this.#learn((atMs - this.#sinceMs) / (this.#ahead + 1));
    this.#turnMs = Math.min(this.#turnMs, FIRST_TURN_MS);
    this.#ahead = 0;
    this.#sinceMs = undefined;
  }

  /** A poll was sent. */
  polled(atMs: number): void {
    this.#evenMs = Math.min(Math.max(this.#evenMs, atMs) + SPACING_MS, atMs + LONGEST_DEBT_MS);
  }

  /** When to poll next. `fraction`: chance, so that processes do not ask all at once. */
  nextMs(nowMs: number, fraction: number, atLatestMs: number): number {
    const turnMs =
      this.#ahead === 0
        ? SHORTEST_MS + this.#turnMs * fraction
        : Math.max(SHORTEST_MS, this.#turnMs * this.#ahead * (0.75 + 0.25 * fraction));
    // Never so late that a ticket dies: it lives for three such periods.
    const evenMs = Math.min(this.#evenMs - SPACING_MS, nowMs + 2 * atLatestMs);
    return Math.max(nowMs + Math.min(turnMs, atLatestMs), evenMs);
  }

  #learn(turnMs: number): void {
    this.#turnMs = Math.min(LONGEST_TURN_MS, turnMs * HOPE);
  }
}
