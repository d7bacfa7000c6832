/** What `typeormLocks`, `typeormState` and `typeormRuns` may be told. */
import type { Clock, Random } from '@guard/core';
import type { MachineTime } from './machine-time.js';
import { TABLE_OPTIONS, type TableOptions } from './tables.js';

/** What `typeormLocks`, `typeormState` and `typeormRuns` all may be told. */
export interface TypeormOptions {
  /**
   * Names the place that is written to; nodes that work together must name it alike, and fences compare tokens of one
   * name only. Default: the path of the file; `postgres:host:port/database`, or `mariadb:`, of the data source.
   */
  readonly name?: string;
  /** For tests: timers, and the wall time that tokens and versions are not below. Default: the system's. */
  readonly clock?: Clock;
  /**
   * For tests on SQLite: what leases and ttls are counted by. All processes of one file must agree on it. Default: the
   * machine's. A database server counts by its own clock.
   */
  readonly machineTime?: MachineTime;
  /** For tests: draws the pauses before a busy database is asked again. Default: the system's. */
  readonly random?: Random;
}

/** Every option of `TypeormOptions`. */
export const TYPEORM_OPTIONS: readonly (keyof TypeormOptions)[] = ['name', 'clock', 'machineTime', 'random'];

/** Options of `typeormLocks` and `typeormState`. SQLite has them in a file of their own, whatever the tables are called. */
export interface TypeormTableOptions extends TypeormOptions, TableOptions {}

/** Every option of `TypeormTableOptions`. */
export const TYPEORM_TABLE_OPTIONS: readonly (keyof TypeormTableOptions)[] = [
  ...TYPEORM_OPTIONS,
  ...TABLE_OPTIONS,
];
