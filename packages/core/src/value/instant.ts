/**
 * A moment on both local clocks. The monotonic clock counts durations, but on some systems it stands still while the
 * machine sleeps; the wall clock sees the sleep, but can be set. A lease is believed only while *both* say so.
 */

/** One reading of both clocks, in milliseconds. */
export interface Instant {
  /** Monotonic time; only differences mean something. */
  readonly monoMs: number;
  /** Wall time since the epoch. */
  readonly wallMs: number;
}

/** What the two clocks say about a deadline `durationMs` after `since`. */
export type Verdict =
  /** Both clocks are before the deadline. */
  | 'before'
  /** Only the wall clock is past it: a sleep, a restored machine, or a mere clock step. */
  | 'doubtful'
  /** The monotonic clock is past it: no doubt. */
  | 'past';

/**
 * Compares the time that went by since `since` with a duration, on both clocks. Counted as timers are set, by adding:
 * clocks read fractions, subtracting rounds differently, and a timer that fires at `since + duration` must never find
 * that the deadline is still to come.
 */
export function elapsed(since: Instant, now: Instant, durationMs: number): Verdict {
  if (now.monoMs >= since.monoMs + durationMs) return 'past';
  return now.wallMs >= since.wallMs + durationMs ? 'doubtful' : 'before';
}
