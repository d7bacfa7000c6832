/** What people can ask and tell about a task with a schedule. */
import type { RunRecord, RunTrigger } from '../machine/run-record.js';
import type { RunOutcome } from './run.js';

/** A task for people. */
export interface TaskView {
  readonly task: string;
  /** The schedule that is in force, as text, and since when. */
  readonly schedule: { readonly text: string; readonly since: Date } | undefined;
  /** Every occurrence up to here is settled: it has a record, is being begun, or was passed over. */
  readonly settledUpTo: Date | undefined;
  readonly paused: { readonly note: string; readonly since: Date } | undefined;
  /** Why the last pause was ended, where somebody said so. */
  readonly resumed: { readonly note: string; readonly at: Date } | undefined;
}

/** Which instants to list. */
export interface NextOptions {
  /** Default 5, at most 100. */
  readonly count?: number;
  /** Default: now, by the run store's clock. */
  readonly after?: Date;
}

/** Which occurrences to make up for. */
export interface BackfillOptions {
  /** The first instant that counts. */
  readonly from: Date;
  /** The last instant that counts; not later than now. */
  readonly to: Date;
  /** Default 100, at most 1,000: a window with more instants is refused. */
  readonly limit?: number;
  /** `true`: tells what would be created, and creates nothing. */
  readonly preview?: boolean;
}

/** What a backfill came to, or would come to. */
export interface Backfill {
  /** Instants without a record: created now, or with `preview` to be created. */
  readonly missing: readonly Date[];
  /** Instants that have a record, which is left as it is. */
  readonly present: readonly { readonly at: Date; readonly run: RunRecord }[];
}

/** What became of one instant, and why. */
export type Explanation = {
  /** In a sentence, for people. */
  readonly text: string;
} & (
  | {
      /** It has a record: in its state. */
      readonly verdict: RunRecord['state'];
      readonly run: RunRecord;
      readonly trigger: RunTrigger;
    }
  | {
      /**
       * `not-scheduled`: the expression does not have it. `upcoming`: it has not come, or jitter moves its start to a
       * time that has not. `due`: it has come, and no node has begun it yet. `paused`: the task is paused. `missed`: it
       * was passed over, and the text says why: no node that knows the task was up, or the one that was could not
       * reach the run store, could not hold its lock, had stopped itself because of its clock, or came too late; or
       * a shorter jitter made it due together with others.
       * `was-paused`: it fell into a pause. `definition-changed`: it was passed over when the expression was changed, or
       * another expression was in force then. `before-first-sight`: no node followed the schedule yet. `forgotten`: it
       * was settled, and its record is gone; or it was settled before the store's clock went back.
       */
      readonly verdict:
        | 'not-scheduled'
        | 'upcoming'
        | 'due'
        | 'paused'
        | 'missed'
        | 'was-paused'
        | 'definition-changed'
        | 'before-first-sight'
        | 'forgotten';
      /** The record that tells of what was passed over. */
      readonly run?: RunRecord;
    }
);

/**
 * Tasks with a schedule. Every call throws GuardError `unavailable` when the store cannot be asked, and
 * `invalid-argument` for a task that nobody knows.
 */
export interface TasksApi {
  /** `null`: no node has seen a task of this name, or it has no schedule. */
  get(task: string): Promise<TaskView | null>;
  /** No node begins an occurrence that is due from now on; what runs goes on, and calls run. */
  pause(task: string, options: { readonly note: string }): Promise<TaskView>;
  /** Occurrences are begun again. Those that fell into the pause are recorded as passed over, and never run. */
  resume(task: string, options?: { readonly note: string }): Promise<TaskView>;
  /** Runs a task that is registered here now, under its lock, whatever its schedule says and although it is paused. */
  runNow(task: string, input?: unknown): Promise<RunOutcome<unknown>>;
  /** Asks for the occurrences of a window that have no record, by the schedule in force. Any started node runs them. */
  backfill(task: string, options: BackfillOptions): Promise<Backfill>;
  /**
   * The next instants, by the schedule that is in force; a pause does not count. What was settled before the store's
   * clock went back is left out: it does not run again.
   */
  next(task: string, options?: NextOptions): Promise<readonly Date[]>;
  /** What became of an instant. */
  explain(task: string, instant: Date): Promise<Explanation>;
}
