/**
 * Worker processes: real ones, which a test stops, continues and kills. They run a file as it is, TypeScript too,
 * without a build. They are strict: an unhandled rejection, an uncaught exception, a leak of listeners or an overflow
 * of a timer is an error of the test, which `finish` and `close` throw.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GuardError, systemClock } from '@guard/core';
import { bootstrapText } from './bootstrap.js';
import type { SharedHoldLog } from './shared-hold-log.js';
import type { FromWorker, ToWorker } from './worker-scope.js';

/** Warnings that are errors: each means that something grows, or ends at once, that should not. */
const WARNINGS = ['MaxListenersExceededWarning', 'TimeoutOverflowWarning'];
const MAX_ERROR_TEXT = 20_000;
const EXIT_WITHIN_MS = 5_000;

/** How a worker starts. */
export interface WorkerOptions {
  /** What its function gets as `input`. Cloned: bigints, dates and maps arrive whole. */
  readonly input?: unknown;
  /** How much its wall clock (`Date`) is ahead of the machine's, in milliseconds. Its monotonic clock is not. */
  readonly wallShiftMs?: number;
  /** Where its pauses and its death are noted, so that they end what it believes to hold. */
  readonly log?: SharedHoldLog;
  /** More variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** More flags of `node`, such as `--conditions=…`. */
  readonly execArgv?: readonly string[];
  /**
   * How long it may live, in milliseconds, after its function has returned: what Guard leaves behind may not keep a
   * process alive (L5). Default 5,000.
   */
  readonly exitWithinMs?: number;
  /** The user who runs it, where the test runs as root. */
  readonly uid?: number;
}

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Starts a worker: `file` is a path or a file URL, and its default export is the function that runs. */
export function startWorker<O = unknown>(file: string | URL, options: WorkerOptions = {}): WorkerProcess<O> {
  return new WorkerProcess<O>(typeof file === 'string' ? file : fileURLToPath(file), options);
}

/** A running worker. */
export class WorkerProcess<O = unknown> implements AsyncDisposable {
  /** Its end, whatever brought it about. */
  readonly ended: Promise<ProcessEnd>;
  readonly #child: ChildProcess;
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
    this.#child = spawnWorker(file, options);
    this.#child.on('message', (message) => this.#take(message as FromWorker));
    this.#child.stderr?.on('data', (chunk) => {
      this.#errors = `${this.#errors}${String(chunk)}`.slice(-MAX_ERROR_TEXT);
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => resolve(this.#finished({ code, signal })));
    });
    this.#send({ type: 'input', input: options.input });
  }

  /** Its process id. */
  get pid(): number {
    if (this.#child.pid !== undefined) return this.#child.pid;
    throw new GuardError('unavailable', `no process could be started for ${this.#file}`);
  }

  /** What went wrong in it so far, in sentences. */
  problems(): readonly string[] {
    return this.#problems;
  }

  /** Tells its function something. */
  tell(message: unknown): void {
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
    this.#send({ type: 'shift', wallShiftMs });
  }

  /** Stops it where it is (SIGSTOP), and resolves when it stands still. */
  async pause(): Promise<void> {
    this.#child.kill('SIGSTOP');
    while (!standsStill(this.pid)) await new Promise<void>((resolve) => systemClock.yield(resolve));
    this.#log?.stopped(this.pid);
  }

  /** Lets it go on (SIGCONT). */
  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** Kills it (SIGKILL), and resolves when it is gone. That is no problem of the worker. */
  async kill(): Promise<void> {
    this.#endIsWanted = true;
    this.#child.kill('SIGKILL');
    await this.ended;
    this.#log?.stopped(this.pid);
  }

  /** Sends another signal, such as SIGTERM. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
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
    this.#child.send(message, () => undefined);
  }

  #take(received: FromWorker): void {
    switch (received.type) {
      case 'message': {
        const reader = this.#readers.shift();
        if (reader === undefined) this.#messages.push(received.message);
        else reader(received.message);
        return;
      }
      case 'warning':
        this.#problems.push(received.text);
        return;
      case 'returned':
        this.#returned = { value: received.value as O };
        this.#onReturned();
    }
  }

  #finished(end: ProcessEnd): ProcessEnd {
    this.#end = end;
    if (!this.#endIsWanted && (end.code !== 0 || this.#returned === undefined)) {
      this.#problems.push(`it ended by itself with ${end.signal ?? `code ${end.code}`}`);
    }
    return end;
  }

  #failure(what: string): GuardError {
    const reasons = this.#problems.map((problem) => `\n- ${problem}`).join('');
    const errors = this.#errors === '' ? '' : `\n${this.#errors}`;
    return new GuardError('unavailable', `worker ${this.#file}: ${what}${reasons}${errors}`);
  }
}

function spawnWorker(
  file: string,
  { wallShiftMs = 0, env = {}, execArgv = [], uid }: WorkerOptions,
): ChildProcess {
  const typescript = file.endsWith('.ts') ? toolsFor(file) : undefined;
  const program = bootstrapText({
    file,
    wallShiftMs,
    ...(typescript === undefined ? {} : { compiler: typescript.compiler }),
    cache: join(
      tmpdir(),
      `guard-workers-${process.getuid?.() ?? 'all'}${uid === undefined ? '' : `-${uid}`}`,
    ),
    warnings: WARNINGS,
  });
  const flags = [
    '--unhandled-rejections=strict',
    '--enable-source-maps',
    ...(typescript?.flags ?? []),
    ...execArgv,
  ];
  return spawn(process.execPath, [...flags, '-e', program], {
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    serialization: 'advanced',
    env: { ...process.env, ...env },
    ...(uid === undefined ? {} : { uid }),
  });
}

/** What a TypeScript worker needs, found from where it stands. */
function toolsFor(file: string): { readonly compiler: string; readonly flags: readonly string[] } {
  const { resolve } = createRequire(file);
  try {
    const compiler = resolve('@swc/core');
    resolve('@swc/helpers/package.json');
    return { compiler, flags: usesSources(resolve) ? ['--conditions=@guard/source'] : [] };
  } catch (cause) {
    throw new GuardError(
      'unavailable',
      `a worker in TypeScript needs @swc/core and @swc/helpers: npm install --save-dev @swc/core @swc/helpers`,
      { cause },
    );
  }
}

/** Inside Guard's own repository the sources of its packages run, as in every other test; published ones have none. */
function usesSources(resolve: NodeJS.RequireResolve): boolean {
  try {
    return existsSync(join(dirname(resolve('@guard/core/package.json')), 'src', 'index.ts'));
  } catch {
    return false;
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
