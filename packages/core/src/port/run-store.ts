/**
 * What a run store implements: records of runs with a unique key per task, changed by compare-and-set, with their
 * history; the tasks' own records; and the nodes that are up. `kvRuns` implements it on any state store, an adapter
 * with real tables by itself.
 */
import type { RunEvent, RunRecord, StoredRun } from '../machine/run-record.js';
import type { TaskRecord } from '../machine/task-record.js';
import type { Failed } from './lock-backend.js';

export type { TaskRecord } from '../machine/task-record.js';

/** Names a record. */
export interface RunRef {
  readonly task: string;
  readonly key: string;
}

/** What became of a create. */
export type CreateAnswer =
  /** Written, now or by an earlier sending of the same event's `writeId`. */
  | { readonly status: 'created'; readonly stored: StoredRun }
  /** The key has a record already. */
  | { readonly status: 'exists'; readonly stored: StoredRun }
  | Failed;

/** What became of a transition. */
export type TransitionAnswer =
  /** Written, now or by an earlier sending of the same event's `writeId` (found in the run's events). */
  | { readonly status: 'moved'; readonly stored: StoredRun }
  /** The record has another version, or is gone (`null`). Losing a compare-and-set is normal. */
  | { readonly status: 'conflict'; readonly stored: StoredRun | null }
  | Failed;

/** Which runs the sweep has to look at. */
export interface DueQuery {
  /** Tasks that the asking node can run. */
  readonly tasks: readonly string[];
  /** Pending runs that were due at least this long ago by the store's clock; 0: all that are due. */
  readonly overdueMs: number;
  readonly limit: number;
  /** Where the last page ended. */
  readonly cursor?: string;
}

/** Which runs a person wants to see; newest first. */
export interface RunQuery {
  readonly task?: string;
  readonly states?: readonly RunRecord['state'][];
  readonly limit: number;
  readonly cursor?: string;
}

/** One page of runs. */
export interface RunPage {
  readonly runs: readonly StoredRun[];
  readonly cursor?: string;
  /** For each record of the page that is there and cannot be read, an error that names its task and key. Default: none. */
  readonly unreadable?: readonly Error[];
}

/** What may go. Only completed, skipped, expired and failed runs without a due compensation are ever pruned. */
export interface PruneQuery {
  /** Records finished before this lose their history, value and fault, and stay as a tombstone of their key (S7). */
  readonly recordsBeforeMs: number;
  /** Tombstones of records finished before this go too. */
  readonly keysBeforeMs: number;
  /** Keys of instants above a task's low-water mark are kept whatever their age. */
  readonly limit: number;
}

/** A task's record with its version; `null` expects none. */
export interface StoredTask {
  readonly record: TaskRecord;
  readonly version: string;
}

/** One start of one process. */
export interface NodeRecord {
  readonly id: string;
  readonly label: string;
  /** Full key of the lock that it holds for as long as it lives. */
  readonly lockKey: string;
  /** `name` of its lock backend. */
  readonly backend: string;
  readonly startedAtMs: number;
  readonly tasks: readonly string[];
  /** Hashes of the schedules that it follows, by task: tells whether a stored definition is alive. */
  readonly schedules?: Readonly<Record<string, string>>;
}

/** A run store. Texts of keys and tasks are compared byte by byte; a task of one namespace never sees another's. */
export interface RunStore {
  /** Names the store and the place it keeps its records in. */
  readonly name: string;
  readonly traits: {
    /** A record can be created in state `running` in one step (C5: two trips instead of three). */
    readonly createRunning: boolean;
    /** How much later than asked for the announcement of a node may end. Never earlier. Default 0. */
    readonly ttlGranularityMs?: number;
  };
  /** The store's own time, in milliseconds since the epoch. */
  now(): Promise<number>;
  create(namespace: string, run: RunRecord, event: RunEvent): Promise<CreateAnswer>;
  get(namespace: string, ref: RunRef): Promise<StoredRun | null>;
  /** Writes `next` if the record still has `expected`; record and event are one step. */
  transition(
    namespace: string,
    expected: string,
    next: RunRecord,
    event: RunEvent,
  ): Promise<TransitionAnswer>;
  /** Running runs, due pending runs, and failed runs whose compensation is due, oldest first. */
  due(namespace: string, query: DueQuery): Promise<RunPage>;
  list(namespace: string, query: RunQuery): Promise<RunPage>;
  /** How many records and tombstones went. */
  prune(namespace: string, query: PruneQuery): Promise<number>;
  /** The history of a run, oldest first. */
  events(namespace: string, ref: RunRef): Promise<readonly RunEvent[]>;
  task(namespace: string, task: string): Promise<StoredTask | null>;
  /** Compare-and-set; `null` expects no record. Answers the new version, or `null`: somebody was faster. */
  putTask(namespace: string, expected: string | null, next: TaskRecord): Promise<string | null>;
  /** Announces a node, or keeps it announced, for `ttlMs`. */
  putNode(namespace: string, node: NodeRecord, ttlMs: number): Promise<void>;
  removeNode(namespace: string, id: string): Promise<void>;
  /** Nodes whose announcement has not run out. */
  nodes(namespace: string): Promise<readonly NodeRecord[]>;
  close(): Promise<void>;
}
