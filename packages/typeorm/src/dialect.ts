/**
 * Which database a `DataSource` speaks to, and how Guard reaches it. Every entry point asks here first, so that a driver
 * that Guard does not know is refused in one place and in one sentence.
 */
import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { GuardError, invalidArgument } from '@guard/core';
import type { DataSource } from 'typeorm';
import type { SqliteDatabase, SqliteDriver } from './driver.js';
import type { MysqlDriver } from './mariadb/connections.js';
import { databaseName } from './place-name.js';
import type { PgDriver } from './postgres/pg.js';
import type { TableOptions } from './tables.js';
import { mariadbAddress, postgresAddress, type ExtraOptions } from './server-address.js';

/** A SQLite database file and the driver that the application opens it with. */
export interface SqliteTarget {
  readonly type: 'sqlite';
  /** Absolute path of the application's file. */
  readonly file: string;
  /** Absolute path of the file beside it that holds locks and state. */
  readonly guardFile: string;
  readonly driver: SqliteDriver;
  readonly nativeBinding: string | undefined;
  /** Encryption key, where the application's driver takes one. */
  readonly key: string | undefined;
  /** Whether the application's own connection is in the middle of a transaction. */
  readonly inTransaction: () => boolean;
}

/** A Postgres database and the pool that the application has for it. */
export interface PostgresTarget {
  readonly type: 'postgres';
  /** Names the database: `postgres:host:port/database`; the host is a folder where the server has its socket in one. */
  readonly place: string;
  /** The schema that the data source names, if it does. */
  readonly schema: string | undefined;
  readonly driver: PgDriver;
}

/** A MariaDB database and the pool that the application has for it. */
export interface MariadbTarget {
  readonly type: 'mariadb';
  /** Names the database: `mariadb:host:port/database`, or `mariadb:socket/database`. */
  readonly place: string;
  readonly driver: MysqlDriver;
}

/** The databases that Guard knows how to use. A dialect adds its own shape. */
export type Target = SqliteTarget | PostgresTarget | MariadbTarget;

/**
 * What the data source points at.
 *
 * @throws GuardError `invalid-argument`: another driver, options of it that Guard cannot use (such as reading only), a
 * database in memory, which no other process can see, or a schema where there are none.
 */
export function targetOf(dataSource: DataSource, { schema }: TableOptions = {}): Target {
  const { options, driver } = (dataSource ?? {}) as Partial<DataSource>;
  if (options === undefined || driver === undefined) {
    throw invalidArgument('dataSource', dataSource, 'must be a DataSource of TypeORM');
  }
  if (schema !== undefined && options.type !== 'postgres') {
    throw invalidArgument(
      'schema',
      schema,
      `must not be given for ${options.type}: only Postgres has schemas`,
    );
  }
  if (options.type === 'better-sqlite3') return sqliteTarget(options, driver);
  if (options.type === 'postgres') return postgresTarget(options, driver);
  if (options.type === 'mariadb' || options.type === 'mysql') return mariadbTarget(options, driver);
  throw invalidArgument(
    'dataSource',
    options.type,
    `must use a driver that @guard/typeorm supports ('postgres', 'mariadb', 'mysql', 'better-sqlite3')`,
  );
}

/** What TypeORM's driver has loaded; its connection is there once the data source is initialized. */
interface LoadedDriver {
  readonly sqlite: SqliteDriver;
  readonly databaseConnection?: SqliteDatabase;
}

function sqliteTarget(
  options: Extract<DataSource['options'], { type: 'better-sqlite3' }>,
  driver: DataSource['driver'],
): SqliteTarget {
  // As the driver does with it.
  const database = options.database.trim();
  if (database === '' || database.includes(':memory:')) {
    throw new GuardError(
      'invalid-argument',
      `dataSource must use a database file: ${JSON.stringify(database)} is a database that no other process can ` +
        `see. Within one process use memoryLocks() and memoryState() of @guard/core`,
    );
  }
  if (options.readonly === true) {
    throw invalidArgument(
      'dataSource.options.readonly',
      true,
      'must not be set: Guard writes to the database; give it a data source of its own',
    );
  }
  const loaded = driver as unknown as LoadedDriver;
  const file = realFile(openFile(loaded) ?? resolve(database));
  return {
    type: 'sqlite',
    file,
    guardFile: `${file}-guard`,
    // The very library that the application loaded: a second copy of SQLite in one process breaks its file locks.
    driver: loaded.sqlite,
    nativeBinding: options.nativeBinding,
    key: options.key,
    inTransaction: () => loaded.databaseConnection?.inTransaction === true,
  };
}

function postgresTarget(
  options: Extract<DataSource['options'], { type: 'postgres' }>,
  driver: DataSource['driver'],
): PostgresTarget {
  const { binary } = (options.extra ?? {}) as { readonly binary?: unknown };
  if (binary) {
    throw invalidArgument(
      'dataSource.options.extra.binary',
      binary,
      'must not be set: Guard reads text only',
    );
  }
  return {
    type: 'postgres',
    place: databaseName(
      'postgres',
      postgresAddress(options.replication?.master ?? options, options.extra as ExtraOptions),
    ),
    // An empty one is none to TypeORM.
    schema: options.schema || undefined,
    driver: driver,
  };
}

/** Which server it is, is asked for on its first connection: the two drivers speak to both. */
function mariadbTarget(
  options: Extract<DataSource['options'], { type: 'mariadb' | 'mysql' }>,
  driver: DataSource['driver'],
): MariadbTarget {
  const { mysql } = driver as unknown as { readonly mysql?: { readonly Connection?: { prototype: object } } };
  if (mysql?.Connection?.prototype !== undefined && !('execute' in mysql.Connection.prototype)) {
    throw invalidArgument('dataSource', options.type, `must use the package 'mysql2'`);
  }
  checkReplication(options.replication);
  return {
    type: 'mariadb',
    place: databaseName(
      'mariadb',
      mariadbAddress(options.replication?.master ?? options, options.extra as ExtraOptions),
    ),
    driver: driver,
  };
}

/** What one outage would put out for good, until the process starts again. */
function checkReplication(replication: { readonly restoreNodeTimeout?: number } | undefined): void {
  if (!replication) return;
  const { restoreNodeTimeout } = replication;
  if (Number.isFinite(restoreNodeTimeout) && restoreNodeTimeout! > 0) return;
  throw invalidArgument(
    'dataSource.options.replication.restoreNodeTimeout',
    restoreNodeTimeout,
    'must be a positive number of milliseconds, such as 1000: without it mysql2 gives up a server for good after a ' +
      'few failed connections, and nothing is guarded any more once it is back',
  );
}

/**
 * The file that the data source has open: a relative path means whatever folder the process was in then, and a second
 * lock file elsewhere would exclude nobody.
 */
function openFile({ databaseConnection }: LoadedDriver): string | undefined {
  if (databaseConnection?.open !== true) return undefined;
  const list = databaseConnection.pragma('database_list') as readonly { name: string; file: string }[];
  return list.find(({ name }) => name === 'main')?.file;
}

/** One name for one file, whatever links lead to it. */
function realFile(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // The file is not there yet: its folder tells as much as can be known.
  }
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}
