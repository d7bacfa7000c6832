/** One clear error for a database that Guard's tables are not in. */
import { GuardError } from '@guard/core';
import { sqliteCode } from './driver.js';

/** Name of the migration that makes Guard's tables. */
export const MIGRATION_NAME = 'GuardTables1764374400000';

/** The error itself, unless it says that a table or column is not there. */
export function explainMissing(error: unknown, place: string): unknown {
  if (!isMissing(error)) return error;
  return new GuardError(
    'schema-missing',
    `the tables of @guard/typeorm are not (all) in ${place}: add guardMigrations() to the migrations of the data ` +
      `source and run them (${MIGRATION_NAME}), or call ensureSchema(dataSource)`,
    { cause: error },
  );
}

function isMissing(error: unknown): boolean {
  return sqliteCode(error) === 'SQLITE_ERROR' && /no such (table|column)|has no column/.test(String(error));
}
