/**
 * Child processes of tests: they run TypeScript as it is, report by messages, and die only by what the test does to
 * them or by their own end. Strict: an unhandled rejection or a warning about leaks ends a child with an error.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** A child that was started by a test. */
export class Child {
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly #process: ChildProcess;
  readonly #messages: unknown[] = [];
  readonly #readers: ((message: unknown) => void)[] = [];
  #errors = '';

  constructor(script: string, input: unknown, options: { readonly uid?: number } = {}) {
    const hooks = join(__dirname, 'register-hooks.mjs');
    const flags = ['--conditions=@guard/source', '--unhandled-rejections=strict', '--import', hooks];
    this.#process = spawn(process.execPath, [...flags, join(__dirname, '../process', script)], {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      env: { ...process.env, GUARD_TEST_INPUT: JSON.stringify(input) },
      ...options,
    });
    this.#process.on('message', (message) => this.#take(message));
    this.#process.stderr!.on('data', (chunk) => (this.#errors += String(chunk)));
    this.ended = once(this.#process, 'exit').then(([code, signal]) => ({ code, signal }));
    children.add(this);
    void this.ended.then(() => children.delete(this));
  }

  /** The next message; fails if the child ends before it sends one. */
  next<T = unknown>(): Promise<T> {
    if (this.#messages.length > 0) return Promise.resolve(this.#messages.shift() as T);
    return Promise.race([
      new Promise<T>((resolve) => this.#readers.push(resolve as (message: unknown) => void)),
      this.ended.then(({ code, signal }) => {
        throw new Error(`the child ended (${code ?? signal}) without a message\n${this.#errors}`);
      }),
    ]);
  }

  tell(message: unknown): void {
    this.#process.send(message as object);
  }

  /** Sends a signal to this very process. */
  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** The end of a child that should end by itself, without an error. */
  async finish(): Promise<void> {
    const { code, signal } = await this.ended;
    if (code !== 0 || this.#errors.includes('Warning')) {
      throw new Error(`the child ended with ${code ?? signal}\n${this.#errors}`);
    }
  }

  #take(message: unknown): void {
    const reader = this.#readers.shift();
    if (reader === undefined) this.#messages.push(message);
    else reader(message);
  }
}

const children = new Set<Child>();

/** Ends the children that are still there, each by its own handle. */
export async function endChildren(): Promise<void> {
  const left = [...children];
  for (const child of left) child.signal('SIGKILL');
  await Promise.all(left.map(({ ended }) => ended));
}
