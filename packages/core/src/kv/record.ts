/**
 * A run as one value of a state store: the record together with its history, so that a change and the line that tells
 * of it are one write (S4). The history is bounded; what falls out of it leaves its `writeId` behind for a while,
 * because a write in doubt is settled by finding it there.
 */
import type { RunEvent, RunRecord, StoredRun } from '../machine/run-record.js';
import type { RunRef } from '../port/run-store.js';
import { MAX_VALUE_BYTES, type StoredEntry } from '../port/state-store.js';
import { GuardError, show } from '../value/error.js';
import type { Slot } from './keys.js';

/** Lines of history that are kept: the first one and the newest. */
export const MAX_EVENTS = 128;
/** Writes beyond those that are still recognised as done. */
export const MAX_OLDER_WRITES = 512;
/** Lines that are left where record and history together are over the store's limit. */
const EVENTS_IN_NEED = 8;

/** What happened to a run so far. */
export interface History {
  /** `writeId` of the create. */
  readonly slotId: string;
  readonly events: readonly RunEvent[];
  /** `writeId`s of lines that were dropped, oldest first. */
  readonly older: readonly string[];
}

/** A record as it was read. */
export interface KeptRun extends StoredRun {
  readonly history: History;
  /** A tombstone: it only says that the key is taken. */
  readonly pruned: boolean;
}

/** Whether somebody still has to do something about it without being asked: what the sweep looks for. */
export function isOpen(run: RunRecord): boolean {
  if (run.state === 'failed') return run.compensation === 'due';
  return run.state === 'pending' || run.state === 'running';
}

/** The history of a record that is about to be created. */
export function begun(event: RunEvent): History {
  return { slotId: event.writeId, events: [event], older: [] };
}

/** The history with one more line. Progress goes first, the creation never. */
export function continued(history: History, event: RunEvent): History {
  const events = [...history.events, event];
  if (events.length <= MAX_EVENTS) return { ...history, events };
  const progress = events.findIndex(({ what }, place) => place > 0 && what === 'progress');
  const dropped = events.splice(progress === -1 ? 1 : progress, 1);
  return { ...history, events, older: remembered(history, dropped) };
}

/** Whether a write is part of this history. */
export function knows(history: History, writeId: string): boolean {
  if (history.slotId === writeId) return true;
  return history.events.some((event) => event.writeId === writeId) || history.older.includes(writeId);
}

/** Names the entries of the record in the indexes. */
export function slotOf({ run, history }: Pick<KeptRun, 'run' | 'history'>): Slot {
  return { createdAtMs: run.createdAtMs, id: history.slotId };
}

/**
 * A record with its history as a value.
 *
 * @throws GuardError `invalid-argument`: over the limit of a state store, even with most of its history dropped.
 */
export function encode(run: RunRecord, history: History): string {
  const text = textOf(run, history);
  if (fits(text)) return text;
  const shorter = textOf(run, cut(history));
  if (fits(shorter)) return shorter;
  throw new GuardError(
    'invalid-argument',
    `the record of run ${show(run.key)} of task ${show(run.task)} is ${Buffer.byteLength(shorter)} bytes, ` +
      `a state store takes ${MAX_VALUE_BYTES}: hand in or return less`,
    { key: run.key },
  );
}

/** What is left of a finished record whose time is over: its key, how it ended, and its place in the indexes (S7). */
export function encodeTombstone({ run, history }: KeptRun): string {
  const bare: Kept = { run: stripped(run), slotId: history.slotId, events: [], older: [], pruned: true };
  return JSON.stringify(bare);
}

/**
 * Reads what `encode` or `encodeTombstone` wrote.
 *
 * @throws GuardError `unavailable`, naming the run: something else wrote it.
 */
export function decode({ key: entry, value, version }: StoredEntry, { task, key }: RunRef): KeptRun {
  let cause: unknown;
  try {
    const { run, slotId, events, older, pruned = false } = JSON.parse(value) as Partial<Kept>;
    const isRun = typeof run?.state === 'string' && run.task !== undefined && run.key !== undefined;
    if (isRun && slotId !== undefined && events !== undefined && older !== undefined) {
      return { run, version, history: { slotId, events, older }, pruned };
    }
  } catch (error) {
    cause = error;
  }
  const what = `the record of run ${key} of ${task} cannot be read`;
  const advice = `something else than a guard wrote it; repair or delete the entry ${entry}`;
  throw new GuardError('unavailable', `${what}: ${advice}`, { key, cause });
}

interface Kept extends History {
  readonly run: RunRecord;
  readonly pruned?: boolean;
}

function textOf(run: RunRecord, history: History): string {
  const kept: Kept = { run, ...history };
  return JSON.stringify(kept);
}

function fits(text: string): boolean {
  return text.length * 3 <= MAX_VALUE_BYTES || Buffer.byteLength(text) <= MAX_VALUE_BYTES;
}

function cut(history: History): History {
  const events = history.events.slice(-EVENTS_IN_NEED);
  return { ...history, events, older: remembered(history, history.events.slice(0, -EVENTS_IN_NEED)) };
}

function remembered(history: History, dropped: readonly RunEvent[]): readonly string[] {
  return [...history.older, ...dropped.map(({ writeId }) => writeId)].slice(-MAX_OLDER_WRITES);
}

function stripped(run: RunRecord): RunRecord {
  const { input: _input, lastFault: _lastFault, ...bare } = run;
  if (bare.state === 'failed') return { ...bare, fault: { name: bare.fault.name, message: '' } };
  if (bare.state !== 'completed') return bare;
  const { value, ...completed } = bare;
  // Whoever asks for the result must learn that there was one, not that it was nothing.
  return value === undefined ? completed : { ...completed, valueOmitted: true };
}
