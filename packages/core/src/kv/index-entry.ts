/**
 * Entries of the two indexes: of the runs that are open, and of all runs. An entry is a hint. It is written before its
 * record or in one step with it, and taken off by a reader once it is not true any more, so a crash at any moment
 * leaves an entry too many and never one too few.
 */
import type { RunEvent, RunRecord } from '../machine/run-record.js';
import type { RunRef } from '../port/run-store.js';
import type { StateWrite, StoredEntry } from '../port/state-store.js';
import { listKey, openKey, type Slot } from './keys.js';
import { isOpen, knows, slotOf, type History, type KeptRun } from './record.js';

/**
 * How long a reader leaves an entry alone whose write it cannot find in the record: the record's own write may still
 * be on its way, from a process that was stopped between the two.
 */
export const ENTRY_GRACE_MS = 3_600_000;

/** An entry as it was read. */
export interface IndexEntry extends RunRef {
  readonly slot: Slot;
  /** The write of the record that this entry was made for. */
  readonly writeId: string;
  readonly atMs: number;
  /** Where it stands itself. */
  readonly entryKey: string;
  readonly version: string;
}

/** The entries of a new record. Another create has a slot of its own, so `absent` only fails for an own re-sending. */
export function entriesOfNew(namespace: string, run: RunRecord, event: RunEvent): StateWrite[] {
  const slot: Slot = { createdAtMs: run.createdAtMs, id: event.writeId };
  const text = valueOf(run, slot, event);
  const list = put(listKey(namespace, slot), text, 'absent', `${event.writeId}/list`);
  if (!isOpen(run)) return [list];
  return [list, put(openKey(namespace, slot), text, 'absent', `${event.writeId}/open`)];
}

/**
 * The entry of a record that is opened again. Written whatever is there, so that a reader who found the record closed
 * just before, and is about to take the old entry off, finds another version.
 */
export function entryOfOpened(
  namespace: string,
  run: RunRecord,
  history: History,
  event: RunEvent,
): StateWrite {
  const slot = slotOf({ run, history });
  return put(openKey(namespace, slot), valueOf(run, slot, event), 'any', `${event.writeId}/open`);
}

/** Takes both entries of a create that lost off again. */
export function entriesOfLost(namespace: string, run: RunRecord, event: RunEvent): StateWrite[] {
  const slot: Slot = { createdAtMs: run.createdAtMs, id: event.writeId };
  return [
    put(listKey(namespace, slot), null, 'any', `${event.writeId}/list-lost`),
    put(openKey(namespace, slot), null, 'any', `${event.writeId}/open-lost`),
  ];
}

/** Takes an entry off, if it is still the one that was read. */
export function dropped(entry: IndexEntry): StateWrite {
  return put(entry.entryKey, null, { version: entry.version }, `${entry.version}/drop`);
}

/** Whether the entry is of this record, and not of a create that lost against it. */
export function isOf(entry: IndexEntry, kept: KeptRun | null): kept is KeptRun {
  return kept?.history.slotId === entry.slot.id;
}

/** Whether an entry among the open runs can go: its write is done and over, or too old to be on its way. */
export function isStale(entry: IndexEntry, kept: KeptRun | null, nowMs: number): boolean {
  if (isOf(entry, kept) && isOpen(kept.run)) return false;
  if (isOf(entry, kept) && knows(kept.history, entry.writeId)) return true;
  return entry.atMs <= nowMs - ENTRY_GRACE_MS;
}

/** Reads an entry. */
export function parseEntry({ key, value, version }: StoredEntry): IndexEntry {
  return { ...(JSON.parse(value) as EntryValue), entryKey: key, version };
}

type EntryValue = Omit<IndexEntry, 'entryKey' | 'version'>;

function valueOf({ task, key }: RunRecord, slot: Slot, { writeId, atMs }: RunEvent): string {
  const value: EntryValue = { task, key, slot, writeId, atMs };
  return JSON.stringify(value);
}

function put(key: string, value: string | null, expect: StateWrite['expect'], writeId: string): StateWrite {
  return { key, value, expect, writeId, ttl: 'none' };
}
