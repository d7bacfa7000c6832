/**
 * What becomes of a run when its work has settled. The record alone decides: a result is written although the lock
 * was lost, as long as nobody moved the record (`late`), and is refused where somebody did (S7); a rejection counts
 * only while the lock is held, and is a crash otherwise.
 */
import type { RunMove } from '../../machine/run-move.js';
import type { StoredRun } from '../../machine/run-record.js';
import { retryPauseMs } from '../../machine/run-retry.js';
import { GuardError } from '../../value/error.js';
import type { ActiveRun } from './active-run.js';
import type { WorkEnd } from './run-attempt.js';
import type { Moved, WriteLimits } from './run-book.js';
import { emit, type RunHost, tellEnd } from './run-host.js';
import { crashPolicy } from './run-task.js';
import { faultOf, keepValue } from './run-values.js';

/** What an attempt came to. */
export type Finish =
  | { readonly done: 'completed'; readonly value: unknown; readonly stored: StoredRun }
  /** The next attempt is due at `atMs` of the run store's clock. */
  | { readonly done: 'again'; readonly atMs: number; readonly error: unknown; readonly stored: StoredRun }
  /** Nothing follows here. `stored` may be failed with its compensation due. */
  | { readonly done: 'over'; readonly error: unknown; readonly stored: StoredRun };

/** What the finish has to know about the wish. */
export interface FinishTerms {
  readonly compensate: boolean;
  /** Somebody can go on with it later: it is registered, or has a key that another call can name. */
  readonly canGoOn: boolean;
}

/** Writes how an attempt ended. Never throws: what the caller has to be told is in the answer. */
export async function finishAttempt(
  host: RunHost,
  run: ActiveRun,
  end: WorkEnd,
  terms: FinishTerms,
): Promise<Finish> {
  await run.freeze();
  try {
    const settled = await settleStaged(host, run, end);
    if ('done' in settled) return settled;
    return settled.end === 'returned'
      ? await completed(host, run, settled.value)
      : await rejected(host, run, settled.error, terms);
  } catch (error) {
    return { done: 'over', error, stored: run.stored };
  }
}

/** Where the application's transaction was to write the completion: reads back whether it was committed. */
async function settleStaged(host: RunHost, run: ActiveRun, end: WorkEnd): Promise<WorkEnd | Finish> {
  const finish = await committed(host, run, end);
  if (finish !== undefined) return finish;
  if (run.staged.size === 0 || end.end === 'threw') return end;
  const message = `run ${run.key}: the transaction that was to complete it was not committed`;
  return { end: 'threw', error: new GuardError('aborted', message, { key: run.key }) };
}

/** What the application's transaction came to, where it was committed. */
async function committed(host: RunHost, run: ActiveRun, end: WorkEnd): Promise<Finish | undefined> {
  if (run.staged.size === 0) return undefined;
  const events = await host.book.events(run.stored.run, limitsOf(host, run));
  if (!events.some((event) => run.staged.has(event.writeId))) return undefined;
  const stored = (await host.book.get(run.stored.run, limitsOf(host, run))) ?? run.stored;
  return done(host, run, stored, end.end === 'returned' ? end.value : valueOf(run, stored));
}

async function completed(host: RunHost, run: ActiveRun, value: unknown): Promise<Finish> {
  const { problem, ...kept } = keepValue(value, run.policy.codec);
  if (problem !== undefined) emit(host, 'error', { error: problem, during: `the result of ${run.task}` });
  const { node } = run.by;
  const wish = (): RunMove => ({ type: 'complete', token: run.mark, node, late: !mayAct(run), ...kept });
  const moved = await host.book.move(run.stored, wish, limitsOf(host, run));
  if (moved.status !== 'moved') return refused(host, run, moved, { end: 'returned', value });
  return done(host, run, moved.stored, value);
}

function done(host: RunHost, run: ActiveRun, stored: StoredRun, value: unknown): Finish {
  run.stored = stored;
  emit(host, 'run-completed', { run: stored.run });
  return { done: 'completed', value, stored };
}

async function rejected(host: RunHost, run: ActiveRun, thrown: unknown, terms: FinishTerms): Promise<Finish> {
  if (!(await isStillHeld(run))) return { done: 'over', error: lossOf(run, thrown), stored: run.stored };
  const { error, wish } = judged(host, run, thrown, terms);
  // Only a completion may be written without the lock.
  const limits = { ...limitsOf(host, run), goOn: () => !host.shutdown.graceOver && mayAct(run) };
  const moved = await host.book.move(run.stored, wish, limits);
  if (moved.status !== 'moved') return refused(host, run, moved, { end: 'threw', error });
  run.stored = moved.stored;
  tellEnd(host, moved.stored.run, error);
  const { run: next } = moved.stored;
  if (next.state !== 'pending') return { done: 'over', error, stored: moved.stored };
  if (wish.type === 'hand-back') return { done: 'over', error, stored: moved.stored };
  emit(host, 'run-failed', { run: next, error });
  return { done: 'again', atMs: next.availableAtMs, error, stored: moved.stored };
}

/** What a rejection means, and what the caller is told. */
function judged(
  host: RunHost,
  run: ActiveRun,
  thrown: unknown,
  terms: FinishTerms,
): { readonly error: unknown; readonly wish: RunMove } {
  const { policy, mark: token } = run;
  if (terms.canGoOn && isShutdown(run, thrown)) return { error: thrown, wish: { type: 'hand-back', token } };
  const error = run.cutBy === 'timeout' || run.cutBy === 'stalled' ? stopOf(run, thrown) : thrown;
  const fault = faultOf(error);
  if (run.cutBy === 'stalled') {
    const wish = { type: 'crash', by: run.by, fault, policy: crashPolicy(policy, terms.compensate) } as const;
    return { error, wish };
  }
  const failed = { type: 'fail-attempt', token, fault, compensate: terms.compensate } as const;
  if (run.attempt >= policy.attempts) return { error, wish: failed };
  const pauseMs = retryPauseMs(policy.pauses, run.attempt, host.random.fraction());
  return { error, wish: { ...failed, retryAtMs: host.time.estimate() + pauseMs } };
}

/**
 * Somebody else moved the record: this outcome is not recorded, and whoever produced it is told so (S7). Unless it was
 * the application's own transaction, whose commit came after it was looked for.
 */
async function refused(
  host: RunHost,
  run: ActiveRun,
  moved: Exclude<Moved, { status: 'moved' }>,
  end: WorkEnd,
): Promise<Finish> {
  const finish = await committed(host, run, end);
  if (finish !== undefined) return finish;
  const reason = moved.status === 'refused' ? moved.why : 'moved by somebody else';
  const stored = moved.stored ?? run.stored;
  emit(host, 'run-refused', { run: stored.run, reason });
  const message = `run ${run.key} of ${run.task} was moved on (${stored.run.state}): this outcome is not recorded`;
  const details = { key: run.key, ...(end.end === 'threw' ? { cause: end.error } : {}) };
  return { done: 'over', error: new GuardError('stale-token', message, details), stored };
}

function limitsOf(host: RunHost, run: ActiveRun): WriteLimits {
  return { budgetMs: run.policy.settleTimeoutMs, goOn: () => !host.shutdown.graceOver, own: run.mark };
}

/** Before the trust deadline, or without a lock by the task's own wish. */
function mayAct(run: ActiveRun): boolean {
  return run.lock === undefined || run.lock.isHeld();
}

/** The same, after the verdict on a lock that is merely suspect. */
async function isStillHeld(run: ActiveRun): Promise<boolean> {
  if (mayAct(run)) return true;
  return run.lock!.assertHeldSoon().then(
    () => true,
    () => false,
  );
}

function isShutdown(run: ActiveRun, thrown: unknown): boolean {
  if (run.cutBy === 'shutdown') return true;
  if (!run.stopSignal.aborted) return false;
  for (let error = thrown, depth = 0; depth < 8; depth += 1) {
    if (error === run.stopSignal.reason) return true;
    if (typeof error !== 'object' || error === null) return false;
    error = (error as { readonly cause?: unknown }).cause;
  }
  return false;
}

function stopOf(run: ActiveRun, thrown: unknown): unknown {
  const reason = run.cutReason;
  if (thrown === reason || !(reason instanceof Error)) return reason;
  const message = reason.message.replace('[run-timeout] ', '');
  return new GuardError('run-timeout', message, { key: run.key, cause: thrown });
}

function lossOf(run: ActiveRun, thrown: unknown): unknown {
  if (GuardError.is(thrown, 'lock-lost')) return thrown;
  const message = `run ${run.key} of ${run.task} lost its lock, and its work rejected`;
  return new GuardError('lock-lost', message, { key: run.key, cause: thrown });
}

function valueOf(run: ActiveRun, stored: StoredRun): unknown {
  const { run: record } = stored;
  if (record.state !== 'completed' || record.value === undefined) return undefined;
  return run.policy.codec.decode(record.value);
}
