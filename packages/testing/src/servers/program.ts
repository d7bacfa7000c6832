/**
 * Carries out a recipe with an installed program, in a folder of its own. The process gets a session of its own too:
 * an interrupt at the keyboard ends the test, and what the test started then ends through its record.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GuardError, systemClock } from '@guard/core';
import { idsOf, versionOf } from './find-program.js';
import { listenerOn } from './listener.js';
import { forget, MEMORY, reapOrphans, record, signalTree } from './reap.js';
import type { Recipe } from './recipe.js';
import type { RestartOptions } from './server.js';
import { prepareData } from './template.js';
import { settling, untilReady } from './until-ready.js';

const LOG = 'server.log';
const END_WITHIN_MS = 5_000;

/** A server that runs as a process of this machine. */
export class ProgramServer {
  readonly source = 'program';
  readonly version: string;
  readonly #path: string;
  readonly #recipe: Recipe;
  readonly #folder: string;
  readonly #ids: { uid: number; gid: number } | undefined;
  #child: ChildProcess | undefined;

  private constructor(path: string, version: string, recipe: Recipe) {
    this.#path = path;
    this.version = version;
    this.#recipe = recipe;
    this.#ids = idsOf(recipe.unprivilegedUser);
    this.#folder = mkdtempSync(join(placeOf(recipe), `guard-${recipe.kind}-`));
    record(this.#folder);
    this.#own(this.#folder);
  }

  /** Starts it and waits until it serves. */
  static async start(path: string, recipe: Recipe): Promise<ProgramServer> {
    reapOrphans();
    const server = new ProgramServer(path, await versionOf(path), recipe);
    try {
      await server.#makeFolder();
      await server.#spawn();
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async stop(): Promise<void> {
    // Nothing of it is kept, so nobody waits for it to write.
    await this.#end(this.#recipe.quickStop ?? 'SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    forget(this.#folder);
  }

  async pause(): Promise<void> {
    signalTree(this.#running(), 'SIGSTOP');
  }

  async resume(): Promise<void> {
    signalTree(this.#running(), 'SIGCONT');
  }

  async kill(): Promise<void> {
    this.#running();
    await this.#end('SIGKILL');
  }

  async restart({ keepData }: RestartOptions): Promise<void> {
    await this.#end(this.#recipe.stopSignal ?? 'SIGTERM');
    if (!keepData) {
      for (const name of this.#recipe.data ?? readdirSync(this.#folder)) {
        rmSync(join(this.#folder, name), { recursive: true, force: true });
      }
      await this.#makeFolder();
    }
    await this.#spawn();
  }

  #running(): number {
    if (this.pid !== undefined) return this.pid;
    throw new GuardError('unavailable', `the ${this.#recipe.kind} server does not run: ${this.#lastLines()}`);
  }

  /** Writes what is missing: the files of the recipe, and the data folder. */
  async #makeFolder(): Promise<void> {
    const present = readdirSync(this.#folder);
    for (const [name, content] of Object.entries(this.#recipe.files?.(this.#folder) ?? {})) {
      if (present.includes(name)) continue;
      writeFileSync(join(this.#folder, name), content);
      this.#own(join(this.#folder, name));
    }
    await prepareData(this.#recipe, this.version, this.#folder, this.#ids ?? {});
  }

  async #spawn(): Promise<void> {
    const log = openSync(join(this.#folder, LOG), 'a');
    const child = spawn(this.#path, this.#recipe.args(this.#folder), {
      ...this.#where(),
      detached: true,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    child.unref();
    let failure: Error | undefined;
    child.once('error', (error) => (failure = error));
    child.once('exit', (code, signal) => {
      failure ??= new Error(`it ended with ${signal ?? code}`);
      if (this.#child !== child) return;
      this.#child = undefined;
      // Its data stays, for a restart; its process id may soon be somebody else's.
      record(this.#folder);
    });
    this.#child = child;
    if (child.pid !== undefined) record(this.#folder, child.pid);
    await untilReady(
      { ...this.#recipe, isReady: this.#isReady(child) },
      { failure: () => failure, log: () => this.#lastLines() },
    );
  }

  /** Whether it serves, and it is the one that was started: somebody else's server may have taken the port. */
  #isReady(child: ChildProcess): () => Promise<boolean> {
    const { port, isReady } = this.#recipe;
    const settled = settling();
    return async () => {
      const asked = isReady();
      const answer = await asked.catch(() => true);
      if (!answer || child.pid === undefined) return false;
      const listener = listenerOn(port, child.pid);
      if (listener === 'foreign') throw new Error('address already in use: another process listens there');
      return (await asked) && (listener === 'ours' || settled());
    };
  }

  /** Ends the process, if it runs: with a signal that it may obey, else without asking. */
  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    const { pid } = child;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    // Whoever waits for its end has to live that long.
    child.ref();
    if (signal === 'SIGKILL') signalTree(pid, 'SIGKILL');
    else {
      signalTree(pid, 'SIGCONT');
      child.kill(signal);
    }
    const { endWithinMs = END_WITHIN_MS } = this.#recipe;
    const timer = systemClock.setTimer(() => signalTree(pid, 'SIGKILL'), endWithinMs);
    await ended;
    timer.cancel();
  }

  #where(): { cwd: string; env: NodeJS.ProcessEnv; uid?: number; gid?: number } {
    return { cwd: this.#folder, env: { ...process.env, LC_ALL: 'C', HOME: this.#folder }, ...this.#ids };
  }

  #own(path: string): void {
    if (this.#ids !== undefined) chownSync(path, this.#ids.uid, this.#ids.gid);
  }

  #lastLines(): string {
    try {
      return readFileSync(join(this.#folder, LOG), 'utf8').trim().split('\n').slice(-15).join('\n');
    } catch {
      return 'no log';
    }
  }
}

function placeOf({ inMemory = false }: Recipe): string {
  if (!inMemory) return tmpdir();
  try {
    accessSync(MEMORY, constants.W_OK);
    return MEMORY;
  } catch {
    return tmpdir();
  }
}
