/**
 * `typeormLocks`: locks in the database that a `DataSource` points at. The dialect decides how; this file only picks
 * it, so that an application can change its database without changing its code.
 */
import type { LockBackend } from '@guard/core';
import type { DataSource } from 'typeorm';
import { targetOf } from './dialect.js';
import { openGuardFile } from './guard-file.js';
import { checkStoreOptions, type TypeormTableOptions } from './options.js';
import { mariadbLocks } from './mariadb/parts.js';
import { postgresLocks } from './postgres/parts.js';
import { SqliteLocks } from './sqlite/lock-backend.js';

/**
 * A lock backend in the data source's database.
 *
 * On Postgres and MariaDB: in the table `guard_lock`, by short statements on the data source's own pool, which is never held
 * between two of them; the data source must be initialized before the first use. On SQLite: in the file
 * `<database>-guard`, which is made on first use, through a connection of its own. The application's transactions are
 * never touched (S9), and the data source is never closed.
 *
 * @throws GuardError `invalid-argument`: a driver that is not supported or has options that Guard cannot use, a database in
 * memory, or a bad option.
 */
export function typeormLocks(dataSource: DataSource, options: TypeormTableOptions = {}): LockBackend {
  checkStoreOptions(options);
  const target = targetOf(dataSource, options);
  switch (target.type) {
    case 'postgres':
      return postgresLocks(target, options);
    case 'mariadb':
      return mariadbLocks(target, options);
    case 'sqlite':
      // A power cut that loses the last commits ends every holder too, and tokens grow by the time (S2).
      return new SqliteLocks(openGuardFile(target, options, 'NORMAL'));
  }
}
