/**
 * `typeormLocks`: locks in the database that a `DataSource` points at. The dialect decides how; this file only picks
 * it, so that an application can change its database without changing its code.
 */
import { systemClock, systemRandom, type Clock, type LockBackend, type Random } from '@guard/core';
import type { DataSource } from 'typeorm';
import { Connection } from './connection.js';
import { targetOf } from './dialect.js';
import { Lifetimes } from './lifetime.js';
import { machineTime } from './machine-time.js';
import { prepareGuardFile } from './sqlite/guard-file.js';
import { SqliteLocks } from './sqlite/lock-backend.js';

/** Options of `typeormLocks`. */
export interface TypeormLocksOptions {
  /**
   * Names the place that the locks are kept in; nodes that work together must name it alike, and fences compare
   * tokens of one name only. Default: the path of the file.
   */
  readonly name?: string;
  /** For tests. Its monotonic time stands for the machine's, by which leases are counted. Default: the system's. */
  readonly clock?: Clock;
  /** For tests: draws the pauses before a busy file is asked again. Default: the system's. */
  readonly random?: Random;
}

/**
 * A lock backend in the data source's database. On SQLite: in the file `<database>-guard`, which is made on first
 * use, through a connection of its own; the application's connection and transactions are never touched (S9).
 *
 * The data source need not be initialized, and is never closed.
 *
 * @throws GuardError `invalid-argument`: a driver that is not supported, or a database in memory.
 */
export function typeormLocks(dataSource: DataSource, options: TypeormLocksOptions = {}): LockBackend {
  const target = targetOf(dataSource);
  const { clock = systemClock, random = systemRandom } = options;
  return new SqliteLocks({
    name: options.name ?? `sqlite:${target.guardFile}`,
    connection: new Connection({
      driver: target.driver,
      file: target.guardFile,
      create: true,
      // A power cut that loses the last commits ends every holder too, and tokens grow by the time (S2).
      synchronous: 'NORMAL',
      prepare: prepareGuardFile,
      nativeBinding: target.nativeBinding,
      key: target.key,
      clock,
      random,
    }),
    lifetimes: new Lifetimes(machineTime(options.clock)),
    clock,
  });
}
