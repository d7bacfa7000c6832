/**
 * How Guard's tables get into the application's database: as a TypeORM migration, or at once by `ensureSchema`. Both
 * run the same statements, which can be run again.
 */
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { targetOf } from './dialect.js';
import { createOnMariadb } from './mariadb/schema.js';
import { createOnPostgres } from './postgres/schema.js';
import { migrationName } from './schema-missing.js';
import { createInFile } from './sqlite/application-schema.js';
import * as mariadb from './statements/mariadb-tables.js';
import * as postgres from './statements/postgres-tables.js';
import * as sqlite from './statements/sqlite-tables.js';
import { checkTableOptions, tableNames, type TableOptions } from './tables.js';

/** What TypeORM takes in the option `migrations`. */
export type MigrationClass = new () => MigrationInterface;

/**
 * The migrations that make Guard's tables, for the option `migrations` of a data source.
 *
 * @example
 * new DataSource({ type: 'postgres', url, migrations: [...guardMigrations(), …] });
 */
export function guardMigrations(options: TableOptions = {}): readonly MigrationClass[] {
  checkTableOptions(options);
  class GuardTables implements MigrationInterface {
    readonly name = migrationName(options);

    async up(queryRunner: QueryRunner): Promise<void> {
      for (const statement of statementsFor(queryRunner, options).create) await queryRunner.query(statement);
    }

    async down(queryRunner: QueryRunner): Promise<void> {
      for (const statement of statementsFor(queryRunner, options).drop) await queryRunner.query(statement);
    }
  }
  return [GuardTables];
}

/**
 * Makes the tables that are not there yet, outside of any transaction of the application. For applications without
 * migrations, and for tests; several processes may call it at once.
 *
 * @throws GuardError `invalid-argument` as for `typeormRuns`; `unavailable`: the database cannot be written.
 */
export async function ensureSchema(dataSource: DataSource, options: TableOptions = {}): Promise<void> {
  checkTableOptions(options);
  const target = targetOf(dataSource, options);
  const names = tableNames(options);
  switch (target.type) {
    case 'postgres':
      return createOnPostgres(target, names, options.schema ?? target.schema);
    case 'mariadb':
      return createOnMariadb(target, names);
    case 'sqlite':
      return createInFile(target, names);
  }
}

function statementsFor(
  queryRunner: QueryRunner,
  options: TableOptions,
): { readonly create: readonly string[]; readonly drop: readonly string[] } {
  // Up to TypeORM 0.3 it is called connection.
  const { dataSource } = queryRunner as { readonly dataSource?: DataSource };
  const target = targetOf(dataSource ?? queryRunner.connection, options);
  const names = tableNames(options);
  switch (target.type) {
    case 'postgres': {
      const schema = options.schema ?? target.schema;
      return { create: postgres.createTables(names, schema), drop: postgres.dropTables(names, schema) };
    }
    case 'mariadb':
      return { create: mariadb.createTables(names), drop: mariadb.dropTables(names) };
    case 'sqlite':
      return { create: sqlite.createTables(names), drop: sqlite.dropTables(names) };
  }
}
