/**
 * How long to wait before a fault is tried again: one rule for claims, renewals, releases, cancels and state. The
 * delays grow so that a backend in trouble is left alone, and are spread so that its clients do not come back as one.
 */

const FIRST_MS = 25;
const LARGEST_MS = 1_000;

/** Delay before retry number `failures` (1 for the first), with full jitter over its upper half. */
export function backoffMs(failures: number, fraction: number): number {
  const ceilingMs = Math.min(FIRST_MS * 2 ** Math.min(failures, 16), LARGEST_MS);
  return ceilingMs / 2 + (ceilingMs / 2) * fraction;
}
