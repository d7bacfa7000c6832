/** When the next attempt of a run is due. */

/** How pauses between attempts grow. */
export interface RetryPauses {
  /** Before the second attempt. */
  readonly initialMs: number;
  /** Each pause is so many times the one before. */
  readonly factor: number;
  readonly maxMs: number;
  /** Part of a pause that is drawn at random, so that runs that failed together do not come back as one. */
  readonly jitter: number;
}

/** The pause after attempt number `attempt` (1 for the first) failed; whole milliseconds. */
export function retryPauseMs(pauses: RetryPauses, attempt: number, fraction: number): number {
  // Beyond a few hundred steps the power is infinite, and the longest pause is what remains of it.
  const grownMs = pauses.initialMs * pauses.factor ** Math.min(attempt - 1, 1_000);
  const pauseMs = Math.min(grownMs, pauses.maxMs);
  return Math.round(pauseMs * (1 - pauses.jitter * fraction));
}
