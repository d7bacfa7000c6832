/**
 * One attempt of a run: the work under its frame, with everything that can tell it to stop. It ends when the work has
 * settled; only work that ignores its signal for `letGoAfter` is left to itself, and then its lease runs out.
 */
import type { Run } from '../../api/run.js';
import type { Clock } from '../../port/clock.js';
import { GuardError } from '../../value/error.js';
import { isStream } from '../../value/stream.js';
import type { ActiveRun } from './active-run.js';
import { currentFrame, runInFrame } from '../context.js';
import type { Events } from '../events.js';
import type { LockService } from '../lock/lock-service.js';

/** From this age on a run is told of as long, once. */
const LONG_MS = 3_600_000;

/** How the work ended. */
export type WorkEnd =
  { readonly end: 'returned'; readonly value: unknown } | { readonly end: 'threw'; readonly error: unknown };

/** How an attempt ended. */
export type AttemptEnd =
  | WorkEnd
  /** The work ignored its signal; it may still end later. */
  | { readonly end: 'unsettled'; readonly later: Promise<WorkEnd> };

/** What an attempt needs. */
export interface AttemptHost {
  readonly clock: Clock;
  readonly events: Events;
  readonly locks: Pick<LockService, 'backend'>;
}

/** An attempt that goes on. */
export interface Attempt {
  readonly ended: Promise<AttemptEnd>;
  /** Resolves when the work has settled, however late. */
  readonly settled: Promise<WorkEnd>;
  /** Gives up waiting for the work: no renewal any more, no release. */
  letGo(): void;
}

/** Begins an attempt. */
export function beginAttempt(host: AttemptHost, run: ActiveRun, work: (run: Run) => unknown): Attempt {
  const watch = new Watch(host, run);
  const settled = perform(host, run, work).then((end) => {
    run.over = true;
    watch.end();
    return end;
  });
  const ended = Promise.race([
    settled,
    watch.givenUp.then(() => ({ end: 'unsettled', later: settled }) as const),
  ]);
  return { ended, settled, letGo: () => watch.letGo() };
}

async function perform(host: AttemptHost, run: ActiveRun, work: (run: Run) => unknown): Promise<WorkEnd> {
  const lock = run.lock === undefined ? {} : { lock: run.lock, backend: host.locks.backend };
  try {
    const value = await runInFrame({ ...lock, run, parent: currentFrame() }, () => work(run));
    if (isStream(value)) throw streamError(run);
    return { end: 'returned', value };
  } catch (error) {
    return { end: 'threw', error };
  }
}

/** The timers of one attempt. */
class Watch {
  readonly givenUp: Promise<void>;
  private giveUp: () => void = () => undefined;
  private readonly timers = new Map<
    string,
    { readonly dueMonoMs: number; readonly run: () => void; cancel(): void }
  >();
  private readonly unlisten: () => void;

  constructor(
    private readonly host: AttemptHost,
    private readonly run: ActiveRun,
  ) {
    this.givenUp = new Promise((resolve) => (this.giveUp = resolve));
    const { timeoutMs, stallAfterMs } = run.policy;
    if (timeoutMs !== undefined) this.arm('timeout', timeoutMs, () => this.stop('timeout', timeoutMs));
    if (stallAfterMs !== undefined) {
      const stalled = (): void => this.stop('stalled', stallAfterMs);
      this.arm('stall', stallAfterMs, stalled);
      run.onProgress = () => this.arm('stall', stallAfterMs, stalled);
    }
    run.onLook = () => this.catchUp();
    // Keeps the process alive too, whatever the work waits for (L5).
    this.arm('long', LONG_MS, () => this.tellLong());
    this.unlisten =
      run.lock?.onLost(() => run.cut('lock-lost', run.lock?.signal.reason)) ?? (() => undefined);
  }

  letGo(): void {
    this.run.isLetGo = true;
    this.giveUp();
    this.run.lock?.letGo();
    // Work that was given up is no reason to live on.
    this.timers.get('long')?.cancel();
  }

  end(): void {
    for (const timer of this.timers.values()) timer.cancel();
    this.timers.clear();
    this.run.onProgress = undefined;
    this.run.onLook = undefined;
    this.unlisten();
  }

  /** After a blocked event loop no timer has told yet what the clock knows. */
  private catchUp(): void {
    const { monoMs } = this.host.clock.now();
    for (const name of ['timeout', 'stall']) {
      const timer = this.timers.get(name);
      if (timer === undefined || timer.dueMonoMs > monoMs) continue;
      timer.cancel();
      timer.run();
    }
  }

  private stop(why: 'timeout' | 'stalled', afterMs: number): void {
    const { run } = this;
    const what =
      why === 'timeout' ? `did not end within ${afterMs} ms` : `made no progress for ${afterMs} ms`;
    run.cut(why, new GuardError('run-timeout', `run ${run.key} of ${run.task} ${what}`, { key: run.key }));
    this.timers.get(why === 'timeout' ? 'stall' : 'timeout')?.cancel();
    run.onProgress = undefined;
    this.arm('let-go', run.policy.letGoAfterMs, () => this.letGo());
  }

  private tellLong(): void {
    this.host.events.emit('run-long', { run: this.run.stored.run, runningMs: LONG_MS });
    this.keepAlive();
  }

  private keepAlive(): void {
    this.arm('long', LONG_MS, () => this.keepAlive());
  }

  private arm(name: string, delayMs: number, run: () => void): void {
    this.timers.get(name)?.cancel();
    const { clock } = this.host;
    const timer = clock.setTimer(run, delayMs);
    const cancel = (): void => {
      timer.cancel();
      this.timers.delete(name);
    };
    this.timers.set(name, { dueMonoMs: clock.now().monoMs + delayMs, run, cancel });
  }
}

function streamError(run: ActiveRun): GuardError {
  const message = `${run.task} returned a stream, which would go on without its lock: consume it inside the work`;
  return new GuardError('invalid-argument', message, { key: run.key });
}
