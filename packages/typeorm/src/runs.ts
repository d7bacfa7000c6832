/** `typeormRuns`: runs in the application's own database, in tables that people can query. */
import { checkOptions, systemClock, systemRandom, type RunStore } from '@guard/core';
import type { DataSource } from 'typeorm';
import { Connection } from './connection.js';
import { targetOf } from './dialect.js';
import { TYPEORM_OPTIONS, type TypeormOptions } from './guard-file.js';
import { Lifetimes } from './lifetime.js';
import { systemMachineTime } from './machine-time.js';
import { rememberRunTables } from './run-tables.js';
import { SqliteRuns } from './sqlite/run-store.js';
import { TABLE_OPTIONS, tableNames, type TableOptions } from './tables.js';

/** Options of `typeormRuns`. */
export interface TypeormRunsOptions extends TypeormOptions, TableOptions {}

/**
 * A run store in the data source's database. Its tables are made by `guardMigrations()` or `ensureSchema()`; without
 * them every call says `schema-missing`. Guard writes through a connection of its own, so nothing of it joins the
 * application's transactions, except what `completeRun` and `assertFence` are handed a manager for (S9).
 *
 * The data source need not be initialized, and is never closed.
 *
 * @throws GuardError `invalid-argument`: a driver that is not supported, a database in memory, or a bad prefix.
 */
export function typeormRuns(dataSource: DataSource, options: TypeormRunsOptions = {}): RunStore {
  checkOptions('options', options ?? null, [...TYPEORM_OPTIONS, ...TABLE_OPTIONS]);
  const { file, driver, nativeBinding, key, inTransaction } = targetOf(dataSource);
  const { name = `sqlite:${file}`, clock = systemClock, random = systemRandom } = options;
  const tables = tableNames(options);
  rememberRunTables(dataSource, name, tables);
  return new SqliteRuns({
    name,
    file,
    connection: new Connection({
      ...{ driver, file, create: false, synchronous: 'FULL', nativeBinding, key, clock, random },
      // A transaction that has read and not written yet would fail if somebody else wrote now (in WAL mode).
      avoid: inTransaction,
    }),
    lifetimes: new Lifetimes(options.machineTime ?? systemMachineTime()),
    clock,
    tables,
  });
}
