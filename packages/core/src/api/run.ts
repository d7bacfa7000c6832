/**
 * Single runs as an application sees them: what it may ask for, what its work is handed, and what comes back. Being
 * skipped is an outcome, not an error, so that nobody can take it for a result.
 */
import type { LeftAlone } from '../machine/run-admission.js';
import type { OnCrash } from '../machine/run-move.js';
import type { RunEvent, RunFault, RunRecord, RunTrigger } from '../machine/run-record.js';
import type { Duration } from '../value/duration.js';
import type { Key } from '../value/key.js';
import type { ScheduleOptions, Series } from './schedule.js';

/** The longest result, input or progress that is kept, in bytes of UTF-8. */
export const MAX_RECORDED_BYTES = 65_536;

/** One attempt, as its work sees it; `currentRun()` is the same thing. */
export interface Run {
  /** Identity of the record. */
  readonly id: string;
  readonly task: string;
  /** Run key: a caller's key, an instant, a window's start, or a random one. */
  readonly key: string;
  /** The instant of an occurrence. */
  readonly scheduledFor: Date | undefined;
  /** 1 for the first attempt. An attempt that was cut off or handed back is not counted. */
  readonly attempt: number;
  readonly trigger: RunTrigger;
  /** What the last failed attempt ended with; in a compensation, why the run failed. */
  readonly lastFault: RunFault | undefined;
  /** The last stored `progress()` of this run, also of an attempt on another node. */
  readonly lastProgress: unknown;
  /** `false`: the task allowed a start without its lock (`run-unguarded`), and nothing excludes others. */
  readonly guarded: boolean;
  /**
   * Fencing token of the run's lock. Hand it to whatever the run writes to.
   *
   * @throws GuardError `lock-lost` in a run without a lock.
   */
  readonly token: bigint;
  /**
   * Must stop: aborts when the lock is lost (`lock-lost`), at `timeout` or `stallAfter` (`run-timeout`), and at the
   * end of the grace of `close()` (`closed`). Reading it checks the lock's deadline first (L1).
   */
  readonly signal: AbortSignal;
  /** Please finish: aborts when the guard begins to close. What rejects with its reason is handed back. */
  readonly stopSignal: AbortSignal;
  /**
   * Keeps the newest `data` (JSON up to 64 KiB) with the record, and resets `stallAfter`. Buffered: returns at once
   * and never waits for the store, so the last of many calls may be the only one that is kept.
   *
   * @throws GuardError `invalid-argument`: not JSON, or too long.
   */
  progress(data: unknown): void;
  /** @throws GuardError `lock-lost` or `lock-suspect`, as of `Lock.assertHeld()`. */
  assertHeld(): void;
}

/** Why a call did not run its work. */
export type SkipReason =
  /** The state of the key's record. */
  | LeftAlone
  /** Another run of the task holds its lock. */
  | 'overlap'
  /** The lock could not be had, and nobody can say that a run holds it. */
  | 'busy'
  /** The lock backend could not be asked, and `onUnavailable` is `'skip'`. */
  | 'unavailable';

/** What became of a call. The work's own error is thrown as it is. */
export type RunOutcome<T> =
  | {
      readonly status: 'completed';
      /** What the work returned, or with `onDuplicate: 'result'` what was recorded. */
      readonly value: T;
      readonly run: RunRecord;
    }
  | {
      readonly status: 'skipped';
      readonly reason: SkipReason;
      /** The record under the key, where there is one. */
      readonly run?: RunRecord;
    };

/** How long to wait before the next attempt. */
export interface Backoff {
  /** Before the second attempt. Default `'1s'`. */
  readonly initial?: Duration;
  /** Each pause is so many times the one before. Default 2. */
  readonly factor?: number;
  /** No pause is longer. Default `'5m'`. */
  readonly max?: Duration;
  /** Part of a pause that is drawn at random: 0 for none, 1 for all of it. Default 0.2. */
  readonly jitter?: number;
}

/** Turns results into text and back, where JSON is not enough. */
export interface Codec {
  readonly encode: (value: unknown) => string;
  readonly decode: (text: string) => unknown;
}

/** What holds for every run of a task. */
export interface RunSettings {
  /** One run per window of this length, counted from the epoch by the run store's clock. Not together with `key`. */
  readonly window?: Duration;
  /** How long to wait for the lock; with `onDuplicate: 'result'` also for a run in progress. Default 0. */
  readonly wait?: Duration;
  /** Lease of the run's lock, renewed while the work goes on. Default: the guard's, 30 s. */
  readonly ttl?: Duration;
  /** Default: one attempt. */
  readonly retry?: {
    /** Attempts in all, the first one included: 1 to 1,000. */
    readonly attempts: number;
    /** One pause for all, or how it grows. Default: `{ initial: '1s', factor: 2, max: '5m', jitter: 0.2 }`. */
    readonly backoff?: Duration | Backoff;
  };
  /** Longest attempt: then `signal` aborts and the attempt has failed (`run-timeout`). Default: none. */
  readonly timeout?: Duration;
  /** Longest time without `progress()`: then `signal` aborts, and it counts as a crash. Default: none. */
  readonly stallAfter?: Duration;
  /** When the node is gone, or the lock was lost and the work rejected. Default `'retry'`. */
  readonly onCrash?: OnCrash;
  /** After so many takeovers the run is put on hold. Default 3. */
  readonly maxTakeovers?: number;
  /** What a call does whose key has failed before. Default `'rerun'`; for an occurrence `'keep'`. */
  readonly ifFailed?: 'keep' | 'rerun';
  /**
   * What a call does that is not the one to run. `'skip'`: a skipped outcome. `'result'`: the recorded result, after
   * joining a run in progress for up to `wait`; a skipped outcome where there is none. `'throw'`: `run-skipped`.
   * Default `'skip'`.
   */
  readonly onDuplicate?: 'skip' | 'result' | 'throw';
  /**
   * When the lock backend cannot be asked. `'run-unguarded'` runs without a lock: S1 does not hold, there is no token
   * and fenced calls are refused; the run key still counts. Default: the guard's, `'throw'`.
   */
  readonly onUnavailable?: 'throw' | 'skip' | 'run-unguarded';
  /** A first attempt that could not begin within this time of being due is given up (`expired`). Default: none. */
  readonly startingDeadline?: Duration;
  /** How long the outcome is tried to be written, with the lock renewed. Default `'5m'`; at close the grace. */
  readonly settleTimeout?: Duration;
  /** How long after its time-out work may go on before its lease is left to run out. Default `'30s'`. */
  readonly letGoAfter?: Duration;
  /** How results are kept. Default: JSON. */
  readonly codec?: Codec;
}

/**
 * Options of `guard.run`. With `cron` or `every` the run is an occurrence: the instant that the call stands for by this
 * node's clock, which is the last one, or the next one where it is so near that the caller's timer came early (then it
 * is waited for). For callers whose own timer follows the same series.
 */
export interface RunOptions extends RunSettings, Series {
  /** Identity of the run: runs of one key never happen twice, and have a lock of their own. */
  readonly key?: Key;
  /** JSON up to 64 KiB that is kept with the record. */
  readonly input?: unknown;
  /** Undoes what a run left behind that has failed for good; runs under its lock. At least once: key your effects. */
  readonly compensate?: (run: Run) => unknown;
}

/** Options of `guard.task`: a task that this node can run again by itself. */
export interface TaskOptions<I> extends RunSettings, ScheduleOptions {
  /** Identity of the run that an input asks for. */
  readonly key?: (input: I) => Key;
  /** Undoes what a run left behind that has failed for good; runs under its lock. At least once: key your effects. */
  readonly compensate?: (run: Run, input: I) => unknown;
}

/** Options of one call of a task. */
export interface CallOptions extends Pick<RunSettings, 'window' | 'wait' | 'ifFailed' | 'onDuplicate'> {
  readonly key?: Key;
}

/** A registered task. Call it like the function it guards. */
export interface Task<I, T> {
  (input: I): Promise<RunOutcome<T>>;
  readonly name: string;
  /** The same with options for this call. */
  run(input: I, options?: CallOptions): Promise<RunOutcome<T>>;
}

/** A record for people. */
export interface RunView {
  readonly run: RunRecord;
  /** Running, but nobody holds its lock: its node is gone. Derived at the time of asking, never stored. */
  readonly orphaned: boolean;
}

/** Which runs to list; newest first. */
export interface RunListOptions {
  readonly task?: string;
  readonly states?: readonly RunRecord['state'][];
  /** Default 100, at most 1,000. */
  readonly limit?: number;
  readonly cursor?: string;
}

/** Options of `runs.create`. */
export interface CreateRunOptions {
  /** Default: a random one. */
  readonly key?: Key;
  readonly input?: unknown;
  /** Not before this time has passed. Default: as soon as a node looks. */
  readonly after?: Duration;
}

/** A person's decision. The note is kept in the history. */
export interface DecisionOptions {
  readonly note: string;
}

/**
 * Records and decisions. Every call throws GuardError `unavailable` when the store cannot be asked and
 * `invalid-argument` when the run does not exist, or its state does not allow the decision.
 */
export interface RunsApi {
  get(task: string, key: Key): Promise<RunView | null>;
  list(options?: RunListOptions): Promise<{ readonly runs: readonly RunView[]; readonly cursor?: string }>;
  /** Everything that happened to a run, oldest first. */
  history(task: string, key: Key): Promise<readonly RunEvent[]>;
  /** Asks for a run that any started node that knows the task carries out. `created: false`: the key has one. */
  create(
    task: string,
    options?: CreateRunOptions,
  ): Promise<{ readonly created: boolean; readonly run: RunRecord }>;
  /** Failed, on hold, or a skipped call: back to pending, with the counts begun anew. */
  retry(task: string, key: Key, options: DecisionOptions): Promise<RunRecord>;
  /** Failed, on hold, or running with nobody behind it (`lock-busy` otherwise): completed. */
  complete(
    task: string,
    key: Key,
    options: DecisionOptions & { readonly value?: unknown },
  ): Promise<RunRecord>;
  /** On hold, or running with nobody behind it (`lock-busy` otherwise): failed, with its compensation due. */
  fail(task: string, key: Key, options: DecisionOptions): Promise<RunRecord>;
  /** No compensation is needed any more. */
  waive(task: string, key: Key, options: DecisionOptions): Promise<RunRecord>;
}

/** The single-run part of a guard. */
export interface RunApi {
  /**
   * Runs `work` once: under the lock of its task or key, and never again for a key that has completed (S7). Inside,
   * `currentRun()` is the run.
   *
   * Without `key` and `window` only the lock guards: calls do not overlap, but a call that comes after the first has
   * finished runs again.
   *
   * @throws the work's own error after its last attempt; GuardError `run-timeout`, `lock-lost` (the work rejected
   * after its lock was lost, its error is the `cause`), `stale-token` (another node moved the run on: this result is
   * not recorded), `run-skipped`, `would-deadlock`, `unavailable`, `closed`, `invalid-argument`.
   */
  run<T>(task: string, work: (run: Run) => T | PromiseLike<T>): Promise<RunOutcome<T>>;
  run<T>(task: string, options: RunOptions, work: (run: Run) => T | PromiseLike<T>): Promise<RunOutcome<T>>;
  /** Registers a task, so that started nodes retry it and take it over. One name is one task. */
  task<I = void, T = unknown>(
    name: string,
    work: (run: Run, input: I) => T | PromiseLike<T>,
  ): Task<I, Awaited<T>>;
  task<I = void, T = unknown>(
    name: string,
    options: TaskOptions<I>,
    work: (run: Run, input: I) => T | PromiseLike<T>,
  ): Task<I, Awaited<T>>;
  readonly runs: RunsApi;
  /**
   * Announces this process as a node, follows the schedules of the tasks that are registered here (or of `tasks`
   * only), and sweeps for them: due retries, and runs whose node is gone, go on here.
   *
   * @throws GuardError `backend-mismatch`: none of the other live nodes holds its lock on this lock backend.
   */
  start(options?: StartOptions): Promise<void>;
}

/** Options of `guard.start`. */
export interface StartOptions {
  /** Names of the tasks to schedule and sweep for. Default: every registered one, also those registered later. */
  readonly tasks?: readonly string[];
  /** `false`: schedules do not keep the process alive (L5). Default `true`. */
  readonly ref?: boolean;
}
