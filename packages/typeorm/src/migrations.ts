/**
 * How Guard's tables get into the application's database: as a TypeORM migration, or at once by `ensureSchema`. Both
 * run the same statements, which can be run again.
 */
import { GuardError, systemClock, systemRandom } from '@guard/core';
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { Connection } from './connection.js';
import { targetOf } from './dialect.js';
import { MIGRATION_NAME } from './schema-missing.js';
import { createTables, dropTables } from './statements/sqlite-tables.js';
import { tableNames, type TableOptions } from './tables.js';

/** What TypeORM takes in the option `migrations`. */
export type MigrationClass = new () => MigrationInterface;

/** The longest time for which `ensureSchema` waits for others that use the file. */
const PATIENCE_MS = 30_000;

/**
 * The migrations that make Guard's tables, for the option `migrations` of a data source.
 *
 * @example
 * new DataSource({ type: 'better-sqlite3', database: 'app.sqlite', migrations: [...guardMigrations(), …] });
 */
export function guardMigrations(options: TableOptions = {}): readonly MigrationClass[] {
  const tables = tableNames(options);
  class GuardTables implements MigrationInterface {
    readonly name = MIGRATION_NAME;

    async up(queryRunner: QueryRunner): Promise<void> {
      for (const statement of createTables(tables)) await queryRunner.query(statement);
    }

    async down(queryRunner: QueryRunner): Promise<void> {
      for (const statement of dropTables(tables)) await queryRunner.query(statement);
    }
  }
  return [GuardTables];
}

/**
 * Makes the tables that are not there yet, through a connection of its own. For applications without migrations, and
 * for tests; several processes may call it at once.
 *
 * @throws GuardError `invalid-argument` as for `typeormRuns`; `unavailable`: the file cannot be written.
 */
export async function ensureSchema(dataSource: DataSource, options: TableOptions = {}): Promise<void> {
  const { file, driver, nativeBinding, key } = targetOf(dataSource);
  const tables = tableNames(options);
  const connection = new Connection({
    ...{ driver, file, create: true, synchronous: 'FULL', nativeBinding, key },
    ...{ clock: systemClock, random: systemRandom },
  });
  try {
    await connection.write(PATIENCE_MS, () =>
      connection.immediate(() => {
        for (const statement of createTables(tables)) connection.run(statement);
      }),
    );
  } catch (cause) {
    throw new GuardError('unavailable', `the tables of @guard/typeorm cannot be made in ${file}`, { cause });
  } finally {
    connection.close();
  }
}
