/**
 * Rows as better-sqlite3 answers them, every integer as a `bigint` that is exact to 64 bits. A column that is not what
 * a statement promises is a fault of the file, and is said at once.
 */

/** A row by its columns. */
export type Row = Readonly<Record<string, string | bigint | null>>;

/** A column of text. */
export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new TypeError(`column ${column} holds no text`);
  return value;
}

/** A column of text, or nothing. */
export function textOrNull(row: Row, column: string): string | null {
  return row[column] === null ? null : text(row, column);
}

/** A column with a whole number, exact. */
export function integer(row: Row, column: string): bigint {
  const value = row[column];
  if (typeof value !== 'bigint') throw new TypeError(`column ${column} holds no whole number`);
  return value;
}

/** A column with a whole number that is small: a time, a count. */
export function count(row: Row, column: string): number {
  return Number(integer(row, column));
}
