/** Rows of entries as the state port shows them. */
import type { StoredEntry } from '@guard/core';
import { count, integer, text, textOrNull, type Row } from '../row.js';

/** The entry of a row with key, value, version and what is left of its time. */
export function entryOf(row: Row): StoredEntry | null {
  const value = textOrNull(row, 'value');
  if (value === null) return null;
  const entry = { key: text(row, 'key'), value, version: String(integer(row, 'version')) };
  if (row['left_us'] === null) return entry;
  return { ...entry, expiresInMs: Math.ceil(count(row, 'left_us') / 1_000) };
}
