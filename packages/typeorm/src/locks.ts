/**
 * `typeormLocks`: locks in the database that a `DataSource` points at. The dialect decides how; this file only picks
 * it, so that an application can change its database without changing its code.
 */
import type { LockBackend } from '@guard/core';
import type { DataSource } from 'typeorm';
import { openGuardFile, type TypeormOptions } from './guard-file.js';
import { SqliteLocks } from './sqlite/lock-backend.js';

/**
 * A lock backend in the data source's database. On SQLite: in the file `<database>-guard`, which is made on first
 * use, through a connection of its own; the application's connection and transactions are never touched (S9).
 *
 * The data source need not be initialized, and is never closed.
 *
 * @throws GuardError `invalid-argument`: a driver that is not supported, or a database in memory.
 */
export function typeormLocks(dataSource: DataSource, options: TypeormOptions = {}): LockBackend {
  // A power cut that loses the last commits ends every holder too, and tokens grow by the time (S2).
  return new SqliteLocks(openGuardFile(dataSource, options, 'NORMAL'));
}
