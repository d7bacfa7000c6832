/**
 * Why instants were missed, as the node knows that settles them: from when on it was up, and when it could plan nothing.
 * A list of moments at which that changed, so of two troubles in a row each instant gets its own.
 */

/** Why nobody planned an instant while it was due. */
export type MissedCause =
  /** No node that knows the task was up and able to plan; the one that settled it started later. */
  | 'no-node'
  /** The node had stopped itself, because its clock was too far from the store's. */
  | 'clock-skew'
  /** The node could not hold the lock by which it is announced. */
  | 'locks-away'
  /** The node could not reach the run store. */
  | 'store-away'
  /** A longer jitter had moved its start to later: it came due together with others when the jitter was made shorter. */
  | 'shorter-jitter'
  /** The node was up and came too late: it was blocked or asleep, or the store was slow. */
  | 'late';

/** What was the cause from a moment on, by the run store's time. */
export interface Absence {
  readonly cause: MissedCause;
  readonly sinceMs: number;
}

const MAX_ABSENCES = 8;

/** The list with one change more. What was noted of the time after it was a mistake. The oldest changes go first. */
export function noted(absences: readonly Absence[], absence: Absence, max = 32): readonly Absence[] {
  const before = absences.filter(({ sinceMs }) => sinceMs < absence.sinceMs);
  if (before.at(-1)?.cause === absence.cause) return before;
  const all = [...before, absence];
  // The first one says when the node came.
  return all.length <= max ? all : all.filter((_, place) => place !== 1);
}

/** Those that say something about the instants after `fromMs` and up to `toMs`. */
export function absencesIn(absences: readonly Absence[], fromMs: number, toMs: number): readonly Absence[] {
  const first = absences.findLastIndex(({ sinceMs }) => sinceMs <= fromMs);
  return absences
    .slice(Math.max(first, 0))
    .filter(({ sinceMs }) => sinceMs < toMs)
    .slice(-MAX_ABSENCES);
}

/** Why an instant was missed; `undefined`: nobody noted it. */
export function causeAt(absences: readonly Absence[], instantMs: number): MissedCause | undefined {
  return absences.findLast(({ sinceMs }) => sinceMs < instantMs)?.cause;
}
