/** What `typeormLocks`, `typeormState` and `typeormRuns` may be told. */
import { invalidArgument, type Clock, type Random } from '@guard/core';
import type { MachineTime } from './machine-time.js';
import { checkName, checkTableOptions, type TableOptions } from './tables.js';

/** What `typeormLocks`, `typeormState` and `typeormRuns` all may be told. */
export interface TypeormOptions {
  /**
   * Names the database that is written to, in 1 to 512 bytes; nodes that work together must name it alike, and fences
   * compare tokens of one name only. A schema and a prefix that are not the usual ones are added to it. Default: the path
   * of the file; `postgres:host:port/database`, or `mariadb:`, of the data source.
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
const TYPEORM_OPTIONS: readonly (keyof TypeormOptions)[] = ['name', 'clock', 'machineTime', 'random'];
/** A name and a key of a lock name a fence together, in a column with an index. */
const MAX_NAME_BYTES = 512;

/** Options of `typeormLocks` and `typeormState`. SQLite has them in a file of their own, whatever the tables are called. */
export interface TypeormTableOptions extends TypeormOptions, TableOptions {}

/**
 * Refuses options of a store that are not what they should be, before any file or connection is opened.
 *
 * @throws GuardError `invalid-argument` naming the option.
 */
export function checkStoreOptions(options: TypeormTableOptions): void {
  checkTableOptions(options, TYPEORM_OPTIONS);
  const { name, clock, machineTime, random } = options;
  if (name !== undefined) checkName('name', name, MAX_NAME_BYTES);
  checkPart('clock', clock, ['now', 'setTimer', 'yield']);
  checkPart('random', random, ['id', 'fraction']);
  checkPart('machineTime', machineTime, ['nowMs']);
  if (machineTime !== undefined && typeof machineTime.boot !== 'string') {
    throw invalidArgument('machineTime.boot', machineTime.boot, 'must be a text');
  }
}

function checkPart(argument: string, part: object | undefined, members: readonly string[]): void {
  if (part === undefined) return;
  const held: unknown = part;
  const lacking =
    typeof held === 'object' && held !== null
      ? members.filter((member) => typeof (held as Record<string, unknown>)[member] !== 'function')
      : members;
  if (lacking.length > 0)
    throw invalidArgument(argument, part, `must be an object with ${lacking.join(', ')}`);
}
