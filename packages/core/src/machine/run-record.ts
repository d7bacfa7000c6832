/**
 * The record of a run: what every process can read about one execution wish. A record is a value; it changes only by
 * `machine/run.ts`, and only a compare-and-set on its version makes a change true (S7).
 *
 * All times are the run store's (milliseconds since the epoch).
 */

import type { Absence } from './absence.js';

/** What caused an attempt. */
export type RunTrigger = 'call' | 'cron' | 'retry' | 'takeover' | 'catch-up' | 'manual' | 'backfill';

/** The lock that an attempt runs under. A record without this lock held is an orphan: there is no second lease. */
export interface RunLock {
  /** `name` of the lock backend: a record of another backend is never taken over. */
  readonly backend: string;
  /** Full key of the lock. */
  readonly key: string;
  /** Fencing token of the grant, as decimal text (records are JSON). */
  readonly token: string;
}

/** Which start of which process works on it. */
export interface RunNode {
  readonly id: string;
  readonly label: string;
}

/** An error as it is kept: no object of the application survives in a record. */
export interface RunFault {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
}

/** The life of the compensation of a failed run. `due` is taken over by the sweep like a run. */
export type Compensation = 'due' | 'done' | 'error' | 'waived';

/** The part of a record that never changes, or changes together with any state. */
export interface RunBase {
  readonly task: string;
  /** Run key; unique inside the task for as long as the record or its tombstone is kept. */
  readonly key: string;
  /** Identity of the record, for links; a lock shows the run's key, by which the record can be found. */
  readonly id: string;
  /** Attempts that were started and count against `retry.attempts`. */
  readonly attempt: number;
  /** How often another claim had to go on with it; counted anew for its compensation, and after a decision. */
  readonly takeovers: number;
  /** What caused the attempt that runs now or ran last. */
  readonly trigger: RunTrigger;
  /** The instant of an occurrence. */
  readonly scheduledForMs?: number;
  /**
   * `true`: the caller gave the key, and the run is under a lock of its own (task + key). Otherwise it is under its
   * task's lock. Kept here because a node that goes on with a pending run has to know which lock to take.
   */
  readonly keyed?: boolean;
  /** JSON text of what the caller handed in, so that any node can run it again. */
  readonly input?: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Set once by the node that raises the alarm about this state of the run (compare-and-set: one node does). */
  readonly alarmed?: boolean;
  /** The error of the last attempt that failed, kept over a retry. */
  readonly lastFault?: RunFault;
}

/** Where a run stands, each state with only its own data. */
export type RunStatus =
  | { readonly state: 'pending'; readonly availableAtMs: number; readonly reason?: string }
  | {
      readonly state: 'running';
      readonly lock: RunLock;
      readonly node: RunNode;
      readonly startedAtMs: number;
      /** JSON text of the last `progress()` that was stored. */
      readonly progress?: string;
    }
  | {
      readonly state: 'completed';
      readonly finishedAtMs: number;
      /** JSON text of the result; absent with `valueOmitted` when it was over the limit. */
      readonly value?: string;
      readonly valueOmitted?: boolean;
      /** The lock was lost, but nobody had moved the record. */
      readonly late?: boolean;
      readonly node: RunNode;
    }
  | {
      readonly state: 'failed';
      readonly finishedAtMs: number;
      readonly fault: RunFault;
      readonly compensation?: Compensation;
      /** While the compensation runs: under which lock, and on which node. */
      readonly lock?: RunLock;
      readonly node?: RunNode;
    }
  | { readonly state: 'on-hold'; readonly sinceMs: number; readonly reason: string }
  | {
      readonly state: 'expired';
      readonly finishedAtMs: number;
      readonly reason: string;
      /** A summary of occurrences that were not run: how many, and from after which to which instant. */
      readonly summary?: RunSummary;
    }
  | {
      readonly state: 'skipped';
      readonly finishedAtMs: number;
      readonly reason: string;
      readonly blockedBy?: string;
    };

/** Occurrences that were passed over: those after `fromMs` and up to `toMs` that have no record of their own. */
export interface RunSummary {
  readonly count: number;
  /** Counting stopped at `count`. */
  readonly atLeast?: boolean;
  readonly fromMs: number;
  readonly toMs: number;
  /** Where they were missed: why, from when on. */
  readonly causes?: readonly Absence[];
}

/** One run as it is stored, without the store's version. */
export type RunRecord = RunBase & RunStatus;

/** A record and the version that the next write has to name. */
export interface StoredRun {
  readonly run: RunRecord;
  readonly version: string;
}

/** One line of a run's history; written in the same step as the change it tells of. */
export interface RunEvent {
  /** The `writeId` of the change: by it, a write in doubt is settled (S4). */
  readonly writeId: string;
  readonly atMs: number;
  /** What happened, in the words of `machine/run.ts`. */
  readonly what: string;
  readonly from: RunStatus['state'] | 'none';
  readonly to: RunStatus['state'];
  readonly attempt: number;
  readonly node?: RunNode;
  /** The token under which it was written, where it was written under a lock. */
  readonly token?: string;
  /** Who or why, in a person's words. */
  readonly note?: string;
}
