/**
 * What can happen to a run, as data: the input of `machine/run.ts`. Every wish carries the time by the run store's
 * clock and whatever it needs to be judged, so that the machine itself reads no clock and knows no task.
 */
import type {
  Compensation,
  RunBase,
  RunEvent,
  RunFault,
  RunLock,
  RunNode,
  RunRecord,
  RunSummary,
} from './run-record.js';

/** What a node does with a run whose attempt was cut off: its node died, or its lock was lost, or it stalled. */
export type OnCrash = 'retry' | 'fail' | 'hold';

/** Who works on a run, and under which lock. */
export interface Worker {
  readonly lock: RunLock;
  readonly node: RunNode;
}

/** The part of a new record that its maker decides. */
export type NewRun = Pick<RunBase, 'task' | 'key' | 'id' | 'trigger' | 'scheduledForMs' | 'keyed' | 'input'>;

/** What a task says about crashes. */
export interface CrashPolicy {
  readonly onCrash: OnCrash;
  /** After this many takeovers the run is put on hold, whatever `onCrash` says. */
  readonly maxTakeovers: number;
  /** The task has a compensation: a move to `failed` makes it due. */
  readonly compensate: boolean;
}

/** A result as it is kept. */
export interface KeptValue {
  /** JSON text; absent for `undefined` and where it was omitted. */
  readonly value?: string;
  /** It was over the limit, or could not be encoded. */
  readonly valueOmitted?: boolean;
}

/** One wish to change a run. */
export type RunMove =
  /** A new record: pending, or (with `start`) running at once, under a lock that was got first. */
  | {
      readonly type: 'create';
      readonly run: NewRun;
      readonly availableAtMs?: number;
      readonly start?: Worker;
      /** It only says that occurrences were passed over, and why. */
      readonly passed?: { readonly reason: string; readonly summary: RunSummary };
    }
  /** An attempt begins. `trigger`: what caused it. */
  | { readonly type: 'start'; readonly by: Worker; readonly trigger: RunBase['trigger'] }
  /** Another claim goes on with a running run, under a larger token. */
  | { readonly type: 'take-over'; readonly by: Worker; readonly maxTakeovers: number }
  /** `progress()` of the attempt that runs under `token`. */
  | { readonly type: 'progress'; readonly token: string; readonly progress: string }
  | ({
      readonly type: 'complete';
      readonly token: string;
      readonly node: RunNode;
      /** The lock was lost, and nobody had moved the record. */
      readonly late?: boolean;
    } & KeptValue)
  /** The work rejected while its lock was held. With `retryAtMs` it is tried again, without it has failed. */
  | {
      readonly type: 'fail-attempt';
      readonly token: string;
      readonly fault: RunFault;
      readonly retryAtMs?: number;
      readonly compensate: boolean;
    }
  /** A node that shuts down gives its run to the others. */
  | { readonly type: 'hand-back'; readonly token: string }
  /** The attempt was cut off. `by`: its own lock, or a newer grant of it. */
  | {
      readonly type: 'crash';
      readonly by: Worker;
      readonly fault: RunFault;
      readonly policy: CrashPolicy;
      /** Why it waits for a person, where it is put on hold. Default: what the policy says. */
      readonly heldAs?: string;
    }
  /** A run that no machine may go on with, such as one of another lock backend. */
  | { readonly type: 'hold'; readonly reason: string }
  | { readonly type: 'skip'; readonly reason: string; readonly blockedBy?: string }
  | { readonly type: 'expire'; readonly reason: string }
  /** The next call with the key of a skipped run; never of an occurrence. */
  | { readonly type: 'reopen'; readonly input?: string }
  /** The next call with the key of a failed run. */
  | { readonly type: 'rerun'; readonly input?: string }
  /** A person's word. `by`: the lock under which a running run was found to be an orphan. */
  | ({
      readonly type: 'decide';
      readonly decision: Decision;
      readonly note: string;
      /** Where the person spoke. */
      readonly node: RunNode;
      readonly compensate: boolean;
      readonly by?: Worker;
    } & KeptValue)
  | { readonly type: 'compensation-start'; readonly by: Worker }
  | {
      readonly type: 'compensation-end';
      readonly token: string;
      readonly result: Extract<Compensation, 'done' | 'error'>;
      readonly fault?: RunFault;
    }
  /** A person says that no compensation is needed any more. */
  | { readonly type: 'waive'; readonly note: string }
  /** One node raises the alarm about a run that is overdue. */
  | { readonly type: 'alarm' };

/** What a person can decide about a run. */
export type Decision = 'retry' | 'complete' | 'fail';

/** A line of history before it has its `writeId`. */
export type EventDraft = Omit<RunEvent, 'writeId'>;

/** Why a move is not allowed. */
export type MoveRefusal =
  /** There is no record. */
  | 'absent'
  /** The key has a record. */
  | 'exists'
  /** The state has no such arrow. */
  | 'wrong-state'
  /** Completed, expired, or an occurrence's skipped: nothing leads out of these. */
  | 'terminal'
  /** Written under another grant than the record's, or not under a larger one where that is needed. */
  | 'stale-token'
  /** The lock is of another backend than the record's. */
  | 'other-backend'
  /** It was taken over as often as the task allows. */
  | 'max-takeovers'
  /** A compensation is due or went wrong: it comes first, or a person waives it. */
  | 'compensation-due'
  /** It is so already. */
  | 'already';

/** The new record with the line of history that belongs to it, or why there is none. */
export type Stepped =
  { readonly next: RunRecord; readonly event: EventDraft } | { readonly refused: MoveRefusal };
