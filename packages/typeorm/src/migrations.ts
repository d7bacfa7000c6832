/**
 * How Guard's tables get into the application's database: as a TypeORM migration, or at once by `ensureSchema`. Both
 * run the same statements, which can be run again.
 */
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { targetOf, type Target } from './dialect.js';
import { createOnMariadb } from './mariadb/schema.js';
import { createOnPostgres, migrateOnPostgres } from './postgres/schema.js';
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
      const query = (text: string, values?: unknown[]) => queryRunner.query(text, values) as Promise<unknown>;
      await createBy(query, targetFor(queryRunner, options), options);
    }

    async down(queryRunner: QueryRunner): Promise<void> {
      const statements = dropStatements(targetFor(queryRunner, options), options);
      for (const statement of statements) await queryRunner.query(statement);
    }
  }
  return [GuardTables];
}

/**
 * Makes the tables that are not there yet, outside of any transaction of the application. For applications without
 * migrations, and for tests; several processes may call it at once. On Postgres without a schema, tables that the search
 * path leads to are there, and the others are made beside them.
 *
 * @throws GuardError `invalid-argument` as for `typeormRuns`, or a database of Postgres that is not in UTF8;
 * `unavailable`: the database cannot be written.
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

function targetFor(queryRunner: QueryRunner, options: TableOptions): Target {
  // Up to TypeORM 0.3 it is called connection.
  const { dataSource } = queryRunner as { readonly dataSource?: DataSource };
  return targetOf(dataSource ?? queryRunner.connection, options);
}

async function createBy(
  query: (text: string, values?: unknown[]) => Promise<unknown>,
  target: Target,
  options: TableOptions,
): Promise<void> {
  const names = tableNames(options);
  if (target.type === 'postgres') {
    return migrateOnPostgres(query, target, names, options.schema ?? target.schema);
  }
  const texts = target.type === 'mariadb' ? mariadb.createTables(names) : sqlite.createTables(names);
  for (const text of texts) await query(text);
}

function dropStatements(target: Target, options: TableOptions): readonly string[] {
  const names = tableNames(options);
  switch (target.type) {
    case 'postgres':
      return postgres.dropTables(names, options.schema ?? target.schema);
    case 'mariadb':
      return mariadb.dropTables(names);
    case 'sqlite':
      return sqlite.dropTables(names);
  }
}
