/** One clear error for a database that Guard's tables are not in. */
import { GuardError } from '@guard/core';
import { sqliteCode } from './driver.js';

/** Name of the migration that makes Guard's tables. */
export const MIGRATION_NAME = 'GuardTables1764374400000';

/** The error itself, unless it says that a table or column is not there. */
export function explainMissing(error: unknown, place: string): unknown {
  return isMissing(error) ? schemaMissing(error, place) : error;
}

/**
 * Says that tables are missing, and how to make them.
 *
 * @param unless what else looks like it to the one who asks.
 */
export function schemaMissing(cause: unknown, place: string, unless?: string): GuardError {
  const or = unless === undefined ? '' : `, or ${unless}`;
  return new GuardError(
    'schema-missing',
    `the tables of @guard/typeorm are not (all) in ${place}${or}: add guardMigrations() to the migrations of the data ` +
      `source and run them (${MIGRATION_NAME}), or call ensureSchema(dataSource)`,
    { cause },
  );
}

function isMissing(error: unknown): boolean {
  return sqliteCode(error) === 'SQLITE_ERROR' && /no such (table|column)|has no column/.test(String(error));
}
