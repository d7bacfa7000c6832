/**
 * What Guard asks of better-sqlite3, and of what stands in for it: typed by the members that are used, so that nothing
 * of the library is imported and a fork of it fits.
 */

/** What a statement of better-sqlite3 can do, as far as Guard uses it. */
export interface SqliteStatement {
  run(...parameters: readonly SqliteValue[]): { readonly changes: number };
  all(...parameters: readonly SqliteValue[]): unknown[];
  safeIntegers(on: boolean): SqliteStatement;
}

/** What Guard binds to a parameter. */
export type SqliteValue = string | number | bigint | null | Uint8Array;

/** What a database of better-sqlite3 can do, as far as Guard uses it. */
export interface SqliteDatabase {
  readonly inTransaction: boolean;
  readonly open: boolean;
  prepare(statement: string): SqliteStatement;
  exec(statements: string): unknown;
  pragma(pragma: string, options?: { readonly simple?: boolean }): unknown;
  close(): unknown;
}

/** The constructor that better-sqlite3 exports. */
export type SqliteDriver = new (
  file: string,
  options: { readonly timeout: number; readonly fileMustExist: boolean; readonly nativeBinding?: string },
) => SqliteDatabase;

/** The code of an error of SQLite, such as `SQLITE_BUSY`; `undefined` for any other error. */
export function sqliteCode(error: unknown): string | undefined {
  // Not by its class: under a test runner the driver is loaded more than once, and then so is the class.
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : undefined;
}

/** Whether somebody else uses the file, so that asking again helps. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code);
}
