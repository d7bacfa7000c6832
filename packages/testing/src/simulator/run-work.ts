/**
 * What applications do with single runs: calls with keys that other nodes call too, of registered tasks and of others,
 * with works that take their time, fail, and do not always listen.
 */
import { currentLock, GuardError, type Run, type RunOutcome, type RunSettings, type Task } from '@guard/core';
import type { Books } from './books.js';
import { callBounds } from './bounds.js';
import type { Belief } from './laws/beliefs.js';
import { SCHEDULED } from './laws/occurrences.js';
import type { Call } from './laws/calls.js';
import type { SimNode } from './node.js';
import { between, chance } from './chance.js';
import type { Stage } from './stage.js';

/** Tasks that every node registers, and so can go on with. */
export const REGISTERED: readonly string[] = ['plain', 'stubborn', 'undone'];

/** What works throw by themselves. */
class WorkError extends Error {}

/** What the works of one call did. */
interface OwnWork {
  readonly returned: string[];
  /** The last one rejected when its signal had told it to stop. */
  threwLate: boolean;
}

/** The runs of one process. */
export class RunWork {
  readonly #settings: RunSettings;
  readonly #tasks: readonly Task<string, string>[];
  /** Runs whose work has not settled here. */
  readonly #working = new Set<string>();
  #results = 0;

  constructor(
    private readonly stage: Stage,
    private readonly node: SimNode,
    private readonly books: Books,
    private readonly underLock: (belief: Belief) => Promise<void>,
  ) {
    const { ttlMs } = stage.plan;
    this.#settings = { ttl: ttlMs, settleTimeout: '10s' };
    this.#tasks = [
      this.#register('plain', {}),
      this.#register('stubborn', { retry: { attempts: 3, backoff: { initial: ttlMs, jitter: 0.5 } } }),
      this.#register('undone', { onCrash: 'fail', compensate: () => this.#compensate() }),
    ];
    if (stage.plan.schedules) this.#schedule();
  }

  /** Makes this process a node that goes on with what others left. */
  async start(): Promise<void> {
    try {
      await this.node.guard.start();
      this.#note('sweeps');
    } catch (error) {
      this.#note(`does not sweep: ${String(error)}`);
      // Where the backend lost its data, the locks of all nodes are gone at once.
      const codes = ['unavailable', 'closed', 'backend-mismatch'] as const;
      if (!codes.some((code) => GuardError.is(error, code))) this.#broken('S6', `start: ${String(error)}`);
    }
  }

  /** One call, of a key that the other nodes call at about the same time. */
  async call(): Promise<void> {
    const { random, world, plan } = this.stage;
    const key = `r${Math.floor(world.nowMs / (4 * plan.ttlMs))}`;
    const wait = chance(random, 0.5) ? Math.ceil(between(random, 0, 2) * plan.ttlMs) : 0;
    const [first, ...others] = this.#tasks;
    const task = random.pick([first!, ...others]);
    if (chance(random, 0.7)) return this.#settled(task.name, key, () => task.run(key, { wait }));
    const own: OwnWork = { returned: [], threwLate: false };
    const options = { ...this.#settings, key, wait };
    return this.#settled(
      'adhoc',
      key,
      () => this.node.guard.run('adhoc', options, (run) => this.#work(run, own)),
      own,
    );
  }

  #register(
    name: string,
    settings: RunSettings & { readonly compensate?: () => Promise<void> },
  ): Task<string, string> {
    const options = { ...this.#settings, ...settings, key: (input: string) => input };
    return this.node.guard.task(name, options, (run) => this.#work(run));
  }

  /** A task that nobody calls. */
  #schedule(): void {
    const { periodMs } = this.stage.plan;
    const catchUp = (['none', 'latest', { all: { max: 3 } }] as const)[
      Math.floor(this.stage.random.seed / 4) % 3
    ]!;
    const options = { ...this.#settings, every: periodMs, catchUp };
    this.node.guard.task(SCHEDULED, options, (run) => this.#work(run));
  }

  /** `own`: what the works of this very call did, where that is known. */
  async #settled(
    task: string,
    key: string,
    ask: () => Promise<RunOutcome<string>>,
    own?: OwnWork,
  ): Promise<void> {
    const { calls, runs } = this.books;
    const call = calls.start(this.node, `run ${task} ${key}`, callBounds(this.stage.plan).run);
    this.#note(call.name);
    try {
      const outcome = await ask();
      this.#note(`${call.name}: ${outcome.status === 'completed' ? outcome.value : outcome.reason}`);
      this.stage.journal.count(`run call ${outcome.status}`);
      if (outcome.status === 'completed') runs.toldCompleted(task, key, outcome.value);
    } catch (error) {
      this.#note(`${call.name}: ${String(error)}`);
      this.#failed(call, error, own);
    } finally {
      calls.end(call);
    }
  }

  #failed(call: Call, error: unknown, own?: OwnWork): void {
    if (error instanceof WorkError) {
      if (own?.threwLate) this.#broken('S7', `${call.name} takes a rejection after the loss for a failure`);
    } else if (GuardError.is(error, 'stale-token')) {
      for (const value of own?.returned ?? []) this.books.runs.toldRefused(value);
      this.stage.journal.count('run finish refused');
    } else if (!GuardError.is(error, 'lock-lost')) this.books.calls.settle(call, { end: 'error', error });
  }

  async #work(run: Run, own?: OwnWork): Promise<string> {
    const name = `${run.task} ${run.key}`;
    this.#note(`works on ${name}, attempt ${run.attempt}, ${run.trigger}`);
    this.stage.journal.count('run worked on');
    if (this.#working.has(name)) this.#broken('S7', `begins ${name} beside an attempt that has not settled`);
    this.#working.add(name);
    try {
      return await this.#attempt(run, own);
    } finally {
      this.#working.delete(name);
    }
  }

  async #attempt(run: Run, own?: OwnWork): Promise<string> {
    const { random } = this.stage;
    const belief = this.#enter(run);
    if (chance(random, 0.3)) run.progress({ by: this.node.name });
    if (belief !== undefined) await this.underLock(belief);
    if (belief !== undefined) this.books.beliefs.exit(belief);
    if (chance(random, 0.2)) {
      if (own !== undefined) own.threwLate = run.signal.aborted;
      throw new WorkError('the work failed');
    }
    const value = `${this.node.name}#${(this.#results += 1)}`;
    this.books.runs.returns(value);
    own?.returned.push(value);
    return value;
  }

  /** Work never begins without its lock, and the lock is believed like any other. */
  #enter(run: Run): Belief | undefined {
    const lock = currentLock();
    if (lock === undefined || !run.guarded) {
      this.#broken('S1', `the work of ${run.task} ${run.key} begins without its lock`);
      return undefined;
    }
    const fullKey = this.books.beliefs.keyOf(this.node, lock.token);
    return this.books.beliefs.enter(this.node, fullKey, this.stage.plan.ttlMs, lock);
  }

  async #compensate(): Promise<void> {
    this.stage.journal.count('run compensated');
    await this.node.sleep(between(this.stage.random, 0, this.stage.plan.ttlMs));
    if (chance(this.stage.random, 0.2)) throw new WorkError('the compensation failed');
  }

  #note(text: string): void {
    this.stage.journal.note(`${this.node.name} ${text}`);
  }

  #broken(promise: 'S1' | 'S6' | 'S7', message: string): void {
    this.stage.journal.broken(promise, `${this.node.name} ${message}`);
  }
}
