/** When a task is due by itself, as an application says it. */
import type { Duration } from '../value/duration.js';

/** What happens to occurrences that nobody ran when they were due. */
export type CatchUp =
  /** They are recorded as passed over; one that is late by five seconds at most still runs. */
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
