/**
 * The lock of a run, for what this node wants to begin under it. Work of this node that goes on under a lock it has
 * lost counts as its holder here: that work may not be stopped, but nothing is begun beside it.
 */
import type { RunRecord } from '../../machine/run-record.js';
import type { ClaimOutcome } from '../lock/lock-service.js';
import { lockKeyOf } from './active-runs.js';
import type { EntryTerms } from './run-entry-terms.js';
import type { RunHost } from './run-host.js';
import type { RunPolicy } from './run-task.js';

/** For so long what was found out about a line is taken to be true. */
const JUDGED_MS = 1_000;

/** However long calls may wait: a sweep comes again. */
const LONGEST_SWEEP_WAIT_MS = 60_000;

/**
 * How long a sweep waits for the lock of a run that it found. Longer than calls and occurrences of the task do: whoever
 * stands before it in the lock's queue is then served or gone before it gives up, so it has its turn.
 */
export function sweepWaitMs({ sweepIntervalMs }: RunHost, { waitMs }: RunPolicy): number {
  return sweepIntervalMs + Math.min(waitMs, LONGEST_SWEEP_WAIT_MS);
}

/** What is asked for. */
export interface RunClaim {
  readonly run: Pick<RunRecord, 'task' | 'key' | 'keyed'>;
  readonly policy: RunPolicy;
  readonly waitMs: number;
  /** How much of the wait may pass until this node's own strays have settled. Default: all of it. */
  readonly strayMs?: number;
}

/** @throws GuardError `unavailable`, `would-deadlock`, `aborted`, `closed`. */
export async function claimToBegin(host: RunHost, claim: RunClaim): Promise<ClaimOutcome> {
  const { active, clock, namespace, stopSignal } = host;
  const lockKey = lockKeyOf(namespace, claim.run);
  const { waitMs, strayMs = waitMs } = claim;
  const fromMonoMs = clock.now().monoMs;
  if (active.hasStray(lockKey) && !(await active.cleared(clock, lockKey, strayMs, stopSignal)))
    return { status: 'busy' };
  const leftMs = Math.max(0, waitMs - (clock.now().monoMs - fromMonoMs));
  const outcome = await claimOf(host, { ...claim, waitMs: leftMs });
  // What worked here when this began to wait may have become a stray: that is how the lock came free.
  if (outcome.status === 'busy' || !active.hasStray(lockKey)) return outcome;
  await outcome.lock.release();
  return { status: 'busy' };
}

/** The lock for a look at the record, or a write to it; no work begins under it. */
export function claimOf(host: RunHost, { run, policy, waitMs }: RunClaim): Promise<ClaimOutcome> {
  const { ttlMs } = policy;
  return host.locks.claim({
    key: lockKeyOf(host.namespace, run),
    shownKey: run.keyed ? `${run.task} ${run.key}` : run.task,
    ttlMs,
    waitMs,
    renewMs: ttlMs / 3,
    signal: host.stopSignal,
    run: run.key,
  });
}

/** Where its turn took long to come, it is judged again whether the run is still to be begun. */
export async function isPassedNow(
  { clock }: RunHost,
  { isPassed }: EntryTerms,
  sinceMonoMs: number,
): Promise<boolean> {
  return isPassed !== undefined && clock.now().monoMs - sinceMonoMs > JUDGED_MS && isPassed();
}
