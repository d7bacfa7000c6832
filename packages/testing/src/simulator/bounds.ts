/** How long each kind of call may take, in milliseconds in which its process runs (L3). */
import type { SeedPlan } from './plan.js';

/** Bounds of calls. */
export interface CallBounds {
  /** One claim that does not wait. */
  readonly try: number;
  /** A wait is over at its end. */
  acquire(waitMs: number): number;
  /** At the end of its wait a set may have to try one lock, and give the others back. */
  acquireAll(waitMs: number): number;
  readonly release: number;
  readonly extend: number;
  /** A read and a write. */
  readonly state: number;
  /** Several calls to the store, each repeated for a while, two waits for locks, and the work itself. */
  readonly run: number;
  readonly close: number;
}

const BACKOFF_MS = 1_000;
const LONGEST_FLIGHT_MS = 5_000;
const STATE_FLIGHT_MS = 2_000;
/** How long a call to state, an extension and a release are repeated. */
const BUDGET_MS = 5_000;

/** The bounds that follow from the defaults of core and the leases of a plan. */
export function callBounds({ ttlMs, workers }: SeedPlan): CallBounds {
  // A claim's ttl is up to twice the plan's; operations of one key fly one after the other.
  const flightMs = Math.min(2 * ttlMs, LONGEST_FLIGHT_MS);
  const tryMs = 1_000 + BACKOFF_MS + (workers + 2) * flightMs;
  return {
    try: tryMs,
    acquire: (waitMs) => waitMs,
    acquireAll: (waitMs) => waitMs + tryMs + BUDGET_MS,
    release: BUDGET_MS,
    extend: BUDGET_MS + BACKOFF_MS + 3 * flightMs,
    state: 2 * (BUDGET_MS + (workers + 1) * STATE_FLIGHT_MS + BACKOFF_MS),
    run: 240_000 + 20 * ttlMs,
    close: GRACE_MS + 4_000,
  };
}

/** The grace of every simulated guard. */
export const GRACE_MS = 3_000;

/** How often a node looks for what others left. */
export function sweepIntervalMs({ ttlMs }: SeedPlan): number {
  return Math.max(2 * ttlMs, 4_000);
}
