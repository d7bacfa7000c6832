/**
 * What locks, state and runs on a database server ask of it: single statements on the application's pool. The dialects
 * differ in their texts, which all take the same parameters by the same numbers, and in nothing else.
 */
import type { Row } from '../row.js';

/** What Guard binds to a parameter. */
export type Value = string | number | bigint | null | readonly (string | null)[];

/** Statements on a pool, one connection each. */
export interface Statements {
  /**
   * The rows that a statement answers. A statement that was rolled back because of somebody else's is sent again.
   *
   * @param patienceMs how long all of it may take.
   * @throws GuardError `schema-missing`, `unavailable`, `closed`; or the error of the server or the connection.
   */
  rows(text: string, values: readonly Value[], patienceMs?: number): Promise<readonly Row[]>;
  /** The parameters of a statement for many rows, from the columns of those rows. */
  batch(columns: readonly (readonly (string | null)[])[]): readonly Value[];
  /** No statement is sent any more. The pool stays open: it is the application's. */
  close(): void;
}
