/**
 * Single runs of one guard: entry, attempts, finish, and what follows. The same path serves calls and the sweep; what
 * differs is who is told. A node begins no attempt and gives no lock back before the attempt before it has settled.
 */
import type { RunOutcome, SkipReason } from '../../api/run.js';
import type { RunRecord, StoredRun } from '../../machine/run-record.js';
import { beginUntilMs } from '../../machine/waiting.js';
import { GuardError, type GuardErrorCode } from '../../value/error.js';
import { ActiveRun } from './active-run.js';
import { closedError } from '../lock/lock-errors.js';
import type { HeldLock } from '../lock/lock-service.js';
import { pause } from '../flight/pause.js';
import { beginAttempt, type WorkEnd } from './run-attempt.js';
import { runCompensation } from './run-compensation.js';
import { enter } from './run-entry.js';
import type { Entry, EntryTerms } from './run-entry-terms.js';
import { type Finish, finishAttempt } from './run-finish.js';
import { identify } from './run-identity.js';
import { claimToBegin, sweepWaitMs } from './run-claim.js';
import { emit, type RunHost, workerUnder } from './run-host.js';
import type { RunWork, TaskDefinition, Wish } from './run-task.js';

/** After the signal of `close()`, work has so long to settle before its lease is left to run out. */
const LAST_SECOND_MS = 1_000;
const TOLD: ReadonlySet<GuardErrorCode> = new Set([
  'closed',
  'run-timeout',
  'stale-token',
  'lock-lost',
] as const);

type Entered = Entry & { readonly entered: true };

/** What a run needs once it has entered. */
interface Job {
  readonly terms: EntryTerms;
  readonly work: RunWork;
}

/** The runs of one guard. */
export class RunEngine {
  private readonly jobs = new Set<Promise<unknown>>();

  constructor(private readonly host: RunHost) {}

  /**
   * One call for a run.
   *
   * @throws the work's own error, and what `RunApi.run` names.
   */
  call(wish: Wish): Promise<RunOutcome<unknown>> {
    if (this.host.stopSignal.aborted) return Promise.reject(closedError());
    return this.tracked(async () => {
      const run = await identify(this.host, wish);
      const { policy, compensate } = wish;
      const canGoOn =
        this.host.tasks.get(wish.task) !== undefined || run.keyed === true || policy.windowMs !== undefined;
      const job = { terms: { run, policy, compensate, waitMs: policy.waitMs, canGoOn }, work: wish };
      const entry = await enter(this.host, job.terms);
      return entry.entered
        ? this.perform(entry, job)
        : this.skipped(entry.reason, entry.stored?.run, job.terms);
    });
  }

  /** The sweep found a record that nobody works on. Faults are events. `false`: it still waits for its lock. */
  async adopt(
    stored: StoredRun,
    task: TaskDefinition,
    more: Pick<EntryTerms, 'mine' | 'isPassed'> = {},
  ): Promise<boolean> {
    let isOver = false;
    await this.begin({ ...this.sweepTerms(stored, task), ...more }, task, (entry) => {
      isOver = entry.entered || entry.stored?.run.state !== 'pending';
    });
    return isOver;
  }

  /** A run that nobody called for: `entered` is told whether it is there, and runs. Faults are events. */
  async begin(asked: EntryTerms, task: TaskDefinition, entered?: (entry: Entry) => void): Promise<void> {
    const work = task.workFor(asked.run.input);
    const terms = { ...asked, compensate: work.compensate };
    await this.tracked(async () => {
      const entry = await enter(this.host, terms);
      entered?.(entry);
      if (entry.entered) await this.perform(entry, { terms, work });
    }).catch((error: unknown) => this.tellFault(error, asked.run));
  }

  /** The sweep found a compensation that is due and that nobody works on. Faults are events. */
  async compensate(stored: StoredRun, task: TaskDefinition): Promise<void> {
    const { run } = stored;
    const { compensate } = task.workFor(run.input);
    if (compensate === undefined) return;
    await this.tracked(async () => {
      const waitMs = this.host.sweepIntervalMs;
      const outcome = await claimToBegin(this.host, { run, policy: task.policy, waitMs, strayMs: 0 });
      if (outcome.status !== 'granted') return;
      const { lock } = outcome;
      try {
        const by = workerUnder(this.host, lock.fullKey, lock);
        const moved = await this.host.book.move(stored, { type: 'compensation-start', by });
        if (moved.status !== 'moved') return;
        if (run.takeovers < task.policy.maxTakeovers) {
          const { policy } = task;
          await runCompensation(this.host, { stored: moved.stored, by, lock, policy, compensate });
        } else {
          const fault = { name: 'Crash', message: 'the compensation was begun too often' };
          const end = { type: 'compensation-end', token: by.lock.token, result: 'error', fault } as const;
          await this.host.book.move(moved.stored, end, { own: by.lock.token });
        }
      } finally {
        await lock.release();
      }
    }).catch((error: unknown) => this.tellFault(error, run));
  }

  /** Refuses new work, asks running work to finish, and after the grace makes it stop. Bounded. */
  async close(graceMs: number): Promise<void> {
    const reason = closedError();
    this.host.shutdown.begin(reason);
    await this.drained(graceMs);
    this.host.shutdown.endGrace();
    this.host.active.cutAll(reason);
    await this.drained(LAST_SECOND_MS);
    this.host.active.letGoAll();
    await this.drained(LAST_SECOND_MS);
  }

  private async drained(limitMs: number): Promise<void> {
    if (this.jobs.size === 0) return;
    const stop = new AbortController();
    const all = Promise.allSettled(this.jobs).then(() => stop.abort());
    await Promise.race([all, pause(this.host.clock, limitMs, stop.signal)]);
  }

  private async tracked<T>(work: () => Promise<T>): Promise<T> {
    const job = work();
    this.jobs.add(job);
    try {
      return await job;
    } finally {
      this.jobs.delete(job);
    }
  }

  /** Attempts until the run has come to its end here. */
  private async perform(first: Entered, job: Job): Promise<RunOutcome<unknown>> {
    let entered = first;
    for (;;) {
      const { lock } = entered;
      const ended = await this.attempt(entered, job);
      if (ended.done === 'unsettled') throw ended.error;
      if (ended.done === 'again') {
        const next = await this.nextAttempt(entered, ended, job);
        if ('outcome' in next) return next.outcome;
        entered = next.entered;
        continue;
      }
      if (ended.done === 'over') await this.compensated(ended.stored, entered, job);
      await lock?.release();
      if (ended.done === 'over') throw ended.error;
      return { status: 'completed', value: ended.value, run: ended.stored.run };
    }
  }

  private async attempt(
    entered: Entered,
    { terms, work }: Job,
  ): Promise<Finish | { readonly done: 'unsettled'; readonly error: unknown }> {
    const { stored, by, lock } = entered;
    const { book, clock, stopSignal, active } = this.host;
    const run = new ActiveRun({ stored, by, lock, policy: terms.policy, book, clock, stopSignal });
    const attempt = beginAttempt(this.host, run, work.work);
    active.add(run, attempt);
    const end = await attempt.ended;
    const finish = { compensate: terms.compensate !== undefined, canGoOn: terms.canGoOn };
    if (end.end !== 'unsettled') return finishAttempt(this.host, run, end, finish);
    void this.finishLate(run, end.later);
    return { done: 'unsettled', error: run.cutReason };
  }

  /** Work that was given up may still complete: that alone is written, if nobody moved the record. */
  private async finishLate(run: ActiveRun, later: Promise<WorkEnd>): Promise<void> {
    const end = await later;
    if (end.end === 'threw' || this.host.stopSignal.aborted) return;
    const finish = await finishAttempt(this.host, run, end, { compensate: false, canGoOn: true });
    if (finish.done === 'over') this.tellFault(finish.error, run.stored.run);
  }

  /** The attempt failed for good, and the same write made its compensation due under this lock. */
  private async compensated(stored: StoredRun, entered: Entered, { terms }: Job): Promise<void> {
    const { run } = stored;
    const isOurs =
      run.state === 'failed' && run.compensation === 'due' && run.lock?.token === entered.by.lock.token;
    if (!isOurs || terms.compensate === undefined) return;
    const { by, lock } = entered;
    const due = { stored, by, lock, policy: terms.policy, compensate: terms.compensate };
    await runCompensation(this.host, due).catch((error: unknown) => this.tellFault(error, run));
  }

  /** Waits until the next attempt is due; a short pause keeps the lock, a longer one lets others have it. */
  private async nextAttempt(
    entered: Entered,
    again: Finish & { readonly done: 'again' },
    job: Job,
  ): Promise<{ readonly entered: Entered } | { readonly outcome: RunOutcome<unknown> }> {
    const { host } = this;
    const { lock, by } = entered;
    const delayMs = Math.max(0, again.atMs - host.time.estimate());
    const keeps = lock === undefined || delayMs <= host.sweepIntervalMs;
    if (!keeps) await lock.release();
    await pause(host.clock, delayMs, host.stopSignal);
    if (host.stopSignal.aborted) {
      await lock?.release();
      throw again.error;
    }
    if (keeps && (lock === undefined || lock.isHeld())) {
      const moved = await host.book
        .move(again.stored, { type: 'start', by, trigger: 'retry' }, { own: by.lock.token })
        .catch(() => undefined);
      if (moved?.status === 'moved') {
        await this.heldOrReleased(lock);
        emit(host, 'run-started', { run: moved.stored.run });
        return { entered: { entered: true, stored: moved.stored, by, lock } };
      }
      await lock?.release();
    }
    return this.reenter(again, job);
  }

  /**
   * A slow store can use up a lease: work never begins under a lock that is not held. The run is an orphan then, and
   * whoever gets its lock goes on with it.
   */
  private async heldOrReleased(lock: HeldLock | undefined): Promise<void> {
    try {
      await lock?.assertHeldSoon();
    } catch (error) {
      await lock?.release();
      throw error;
    }
  }

  private async reenter(
    again: Finish & { readonly done: 'again' },
    { terms }: Job,
  ): Promise<{ readonly entered: Entered } | { readonly outcome: RunOutcome<unknown> }> {
    const waitMs = Math.max(terms.waitMs, this.host.sweepIntervalMs);
    const entry = await enter(this.host, { ...terms, waitMs, given: again.stored, mine: true });
    if (entry.entered) return { entered: entry };
    // It waits for a later attempt, on whichever node: what happened so far is what the caller is told.
    if (entry.stored === undefined || entry.stored.run.state === 'pending') throw again.error;
    return { outcome: this.skipped(entry.reason, entry.stored.run, terms) };
  }

  private skipped(reason: SkipReason, run: RunRecord | undefined, terms: EntryTerms): RunOutcome<unknown> {
    const { policy } = terms;
    const { task, key } = terms.run;
    if (policy.onDuplicate === 'result' && run?.state === 'completed' && !run.valueOmitted) {
      const value = run.value === undefined ? undefined : policy.codec.decode(run.value);
      return { status: 'completed', value, run };
    }
    emit(this.host, 'run-skipped', { task, key, reason });
    if (policy.onDuplicate === 'throw') {
      throw new GuardError('run-skipped', `run ${key} of ${task} was skipped: ${reason}`, { key, reason });
    }
    return { status: 'skipped', reason, ...(run === undefined ? {} : { run }) };
  }

  private sweepTerms(given: StoredRun, task: TaskDefinition): EntryTerms {
    const { policy } = task;
    return {
      run: given.run,
      policy,
      waitMs: sweepWaitMs(this.host, policy),
      given,
      sweeping: true,
      canGoOn: true,
      beginUntilMs: beginUntilMs(given.run, task.schedule?.catchUp),
    };
  }

  /** A fault of a run that nobody waits for. What has an event of its own is not told twice. */
  private tellFault(error: unknown, run: Pick<RunRecord, 'task' | 'key'>): void {
    if (!GuardError.is(error) || TOLD.has(error.code)) return;
    emit(this.host, 'error', { error, during: `run ${run.key} of ${run.task}` });
  }
}
