/** On which terms somebody wants a run to begin, and what follows from them without asking anybody. */
import type { Run, SkipReason } from '../../api/run.js';
import type { Admission, Asker } from '../../machine/run-admission.js';
import type { NewRun, RunMove, Worker } from '../../machine/run-move.js';
import type { RunFault, RunRecord, StoredRun } from '../../machine/run-record.js';
import { afterCrash } from '../../machine/run.js';
import { causeOf } from '../../machine/waiting.js';
import { GuardError } from '../../value/error.js';
import type { HeldLock } from '../lock/lock-service.js';
import type { RunHost } from './run-host.js';
import { crashPolicy, type RunPolicy } from './run-task.js';

/** What is recorded about an attempt that nobody could tell of any more. */
export const CRASH: RunFault = { name: 'Crash', message: 'its node is gone, or its lock was lost' };

/** Who wants to get in. */
export interface EntryTerms {
  readonly run: NewRun;
  readonly policy: RunPolicy;
  readonly compensate?: ((run: Run) => unknown) | undefined;
  /** How long to wait for the lock. */
  readonly waitMs: number;
  /** A record to go on with; without one, one is created. */
  readonly given?: StoredRun;
  /** The given record is this node's own, between two attempts. */
  readonly mine?: boolean;
  /** The sweep asks: nobody waits for an answer, and a record that cannot be had is left as it is. */
  readonly sweeping?: boolean;
  /** When a record that is created here was due; what is late can expire. Default: now. */
  readonly availableAtMs?: number;
  /** By the run store's clock: a lock that comes later than this begins nothing here, and the record waits. */
  readonly beginUntilMs?: number | undefined;
  /** Asked under the lock, where that took long to come: whether `catchUp` has passed the run over meanwhile. */
  readonly isPassed?: () => Promise<boolean>;
  /** Somebody can go on with it later: it is registered, or has a key that another call can name. */
  readonly canGoOn: boolean;
}

/** How it ended. */
export type Entry =
  | {
      readonly entered: true;
      readonly stored: StoredRun;
      readonly by: Worker;
      readonly lock: HeldLock | undefined;
    }
  | { readonly entered: false; readonly reason: SkipReason; readonly stored: StoredRun | undefined };

/** How these terms look at a record. */
export function askerOf(host: RunHost, terms: EntryTerms, record: RunRecord, mine: boolean): Asker {
  const { policy, sweeping } = terms;
  const byDefault = record.scheduledForMs === undefined ? 'rerun' : 'keep';
  return {
    mine,
    backend: host.locks.backendName,
    ifFailed: sweeping ? 'keep' : (policy.ifFailed ?? byDefault),
    overdueMs: host.sweepIntervalMs,
    keyed: terms.run.keyed === true,
    startingDeadlineMs: policy.startingDeadlineMs,
  };
}

/** The move of an admission that needs the lock. */
export function moveFor(
  act: Exclude<Admission['act'], 'leave' | 'expire'>,
  record: RunRecord,
  terms: EntryTerms,
  by: Worker,
  nowMs: number,
): RunMove {
  const { policy, run, compensate } = terms;
  const input = run.input === undefined ? {} : { input: run.input };
  switch (act) {
    case 'start':
      return { type: 'start', by, trigger: causeOf(record, nowMs) };
    case 'take-over':
      return afterCrash(record, policy) === 'retry'
        ? { type: 'take-over', by, maxTakeovers: policy.maxTakeovers }
        : { type: 'crash', by, fault: CRASH, policy: crashPolicy(policy, compensate !== undefined) };
    case 'rerun':
      return { type: 'rerun', ...input };
    case 'reopen':
      return { type: 'reopen', ...input };
  }
}

/** A fault as the reason of a skip. */
export function codeOf(error: unknown): string {
  return GuardError.is(error) ? error.code : 'error';
}
