/**
 * The record of a task: what all nodes know about it together. It is a value that changes only by compare-and-set, and
 * that one step is where everything about a schedule is decided: which instants are to be run, by whom they were
 * planned, and what was passed over. Whoever loses the step has decided nothing.
 */
import type { Absence } from './absence.js';
import type { RunTrigger } from './run-record.js';

/** Why instants were passed over. */
export type PassedOver =
  /** Nobody planned them in time. */
  'missed' | 'paused' | 'definition-changed';

/** Instants that nobody runs: those of a range that have no record of their own. Its record has the key that `summaryKey` makes of `fromMs`. */
export interface PassedSummary {
  /** The low-water mark it started from: the first instant is after it. */
  readonly fromMs: number;
  /** The last instant, or the moment up to which there was none. */
  readonly toMs: number;
  readonly count: number;
  /** Counting stopped at `count`. */
  readonly atLeast?: boolean;
  readonly reason: PassedOver;
  /** Why they were missed, from when on. */
  readonly causes?: readonly Absence[];
  /** Its record is known to be written. */
  readonly told?: boolean;
}

/** An instant at or below the mark that is to be run, and whose record may not have been written yet. */
export interface Planned {
  readonly instantMs: number;
  readonly trigger: RunTrigger;
  readonly plannedAtMs: number;
}

/** A pause that was ended before what had been missed ahead of it was settled: what fell into it is never run. */
export interface PauseGap {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Instants that `catchUp` chose together, from the first to the last one. */
export interface Chosen {
  readonly fromMs: number;
  readonly toMs: number;
  /** When they were chosen. */
  readonly atMs: number;
}

/** The schedule that is in force. */
export interface StoredDefinition {
  /** Of the text: which instants there are. Nodes with another one leave the task alone. */
  readonly hash: string;
  readonly text: string;
  readonly sinceMs: number;
  /**
   * What becomes of an instant before it begins, as the node says that started last (`sinceMs`). Each node goes by its
   * own: this is here so that nodes that differ can tell.
   */
  readonly terms?: { readonly text: string; readonly sinceMs: number };
}

/** A schedule that was in force before, for the instants after `fromMs` and up to `toMs`. */
export interface EarlierDefinition {
  /** Empty where several are taken together. */
  readonly text: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** What all nodes know about a task. All times are the run store's. */
export interface TaskRecord {
  readonly task: string;
  readonly definition?: StoredDefinition;
  /** Those that were in force before, oldest first: what became of an instant of then is told by its own schedule. */
  readonly earlier?: readonly EarlierDefinition[];
  /** No instant at or before this is ever planned again. */
  readonly lowWaterMarkMs?: number;
  readonly paused?: { readonly note: string; readonly sinceMs: number };
  /** When the last pause was ended, and why, where somebody said so. */
  readonly resumed?: { readonly note?: string; readonly atMs: number };
  /** Pauses above the mark that are over, oldest first: whoever plans next settles what came before each of them. */
  readonly gaps?: readonly PauseGap[];
  /** Where `catchUp` began when it last had to choose: what waits with a record since before it is not run any more. */
  readonly caughtUpFromMs?: number;
  /** What it chose then, of what was missed: newer instants take no turn of these, unless the locks were away since. */
  readonly chosen?: Chosen;
  readonly lastSuccessMs?: number;
  /** The wish that wrote this: a `putTask` whose answer was lost is settled by reading the record back (S4). */
  readonly writeId?: string;
  /** What the last alarm was raised about, so that one node raises it once. */
  readonly alarm?: string;
  readonly planned?: readonly Planned[];
  /** What was passed over last. It is here before it has a record, so that a crash between the two loses nothing. */
  readonly summary?: PassedSummary;
}

/** Run key of an occurrence: its instant in UTC, to the millisecond, the same text on every node. */
export function occurrenceKey(instantMs: number): string {
  return new Date(instantMs).toISOString();
}

/** Whether a text is the run key of some instant. */
export function isOccurrenceKey(key: string): boolean {
  const instantMs = /^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/.test(key) ? Date.parse(key) : NaN;
  return !Number.isNaN(instantMs) && occurrenceKey(instantMs) === key;
}

/** Whether a text could be the run key of a summary or of a window. */
export function isPartKey(key: string): boolean {
  const [instant = '', part = '', ...rest] = key.split('/');
  return rest.length === 0 && /^(passed|\d+ms)$/.test(part) && isOccurrenceKey(instant);
}

/** Run key of a summary; no instant has it. */
export function summaryKey(fromMs: number): string {
  return `${occurrenceKey(fromMs)}/passed`;
}
