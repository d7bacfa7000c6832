/**
 * What a guard tells about itself. Metrics, traces and logs are built on these, outside core.
 */
import type { RunRecord } from '../machine/run-record.js';

/** Every event with what it carries. Keys are the application's own, without the namespace. */
export interface GuardEvents {
  'lock-granted': { readonly key: string; readonly token: bigint; readonly waitedMs: number };
  'lock-released': {
    readonly key: string;
    readonly token: bigint;
    readonly result: 'released' | 'lost' | 'unknown';
  };
  'lock-lost': { readonly key: string; readonly token: bigint; readonly reason: string };
  'lock-suspect': { readonly key: string; readonly token: bigint };
  'lock-forced': { readonly key: string; readonly token: bigint; readonly note: string };
  'claim-queued': { readonly key: string; readonly ahead?: number };
  'claim-cancelled': {
    readonly key: string;
    readonly reason: 'aborted' | 'timeout' | 'failed' | 'closed' | 'late';
  };
  'run-started': { readonly run: RunRecord };
  'run-completed': { readonly run: RunRecord };
  'run-failed': { readonly run: RunRecord; readonly error: unknown };
  'run-skipped': { readonly task: string; readonly key?: string; readonly reason: string };
  'run-taken-over': { readonly run: RunRecord };
  'run-expired': { readonly run: RunRecord };
  'run-on-hold': { readonly run: RunRecord };
  'run-refused': { readonly run: RunRecord; readonly reason: string };
  'run-long': { readonly run: RunRecord; readonly runningMs: number };
  'run-unguarded': { readonly task: string; readonly key?: string; readonly cause: unknown };
  alarm:
    | { readonly run: RunRecord; readonly reason: 'failed' | 'on-hold' | 'overdue' }
    /** The task has not completed for `alarmAfter`; `lastSuccess` is absent where it never has. */
    | {
        readonly task: string;
        readonly reason: 'no-success';
        readonly lastSuccess?: Date;
        readonly run?: undefined;
      };
  /**
   * A node that started later means something else by the schedule of the task. The text of an expression: its instants
   * are others, and this node does not schedule the task. The text of settings (`catchUp: latest`, and so on): the
   * instants are the same, and each node decides about those that it plans or begins by its own settings.
   */
  'schedule-conflict': { readonly task: string; readonly own: string; readonly inForce: string };
  /**
   * The wall clock of this machine and the run store's are at least so far apart: the time that the store's answer may
   * have been on its way is taken off. `stopped`: too far, this node plans no occurrences until they agree again.
   */
  'clock-skew': { readonly skewMs: number; readonly stopped: boolean };
  /** A timer of the scheduler came so late: the event loop was blocked, or the process stood still. */
  'loop-lag': { readonly lagMs: number };
  'backend-unavailable': { readonly backend: string; readonly cause: unknown };
  'backend-recovered': { readonly backend: string };
  /** A listener threw, a disposer could not release, a background step failed: nothing is silent (S8). */
  error: { readonly error: unknown; readonly during: string };
}

/** A listener of one event. */
export type GuardListener<E extends keyof GuardEvents> = (event: GuardEvents[E]) => void;
