/** Rows of the table of entries as statements answer them, and as the state store uses them. */
import { FENCE_KEPT_MS, type Fence, type StoredEntry } from '@guard/core';
import type { Lifetimes } from '../lifetime.js';
import type { RawRow } from './lock-rows.js';

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
export function entryRow(raw: RawRow): EntryRow {
  const lock = raw['fence_lock'];
  return {
    id: raw['id'] as bigint,
    key: raw['key'] as string,
    value: raw['value'] as string | null,
    version: raw['version'] as bigint,
    writeId: raw['write_id'] as string,
    fence: typeof lock === 'string' ? { lock, token: raw['fence_token'] as bigint } : undefined,
    boot: raw['boot'] as string,
    since: Number(raw['since']),
    deadline: raw['deadline'] === null ? null : Number(raw['deadline']),
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
