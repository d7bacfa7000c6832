/**
 * `<file>-guard`: the SQLite file beside the application's that holds locks and state. It is a file of its own so
 * that the application's transactions, its journal mode and its backups are the application's alone; and so that
 * locks and state can commit while the application writes.
 */
import { GuardError } from '@guard/core';
import type { SqliteDatabase } from '../driver.js';
import { APPLICATION_ID, CREATE_GUARD_FILE, SCHEMA_VERSION } from '../statements/sqlite-guard-file.js';

/** A checkpoint syncs two files and stops the writer meanwhile: it comes when the log has 16 MB, not four. */
const CHECKPOINT_PAGES = 4_000;

/** Brings a file that was just opened to WAL and to the schema; several processes may do so at once. */
export function prepareGuardFile(database: SqliteDatabase): void {
  database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  if (database.pragma('user_version', { simple: true }) === 0) create(database);
  const version = database.pragma('user_version', { simple: true });
  if (database.pragma('application_id', { simple: true }) !== APPLICATION_ID || version !== SCHEMA_VERSION) {
    throw new GuardError(
      'schema-missing',
      `the file that @guard/typeorm keeps locks and state in has schema ${String(version)}, and this version of ` +
        `the package needs schema ${SCHEMA_VERSION}`,
    );
  }
}

function create(database: SqliteDatabase): void {
  const mode = database.pragma('journal_mode = WAL', { simple: true });
  if (mode !== 'wal') {
    throw new GuardError(
      'unavailable',
      `the file that @guard/typeorm keeps locks and state in cannot use SQLite's write-ahead log (it stays in mode ` +
        `${String(mode)}): it must be on a local disk`,
    );
  }
  database.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have been faster between the look and the transaction.
    if (database.pragma('user_version', { simple: true }) === 0) database.exec(CREATE_GUARD_FILE);
    database.exec('COMMIT');
  } catch (error) {
    if (database.inTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
