/** One clear error for a database that Guard's tables are not in. */
import { GuardError } from '@guard/core';
import { sqliteCode } from './driver.js';
import type { TableOptions } from './tables.js';

/** Name of the migration that makes Guard's tables. */
const MIGRATION_NAME = 'GuardTables1764374400000';

/** Where tables are looked for: the database, and the options that the application gave for them. */
export interface TablesPlace {
  readonly place: string;
  readonly options: TableOptions;
}

/**
 * Where tables are looked for.
 *
 * @param schema the data source's own, which no option has to name.
 */
export function tablesPlace(
  place: string,
  given: { readonly [option in keyof TableOptions]: string | undefined } = {},
  schema?: string,
): TablesPlace {
  const options = {
    ...(given.prefix === undefined ? {} : { prefix: given.prefix }),
    ...(given.schema === undefined || given.schema === schema ? {} : { schema: given.schema }),
  };
  return { place, options };
}

/** The name of the migration for these options. TypeORM takes no two of one name, and reads the date at its end. */
export function migrationName({ prefix = '', schema = '' }: TableOptions): string {
  if (prefix === '' && schema === '') return MIGRATION_NAME;
  return MIGRATION_NAME.replace(/^\D+/, (stem) => `${stem}.${schema}.${prefix}.`);
}

/** The error itself, unless it says that a table or column is not there. */
export function explainMissing(error: unknown, where: TablesPlace): unknown {
  return isMissing(error) ? schemaMissing(error, where) : error;
}

/**
 * Says that tables are missing, and how to make them.
 *
 * @param unless what else looks like it to the one who asks.
 */
export function schemaMissing(cause: unknown, { place, options }: TablesPlace, unless?: string): GuardError {
  const or = unless === undefined ? '' : `, or ${unless}`;
  const given = Object.entries(options).map(([option, value]) => `${option}: ${JSON.stringify(value)}`);
  const written = given.length === 0 ? '' : `{ ${given.join(', ')} }`;
  const call = ['dataSource', ...(written === '' ? [] : [written])].join(', ');
  return new GuardError(
    'schema-missing',
    `the tables of @guard/typeorm are not (all) in ${place}${or}: add guardMigrations(${written}) to the migrations of ` +
      `the data source and run them (${migrationName(options)}), or call ensureSchema(${call})`,
    { cause },
  );
}

function isMissing(error: unknown): boolean {
  return sqliteCode(error) === 'SQLITE_ERROR' && /no such (table|column)|has no column/.test(String(error));
}
