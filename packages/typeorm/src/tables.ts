/** Names of the tables that Guard has in the application's database. */
import { checkOptions, invalidArgument } from '@guard/core';

/** What the names of Guard's tables in the application's database start with. */
export interface TableOptions {
  /** Letters, digits and underscores, at most 32, not starting with a digit. Default `'guard_'`. */
  readonly prefix?: string;
  /** Postgres: the schema that the tables are in. Default: the data source's, else that of its search path. */
  readonly schema?: string;
}

/** Every option of `TableOptions`. */
const TABLE_OPTIONS: readonly (keyof TableOptions)[] = ['prefix', 'schema'];
/** Postgres cuts longer names off without a word, and two of them would be one schema. */
const MAX_SCHEMA_BYTES = 63;

/**
 * Refuses what names no tables, before anything is asked of a database.
 *
 * @param more options that the caller has besides, and checks.
 * @throws GuardError `invalid-argument`: an unknown option, or one that is not what it should be.
 */
export function checkTableOptions(options: TableOptions, more: readonly string[] = []): void {
  checkOptions('options', options ?? null, [...TABLE_OPTIONS, ...more]);
  tableNames(options);
  if (options.schema !== undefined) checkName('schema', options.schema, MAX_SCHEMA_BYTES);
}

/**
 * Refuses what is no name.
 *
 * @throws GuardError `invalid-argument`.
 */
export function checkName(argument: string, name: unknown, maxBytes: number): void {
  const isName = typeof name === 'string' && name !== '' && name.isWellFormed() && !name.includes('\0');
  if (isName && Buffer.byteLength(name) <= maxBytes) return;
  throw invalidArgument(argument, name, `must be a text of 1 to ${maxBytes} bytes of UTF-8, without U+0000`);
}

/** One name for each table. */
export interface TableNames {
  /** On database servers only: SQLite has locks and state in a file of their own. */
  readonly lock: string;
  readonly entry: string;
  readonly version: string;
  readonly run: string;
  readonly runEvent: string;
  readonly task: string;
  readonly node: string;
  readonly fence: string;
}

/**
 * The names for a prefix. They are written into statements as they are, so nothing but plain identifiers passes.
 *
 * @throws GuardError `invalid-argument`: not a prefix of an identifier.
 */
export function tableNames({ prefix = 'guard_' }: TableOptions = {}): TableNames {
  if (typeof prefix !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]{0,31}$/.test(prefix)) {
    throw invalidArgument(
      'prefix',
      prefix,
      'must be at most 32 letters, digits and underscores, no digit first',
    );
  }
  return {
    lock: `${prefix}lock`,
    entry: `${prefix}entry`,
    version: `${prefix}version`,
    run: `${prefix}run`,
    runEvent: `${prefix}run_event`,
    task: `${prefix}task`,
    node: `${prefix}node`,
    fence: `${prefix}fence`,
  };
}
