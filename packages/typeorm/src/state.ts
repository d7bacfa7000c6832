/** `typeormState`: state in the database that a `DataSource` points at, next to its locks. */
import type { StateStore } from '@guard/core';
import type { DataSource } from 'typeorm';
import { targetOf } from './dialect.js';
import { openGuardFile } from './guard-file.js';
import { checkStoreOptions, type TypeormTableOptions } from './options.js';
import { mariadbState } from './mariadb/parts.js';
import { postgresState } from './postgres/parts.js';
import { SqliteState } from './sqlite/state-store.js';

/**
 * A state store in the data source's database.
 *
 * On Postgres and MariaDB: in the table `guard_entry`, by short statements on the data source's own pool; the data source must be
 * initialized before the first use. On SQLite: in the file `<database>-guard`, which is made on first use, through a
 * connection of its own; what was answered `written` is on the disk. The data source is never closed.
 *
 * @throws GuardError `invalid-argument`: a driver that is not supported or has options that Guard cannot use, a database in
 * memory, or a bad option.
 */
export function typeormState(dataSource: DataSource, options: TypeormTableOptions = {}): StateStore {
  checkStoreOptions(options);
  const target = targetOf(dataSource, options);
  switch (target.type) {
    case 'postgres':
      return postgresState(target, options);
    case 'mariadb':
      return mariadbState(target, options);
    case 'sqlite':
      return new SqliteState(openGuardFile(target, options, 'FULL'));
  }
}
