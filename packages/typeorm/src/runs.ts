/** `typeormRuns`: runs in the application's own database, in tables that people can query. */
import { systemClock, systemRandom, type RunStore } from '@guard/core';
import type { DataSource } from 'typeorm';
import { Connection } from './connection.js';
import { targetOf, type SqliteTarget, type Target } from './dialect.js';
import { Lifetimes } from './lifetime.js';
import { systemMachineTime } from './machine-time.js';
import { checkStoreOptions, type TypeormTableOptions } from './options.js';
import { mariadbRuns } from './mariadb/parts.js';
import { databaseName, placeName } from './place-name.js';
import { postgresRuns } from './postgres/parts.js';
import { rememberRunTables } from './run-tables.js';
import { tablesPlace } from './schema-missing.js';
import { SqliteRuns } from './sqlite/run-store.js';
import { tableNames } from './tables.js';

/** Options of `typeormRuns`. */
export type TypeormRunsOptions = TypeormTableOptions;

/**
 * A run store in the data source's database. Its tables are made by `guardMigrations()` or `ensureSchema()`; without
 * them every call says `schema-missing`. Guard writes by short statements on the data source's pool, on SQLite through
 * a connection of its own, so nothing of it joins the application's transactions, except what `completeRun` and
 * `assertFence` are handed a manager for (S9).
 *
 * A data source of a database server must be initialized before the first use. It is never closed.
 *
 * @throws GuardError `invalid-argument`: a driver that is not supported or has options that Guard cannot use, a database in
 * memory, or a bad option.
 */
export function typeormRuns(dataSource: DataSource, options: TypeormRunsOptions = {}): RunStore {
  checkStoreOptions(options);
  const target = targetOf(dataSource, options);
  const store = storeOf(target, options);
  rememberRunTables(store, dataSource, options);
  return store;
}

function storeOf(target: Target, options: TypeormRunsOptions): RunStore {
  switch (target.type) {
    case 'postgres':
      return postgresRuns(target, options);
    case 'mariadb':
      return mariadbRuns(target, options);
    case 'sqlite':
      return sqliteRuns(target, options);
  }
}

function sqliteRuns(target: SqliteTarget, options: TypeormRunsOptions): RunStore {
  const { file, driver, nativeBinding, key, inTransaction } = target;
  const { name = databaseName('sqlite', file), prefix, clock = systemClock, random = systemRandom } = options;
  return new SqliteRuns({
    // Names of tables are one in large and small letters.
    name: placeName(name, { prefix: prefix?.toLowerCase() }),
    where: tablesPlace(file, { prefix }),
    connection: new Connection({
      ...{ driver, file, create: false, synchronous: 'FULL', nativeBinding, key, clock, random },
      // A transaction that has read and not written yet would fail if somebody else wrote now (in WAL mode).
      avoid: inTransaction,
    }),
    lifetimes: new Lifetimes(options.machineTime ?? systemMachineTime()),
    clock,
    tables: tableNames(options),
  });
}
