/**
 * Where a run store keeps its things in a state store: all of it in the section of runs, one folder per kind. A task
 * is told from its key by its length, so no pair of names can be taken for another, and nothing has to be escaped
 * into a longer name than the port allows.
 */
import type { RunRef } from '../port/run-store.js';
import { fullKey } from '../value/key.js';

/** Names the entries of one record in both indexes; unique per create, so nobody's tidying hits another's. */
export interface Slot {
  readonly createdAtMs: number;
  /** The `writeId` of the create. */
  readonly id: string;
}

/** The record of a run. */
export function recordKey(namespace: string, { task, key }: RunRef): string {
  return fullKey(namespace, 'run', `r/${task.length}:${task}/${key}`);
}

/** The record of a task. */
export function taskKey(namespace: string, task: string): string {
  return fullKey(namespace, 'run', `t/${task}`);
}

/** The announcement of a node. */
export function nodeKey(namespace: string, id: string): string {
  return fullKey(namespace, 'run', `n/${id}`);
}

/** Announcements of all nodes. */
export function nodePrefix(namespace: string): string {
  return nodeKey(namespace, '');
}

/** Records that somebody still has to do something about, oldest first. */
export function openPrefix(namespace: string): string {
  return fullKey(namespace, 'run', 'o/');
}

/** The entry of one record among the open ones. */
export function openKey(namespace: string, slot: Slot): string {
  return `${openPrefix(namespace)}${digits(slot.createdAtMs)}/${slot.id}`;
}

/** All records, newest first. */
export function listPrefix(namespace: string): string {
  return fullKey(namespace, 'run', 'a/');
}

/** The entry of one record among all. */
export function listKey(namespace: string, slot: Slot): string {
  return `${listPrefix(namespace)}${digits(LATEST_MS - slot.createdAtMs)}/${slot.id}`;
}

const DIGITS = 15;
const LATEST_MS = 10 ** DIGITS - 1;

/** A time as text that sorts like the time. */
function digits(ms: number): string {
  return String(Math.min(Math.max(Math.floor(ms), 0), LATEST_MS)).padStart(DIGITS, '0');
}
