/**
 * Worker processes: real ones, which a test stops, continues and kills. They run a file as it is, TypeScript too,
 * without a build. They are strict: an unhandled rejection, an uncaught exception, a leak of listeners or an overflow
 * of a timer is an error of the test, which `finish` and `close` throw.
 */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { GuardError, systemClock } from '@guard/core';
import { requireNumber } from '../argument.js';
import type { SharedHoldLog } from './shared-hold-log.js';
import type { FromWorker, ToWorker } from './worker-scope.js';
import { checkWorker, pathOf, requireCloneable, spawnWorker, type WorkerOptions } from './worker-start.js';

const MAX_ERROR_TEXT = 20_000;
const EXIT_WITHIN_MS = 5_000;
/** What it wrote before its end is read by then. Longer lasts only what a process writes that it left behind. */
const READ_WITHIN_MS = 1_000;

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Starts a worker: `file` is a path or a file URL, and its default export is the function that runs. Where the system
 * starts no process, `finish`, `next` and `close` reject.
 *
 * @throws GuardError `invalid-argument`: nothing was started.
 */
export function startWorker<O = unknown>(file: string | URL, options: WorkerOptions = {}): WorkerProcess<O> {
  checkWorker(file, options);
  return new WorkerProcess<O>(pathOf(file), options);
}

/** A running worker. */
export class WorkerProcess<O = unknown> implements AsyncDisposable {
  /** Its end, whatever brought it about. */
  readonly ended: Promise<ProcessEnd>;
  /** None where the system started none. */
  readonly #child: ChildProcess | undefined;
  readonly #file: string;
  readonly #exitWithinMs: number;
  readonly #log: SharedHoldLog | undefined;
  readonly #messages: unknown[] = [];
  readonly #readers: ((message: unknown) => void)[] = [];
  readonly #problems: string[] = [];
  #returned: { readonly value: O } | undefined;
  #onReturned: () => void = () => undefined;
  #end: ProcessEnd | undefined;
  #endIsWanted = false;
  #errors = '';

  /** Use `startWorker`. */
  constructor(file: string, options: WorkerOptions) {
    this.#file = file;
    this.#exitWithinMs = options.exitWithinMs ?? EXIT_WITHIN_MS;
    this.#log = options.log;
    const { child, error } = spawnWorker(file, options);
    if (child === undefined) {
      this.ended = Promise.resolve(this.#notStarted(error));
      return;
    }
    this.#child = child;
    child.on('message', (message) => this.#take(message));
    child.stderr?.on('data', (chunk) => {
      this.#errors = `${this.#errors}${String(chunk)}`.slice(-MAX_ERROR_TEXT);
    });
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#noteStopped();
        // A process that it left behind holds its error stream open, and may live long.
        const timer = systemClock.setTimer(() => {
          child.stderr?.destroy();
          resolve(this.#finished({ code, signal }));
        }, READ_WITHIN_MS);
        child.once('close', () => {
          timer.cancel();
          resolve(this.#finished({ code, signal }));
        });
      });
      child.on('error', (error) => {
        // Of a process that runs, it is a signal that could not be sent.
        if (child.pid === undefined) resolve(this.#notStarted(error));
      });
    });
    this.#send({ type: 'input', input: options.input });
  }

  /** Its process id. */
  get pid(): number {
    if (this.#child?.pid !== undefined) return this.#child.pid;
    throw new GuardError('unavailable', `no process could be started for ${this.#file}`);
  }

  /** What went wrong in it so far, in sentences. */
  problems(): readonly string[] {
    return this.#problems;
  }

  /** Tells its function something. */
  tell(message: unknown): void {
    requireCloneable('message', message);
    this.#send({ type: 'message', message });
  }

  /** Its next message, or one that came before. Rejects where it ends without one. */
  next<T = unknown>(): Promise<T> {
    if (this.#messages.length > 0) return Promise.resolve(this.#messages.shift() as T);
    return Promise.race([
      new Promise<T>((resolve) => this.#readers.push(resolve as (message: unknown) => void)),
      this.ended.then(() => {
        throw this.#failure('it ended without a message');
      }),
    ]);
  }

  /** Moves its wall clock; the monotonic one stays. */
  shiftWallClock(wallShiftMs: number): void {
    requireNumber('wallShiftMs', wallShiftMs);
    this.#send({ type: 'shift', wallShiftMs });
  }

  /** Stops it where it is (SIGSTOP), and resolves when it stands still. */
  async pause(): Promise<void> {
    this.#child?.kill('SIGSTOP');
    while (!standsStill(this.pid)) await new Promise<void>((resolve) => systemClock.yield(resolve));
    this.#noteStopped();
  }

  /** Lets it go on (SIGCONT). */
  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** Kills it (SIGKILL), and resolves when it is gone. That is no problem of the worker. */
  async kill(): Promise<void> {
    this.#endIsWanted = true;
    this.signal('SIGKILL');
    await this.ended;
  }

  /** Sends another signal, such as SIGTERM. */
  signal(signal: NodeJS.Signals): void {
    if (this.#child?.kill(signal) !== true || signal !== 'SIGKILL') return;
    // From here on it believes nothing; the note at its end comes later than what others may be granted by then.
    this.#noteStopped();
  }

  /** What its function returned, once the process has ended by itself. Rejects with everything that went wrong. */
  async finish(): Promise<O> {
    await Promise.race([this.ended, this.#hasReturned()]);
    const timer = systemClock.setTimer(() => {
      this.#problems.push(`it still lives ${this.#exitWithinMs} ms after its function has returned`);
      void this.kill();
    }, this.#exitWithinMs);
    await this.ended;
    timer.cancel();
    if (this.#returned === undefined || this.#problems.length > 0) throw this.#failure('it did not finish');
    return this.#returned.value;
  }

  /** Ends it if it still runs. Rejects with what went wrong in it. */
  async close(): Promise<void> {
    if (this.#end === undefined) await this.kill();
    if (this.#problems.length > 0) throw this.#failure('it had problems');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #hasReturned(): Promise<void> {
    return new Promise((resolve) => {
      this.#onReturned = resolve;
      if (this.#returned !== undefined) resolve();
    });
  }

  #send(message: ToWorker): void {
    // Its end says more than the broken channel.
    this.#child?.send(message, () => undefined);
  }

  #take(message: unknown): void {
    const received = message as FromWorker | null | undefined;
    // The code under test may speak to a parent process of its own: not to the test.
    if (received?.mark !== 'guard-worker') return;
    switch (received.type) {
      case 'message': {
        const reader = this.#readers.shift();
        if (reader === undefined) this.#messages.push(received.message);
        else reader(received.message);
        return;
      }
      case 'problem':
        this.#problems.push(received.text);
        return;
      case 'returned':
        this.#returned = { value: received.value as O };
        this.#onReturned();
    }
  }

  #finished(end: ProcessEnd): ProcessEnd {
    if (this.#end !== undefined) return this.#end;
    this.#end = end;
    if (!this.#endIsWanted && (end.code !== 0 || this.#returned === undefined)) {
      this.#problems.push(`it ended by itself with ${end.signal ?? `code ${end.code}`}`);
    }
    return end;
  }

  #noteStopped(): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      this.#log?.stopped(pid);
    } catch (error) {
      // Nobody waits for this note at an exit.
      this.#problems.push(`its end could not be noted: ${String(error)}`);
    }
  }

  #notStarted(error: unknown): ProcessEnd {
    this.#problems.push(`it could not be started: ${String(error)}`);
    return (this.#end = { code: null, signal: null });
  }

  #failure(what: string): GuardError {
    const reasons = this.#problems.map((problem) => `\n- ${problem}`).join('');
    const errors = this.#errors === '' ? '' : `\n${this.#errors}`;
    return new GuardError('unavailable', `worker ${this.#file}: ${what}${reasons}${errors}`);
  }
}

/** Whether a process stands still. Where the system does not tell, a signal that was sent has to do. */
function standsStill(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return ['T', 't', 'Z', 'X'].includes(stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3));
  } catch {
    return true;
  }
}
