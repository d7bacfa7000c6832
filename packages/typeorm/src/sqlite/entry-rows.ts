/** Rows of the table of entries, as the state store uses them. */
import { FENCE_KEPT_MS, type Fence, type StoredEntry } from '@guard/core';
import type { Lifetimes } from '../lifetime.js';
import { count, integer, text, textOrNull, type Row } from '../row.js';

/** The last write of a key. */
export interface EntryRow {
  readonly id: bigint;
  readonly key: string;
  /** `null`: it was a delete. */
  readonly value: string | null;
  readonly version: bigint;
  readonly writeId: string;
  readonly fence: Fence | undefined;
  readonly boot: string;
  readonly since: number;
  /** When the entry expires, or when a deleted one is forgotten; `null`: never. */
  readonly deadline: number | null;
}

/** The entry of a row. */
export function entryRow(row: Row): EntryRow {
  const lock = textOrNull(row, 'fence_lock');
  return {
    id: integer(row, 'id'),
    key: text(row, 'key'),
    value: textOrNull(row, 'value'),
    version: integer(row, 'version'),
    writeId: text(row, 'write_id'),
    fence: lock === null ? undefined : { lock, token: integer(row, 'fence_token') },
    boot: text(row, 'boot'),
    since: count(row, 'since'),
    deadline: row['deadline'] === null ? null : count(row, 'deadline'),
  };
}

/** How long the row's time lasts; 0 or less: it is over. */
export function leftMs(row: EntryRow, lifetimes: Lifetimes): number {
  const { key, boot, since, deadline } = row;
  if (deadline === null) return Infinity;
  return lifetimes.leftMs(key, `${boot} ${since} ${deadline}`, { boot, since, deadline });
}

/** What readers see of the row: an entry, or nothing. */
export function storedEntry(row: EntryRow, lifetimes: Lifetimes): StoredEntry | null {
  const { key, value, version } = row;
  const expiresInMs = leftMs(row, lifetimes);
  if (value === null || expiresInMs <= 0) return null;
  const stored = { key, value, version: String(version) };
  return expiresInMs === Infinity ? stored : { ...stored, expiresInMs };
}

/** Whether the row means nothing any more, not even to a late write. */
export function isForgotten(row: EntryRow, lifetimes: Lifetimes): boolean {
  const keptMs = row.value === null ? 0 : FENCE_KEPT_MS;
  return leftMs(row, lifetimes) <= -keptMs;
}
