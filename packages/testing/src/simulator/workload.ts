/**
 * What applications do, as the workers of each node play it: take locks in every way there is, work under them with
 * care and without, extend, release, give up. Whatever a call says is told to the laws.
 */
import { GuardError, marginMs, type AcquireOptions, type Lock } from '@guard/core';
import { callBounds, type CallBounds } from './bounds.js';
import type { Books } from './books.js';
import type { Belief } from './laws/beliefs.js';
import type { Call } from './laws/calls.js';
import type { SimNode } from './node.js';
import { between, chance } from './chance.js';
import type { Stage } from './stage.js';
import { RunWork } from './run-work.js';
import { StateWork } from './state-work.js';

/** The namespace of every guard, and so the beginning of every key. */
export const NAMESPACE = 'sim';

/** Full key of a lock. */
export function fullLockKey(key: string): string {
  return `${NAMESPACE}/lock/${key}`;
}

/** Full keys of state that applications write by themselves. */
export const STATE_PREFIX = `${NAMESPACE}/state/`;

/** What the work under a lock throws by itself. */
class WorkError extends Error {}

/** The work of one process. */
export class Workload {
  readonly #state: StateWork;
  readonly #runs: RunWork | undefined;
  readonly #bounds: CallBounds;
  #stopping = false;
  #working = 0;
  #sweeps = false;

  constructor(
    private readonly stage: Stage,
    private readonly node: SimNode,
    private readonly books: Books,
    private readonly nextTtlMs: () => number,
  ) {
    this.#state = new StateWork(stage, node, books);
    this.#bounds = callBounds(stage.plan);
    if (stage.plan.runs) this.#runs = new RunWork(stage, node, books, (belief) => this.#underLock(belief));
  }

  /** Starts the workers; some nodes look for what others left, too. */
  start(): void {
    if (chance(this.stage.random, 0.7)) this.sweep();
    for (let worker = 0; worker < this.stage.plan.workers; worker += 1) void this.#work();
  }

  /** Makes this process look for what others left. */
  sweep(): void {
    if (this.#sweeps || this.#runs === undefined) return;
    this.#sweeps = true;
    void this.#runs.start();
  }

  /** The workers end what they do, and begin nothing new. */
  stop(): void {
    this.#stopping = true;
  }

  get isIdle(): boolean {
    return this.#working === 0;
  }

  /** Takes a lock as somebody who has all the time in the world; `false`: did not get it. */
  async probe(key: string, waitMs: number): Promise<boolean> {
    const options = { ttl: this.nextTtlMs(), wait: Math.ceil(waitMs) };
    const lock = await this.#acquire(key, options);
    if (lock === undefined) return false;
    await this.#release(lock);
    return true;
  }

  async #work(): Promise<void> {
    this.#working += 1;
    try {
      while (!this.#stopping && !this.node.closing) {
        await this.node.sleep(between(this.stage.random, 0, this.stage.plan.ttlMs / 2));
        await this.#act();
      }
    } catch (error) {
      this.stage.journal.broken('S6', `${this.node.name}: nobody expects ${String(error)}`);
    }
    this.#working -= 1;
  }

  async #act(): Promise<void> {
    const { random, plan } = this.stage;
    const key = random.pick(plan.keys as [string, ...string[]]);
    if (this.#runs !== undefined && chance(random, 0.25)) return this.#runs.call();
    const dice = random.fraction();
    if (dice < 0.15) return this.#state.compareAndSet();
    if (dice < 0.35) return this.#holdHandle(await this.#try(key));
    if (dice < 0.65) return this.#holdHandle(await this.#acquire(key, this.#waiting()));
    if (dice < 0.9 || plan.keys.length < 2) return this.#withLock(key, this.#waiting());
    return this.#acquireAll(this.#waiting());
  }

  #try(key: string): Promise<Belief | undefined> {
    const options = this.#claiming();
    const call = this.books.calls.start(this.node, `try ${key} ${options.ttl}`, this.#bounds.try, {
      ttlMs: options.ttl,
    });
    return this.#one(key, call, () => this.node.guard.tryAcquire(key, options));
  }

  #acquire(key: string, options: AcquireOptions & { readonly ttl: number; readonly wait: number }) {
    const { ttl, wait, signal } = options;
    const name = `acquire ${key} ${ttl} wait ${wait}`;
    const call = this.books.calls.start(this.node, name, this.#bounds.acquire(wait), { ttlMs: ttl, signal });
    return this.#one(key, call, () => this.node.guard.acquire(key, options));
  }

  async #one(key: string, call: Call, ask: () => Promise<Lock | null>): Promise<Belief | undefined> {
    this.#note(call.name);
    try {
      const lock = await ask();
      if (lock !== null) return this.#enter(key, call, lock);
      this.books.calls.settle(call, { end: 'busy' });
    } catch (error) {
      this.#refused(call, error);
    } finally {
      this.books.calls.end(call);
    }
    return undefined;
  }

  #enter(key: string, call: Call, ...locks: Lock[]): Belief {
    const beliefs = locks.map((lock) => {
      const belief = this.books.beliefs.enter(this.node, fullLockKey(lock.key), call.ttlMs, lock);
      call.used.add(belief.wire.claim);
      this.#note(`has ${lock.key} #${lock.token}`);
      return belief;
    });
    this.stage.journal.count('lock granted');
    this.books.calls.settle(call, { end: 'granted', tokens: locks.map(({ token }) => token) });
    return beliefs.find(({ lock }) => lock.key === key)!;
  }

  #refused(call: Call, error: unknown): void {
    this.#note(`${call.name}: ${String(error)}`);
    if (GuardError.is(error, 'lock-busy')) this.books.calls.settle(call, { end: 'busy' });
    else this.books.calls.settle(call, { end: 'error', error });
  }

  async #holdHandle(belief: Belief | undefined): Promise<void> {
    if (belief === undefined) return;
    await this.#underLock(belief);
    await this.#release(belief);
  }

  async #withLock(
    key: string,
    options: AcquireOptions & { readonly ttl: number; readonly wait: number },
  ): Promise<void> {
    const { calls, beliefs } = this.books;
    const { ttl, wait, signal } = options;
    const bound = this.#bounds.acquire(wait);
    const name = `withLock ${key} ${ttl} wait ${wait}`;
    let call = calls.start(this.node, name, bound, { ttlMs: ttl, signal });
    let belief: Belief | undefined;
    let lostByThen = false;
    this.#note(name);
    try {
      await this.node.guard.withLock(key, options, async (lock) => {
        belief = this.#enter(key, call, lock);
        calls.end(call);
        await this.#underLock(belief);
        beliefs.exit(belief);
        lostByThen = belief.signal.aborted;
        call = calls.start(this.node, `the end of ${name}`, this.#bounds.release);
        if (chance(this.stage.random, 0.2)) throw new WorkError('the work failed');
      });
      if (lostByThen) this.#broken('L1', `${name} resolved, and its lock was lost`);
    } catch (error) {
      if (belief === undefined) this.#refused(call, error);
      else this.#checkFailure(name, belief, lostByThen, error);
    } finally {
      calls.end(call);
    }
  }

  #checkFailure(name: string, belief: Belief, lostByThen: boolean, error: unknown): void {
    this.#note(`${name}: ${String(error)}`);
    if (GuardError.is(error, 'lock-lost')) {
      if (!belief.signal.aborted) this.#broken('S6', `${name} says "lost", and its signal is silent`);
    } else if (!(error instanceof WorkError)) this.#broken('S6', `${name} ended with ${String(error)}`);
    else if (lostByThen) this.#broken('L1', `${name} hides that its lock was lost`);
  }

  async #acquireAll(
    options: AcquireOptions & { readonly ttl: number; readonly wait: number },
  ): Promise<void> {
    const { calls } = this.books;
    const keys = [...this.stage.plan.keys].reverse();
    const { ttl, wait, signal } = options;
    const name = `acquireAll ${keys.join(' ')} ${ttl} wait ${wait}`;
    const call = calls.start(this.node, name, this.#bounds.acquireAll(wait), { ttlMs: ttl, signal });
    this.#note(name);
    let beliefs: Belief[] = [];
    try {
      const set = await this.node.guard.acquireAll(keys, options);
      beliefs = set.locks.map((lock) => this.#enter(lock.key, call, lock));
    } catch (error) {
      // One of the first can be lost while the last is waited for, or leave it no time to be asked for.
      const isLate = error instanceof Error && error.message.includes('no answer within the wait');
      const isLost = GuardError.is(error, 'lock-lost') || GuardError.is(error, 'lock-suspect');
      if (isLate || isLost) call.settledMs = this.stage.world.nowMs;
      else this.#refused(call, error);
    } finally {
      calls.end(call);
    }
    if (beliefs[0] !== undefined) await this.#underLock(beliefs[0]);
    await Promise.all(beliefs.map((belief) => this.#release(belief)));
  }

  async #underLock(belief: Belief): Promise<void> {
    const { random, plan } = this.stage;
    for (let left = random.integer(0, 4); left > 0; left -= 1) {
      await this.node.sleep(between(random, 0, plan.ttlMs * 0.6));
      // Most applications stop when their lock is lost. Some do not.
      if (belief.signal.aborted && chance(random, 0.6)) return;
      const dice = random.fraction();
      if (dice < 0.25) await this.#extend(belief);
      else if (dice < 0.7) await this.#state.writeUnder(belief);
    }
  }

  async #extend(belief: Belief): Promise<void> {
    const { lock, node } = belief;
    const { calls } = this.books;
    const durationMs = Math.ceil(between(this.stage.random, 0.5, 4) * this.stage.plan.ttlMs);
    const call = calls.start(node, `extend ${lock.key} by ${durationMs}`, this.#bounds.extend);
    const startedMs = node.clock.now().monoMs;
    this.#note(call.name);
    try {
      await lock.extend(durationMs);
      const leastMs = durationMs - marginMs(durationMs) - (node.clock.now().monoMs - startedMs);
      const clocksAreSteady =
        !this.stage.plan.faults.has('wall-step') && !this.stage.plan.faults.has('suspend');
      if (clocksAreSteady && lock.remainingMs() < leastMs - 1)
        this.#broken('S5', `${call.name}: ${lock.remainingMs()} ms are left of at least ${leastMs}`);
    } catch (error) {
      this.#note(`${call.name}: ${String(error)}`);
      const lost = GuardError.is(error, 'lock-lost') || GuardError.is(error, 'lock-suspect');
      if (!lost) calls.settle(call, { end: 'error', error });
    } finally {
      calls.end(call);
    }
  }

  async #release(belief: Belief): Promise<void> {
    const { lock, node, signal } = belief;
    const { calls, grants } = this.books;
    const lostBefore = signal.aborted;
    const call = calls.start(node, `release ${lock.key}`, this.#bounds.release);
    this.books.beliefs.exit(belief);
    const result = await lock.release();
    calls.end(call);
    if (this.stage.plan.atOnce) await this.books.booked();
    this.#note(`release ${lock.key} #${lock.token}: ${result}`);
    this.stage.journal.count(`release says ${result}`);
    const gone = result === 'released' || (result === 'lost' && !lostBefore && !signal.aborted);
    if (gone && grants.surelyKeeps(belief.fullKey, lock.token))
      this.#broken('S6', `release of ${lock.key} says "${result}", and the backend keeps it`);
  }

  #claiming(): { readonly ttl: number; readonly renew?: false } {
    const ttl = this.nextTtlMs();
    return chance(this.stage.random, 0.2) ? { ttl, renew: false } : { ttl };
  }

  #waiting(): AcquireOptions & { readonly ttl: number; readonly wait: number } {
    const { random, plan } = this.stage;
    const wait = chance(random, 0.1) ? Infinity : Math.ceil(between(random, 0.1, 3) * plan.ttlMs);
    const options = { ...this.#claiming(), wait };
    if (!chance(random, 0.3)) return options;
    const controller = new AbortController();
    const abort = (): void => controller.abort(new Error('the caller changed its mind'));
    void this.node.sleep(between(random, 0, 2) * plan.ttlMs).then(abort);
    return { ...options, signal: controller.signal };
  }

  #note(text: string): void {
    this.stage.journal.note(`${this.node.name} ${text}`);
  }

  #broken(promise: 'S5' | 'S6' | 'L1', message: string): void {
    this.stage.journal.broken(promise, `${this.node.name} ${message}`);
  }
}
