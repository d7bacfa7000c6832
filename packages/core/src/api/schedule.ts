/**
 * Schedules as an application sees them: when a task is due by itself, and what people can ask and tell about it.
 */
import type { RunOutcome } from './run.js';
import type { RunRecord, RunTrigger } from '../machine/run-record.js';
import type { Duration } from '../value/duration.js';

/** What happens to occurrences that nobody ran when they were due. */
export type CatchUp =
  /** They are recorded as passed over; one that is late by less than five seconds still runs. */
  | 'none'
  /** The newest one runs. The others are recorded as passed over. */
  | 'latest'
  /** The newest `max` (1 to 100) of those that passed `within` this time (default: any) run, oldest first. */
  | { readonly all: { readonly max: number; readonly within?: Duration } };

/** A series of instants: `cron` or `every`, not both. */
export interface Series {
  /**
   * A cron expression of five fields, or six with seconds: lists, ranges, steps, names, `L`, `W`, `#`, and `@daily` and
   * its like. Where a day of the month and a day of the week are given, either does.
   */
  readonly cron?: string;
  /** Instants at whole multiples of this time since 1970 (UTC): the same on every node. At least 100 ms. */
  readonly every?: Duration;
  /** IANA name of the zone of `cron`. Default `'UTC'`, whatever the zone of the machine. */
  readonly timeZone?: string;
}

/** When a task is due by itself, on whichever started node comes first. */
export interface ScheduleOptions extends Series {
  /** Default `'latest'`. */
  readonly catchUp?: CatchUp;
  /**
   * Moves every start of the task by a part of this time that follows from its name: the same on every node and each
   * time. Keeps many tasks of one expression from starting together. Default: none.
   */
  readonly jitter?: Duration;
  /** Without a success for so long, one node tells the event `alarm`. Default: never. */
  readonly alarmAfter?: Duration;
}

/** A task for people. */
export interface TaskView {
  readonly task: string;
  /** The schedule that is in force, as text, and since when. */
  readonly schedule: { readonly text: string; readonly since: Date } | undefined;
  /** Every occurrence up to here is settled: it has a record, is being begun, or was passed over. */
  readonly settledUpTo: Date | undefined;
  readonly paused: { readonly note: string; readonly since: Date } | undefined;
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
       * `not-scheduled`: the expression does not have it. `upcoming`: it has not come. `due`: it has come, and no node
       * has begun it yet. `paused`: the task is paused. `missed`, `was-paused`, `definition-changed`: it was passed
       * over, because no node that knows the task was up, by a pause, or by another expression. `before-first-sight`:
       * nobody knew the task then. `forgotten`: it was settled, and its record is gone.
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
  resume(task: string): Promise<TaskView>;
  /** Runs a task that is registered here now, under its lock, whatever its schedule says and although it is paused. */
  runNow(task: string, input?: unknown): Promise<RunOutcome<unknown>>;
  /** Asks for the occurrences of a window that have no record, by the schedule as it is now. Any started node runs them. */
  backfill(task: string, options: BackfillOptions): Promise<Backfill>;
  /** The next instants, by the schedule as it is now; a pause does not count. */
  next(task: string, options?: NextOptions): Promise<readonly Date[]>;
  /** What became of an instant. */
  explain(task: string, instant: Date): Promise<Explanation>;
}
