/**
 * What somebody who wants a run to happen may do about the record that stands under its key: go on with it, or leave
 * it alone, and for which reason. Pure, so that callers, the sweep and the simulator judge alike.
 */
import { compensationOpen, HANDED_BACK } from './run-parts.js';
import { NO_TOKEN } from './run.js';
import type { RunRecord } from './run-record.js';

/** Who asks. */
export interface Asker {
  /** The record is this call's own: it made it, and nobody has moved it since. */
  readonly mine: boolean;
  /** Name of the lock backend it sees. */
  readonly backend: string;
  readonly ifFailed: 'keep' | 'rerun';
  /** Pending records of others, unless they were handed back, are left alone until they are overdue by this. */
  readonly overdueMs: number;
  /** Whether it asks by a caller's key: a record that was made in the other way is under another lock. Default: as that. */
  readonly keyed?: boolean;
  /** A first attempt that could not begin for so long is given up. */
  readonly startingDeadlineMs?: number | undefined;
}

/** Why a record is left alone: the state it is in, or what stands in the way. */
export type LeftAlone =
  | 'completed'
  | 'expired'
  | 'skipped'
  | 'on-hold'
  | 'failed'
  | 'compensation-due'
  /** Somebody works on it, as far as the record tells. */
  | 'running'
  /** Somebody else is about to start it, or its next attempt is due later. */
  | 'pending';

/** What to do about a record. Everything but `leave` and `expire` needs the run's lock first. */
export type Admission =
  | { readonly act: 'start' }
  /** Running: if its lock can be had, nobody works on it. */
  | { readonly act: 'take-over' }
  | { readonly act: 'rerun' }
  | { readonly act: 'reopen' }
  | { readonly act: 'expire' }
  | { readonly act: 'leave'; readonly why: LeftAlone };

/** Judges a record at one moment of the run store's clock. */
export function admit(run: RunRecord, asker: Asker, atMs: number): Admission {
  if (asker.keyed !== undefined && asker.keyed !== (run.keyed === true)) return leave(run.state);
  switch (run.state) {
    case 'pending': {
      const lateMs = atMs - run.availableAtMs;
      // What a person asks for afterwards is late by nature.
      const canExpire = run.attempt === 0 && run.trigger !== 'backfill';
      if (canExpire && lateMs > (asker.startingDeadlineMs ?? Infinity)) return { act: 'expire' };
      // Whoever handed it back is not about to begin it again.
      const isFree = asker.mine || (run.reason === HANDED_BACK && lateMs >= 0);
      return isFree || lateMs >= asker.overdueMs ? { act: 'start' } : leave('pending');
    }
    case 'running':
      // Without a lock nobody can tell whether it still runs; with another backend's, not from here.
      if (run.lock.token === NO_TOKEN || run.lock.backend !== asker.backend) return leave('running');
      return { act: 'take-over' };
    case 'failed':
      if (compensationOpen(run)) return leave('compensation-due');
      return asker.ifFailed === 'rerun' ? { act: 'rerun' } : leave('failed');
    case 'skipped':
      return run.scheduledForMs === undefined ? { act: 'reopen' } : leave('skipped');
    case 'completed':
    case 'expired':
    case 'on-hold':
      return leave(run.state);
  }
}

function leave(why: LeftAlone): Admission {
  return { act: 'leave', why };
}
