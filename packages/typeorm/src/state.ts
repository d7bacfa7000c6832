/** `typeormState`: state in the database that a `DataSource` points at, next to its locks. */
import type { StateStore } from '@guard/core';
import type { DataSource } from 'typeorm';
import { openGuardFile, type TypeormOptions } from './guard-file.js';
import { SqliteState } from './sqlite/state-store.js';

/**
 * A state store in the data source's database. On SQLite: in the file `<database>-guard`, which is made on first use,
 * through a connection of its own. What was answered `written` is on the disk.
 *
 * The data source need not be initialized, and is never closed.
 *
 * @throws GuardError `invalid-argument`: a driver that is not supported, or a database in memory.
 */
export function typeormState(dataSource: DataSource, options: TypeormOptions = {}): StateStore {
  return new SqliteState(openGuardFile(dataSource, options, 'FULL'));
}
