/**
 * Time that a test holds in its hand. Monotonic and wall time are two numbers, and nothing moves them but the test;
 * between two timers the clock lets every promise and every turn of the event loop settle, so that code which awaits
 * a backend in memory gets exactly as far as it would in real life.
 */
import {
  checkOptions,
  systemClock,
  type Clock,
  type Instant,
  type Timer,
  type TimerOptions,
} from '@guard/core';
import { requireFunction, requireMethods, requireNumber } from '../argument.js';

/** Where a virtual clock starts. */
export interface VirtualClockOptions {
  /** Default 1,000: unlike the wall time, so that whoever mixes the two up is found out. */
  readonly monoMs?: number;
  /** Milliseconds since the epoch. Default: the first of January 2026, 00:00 UTC. */
  readonly wallMs?: number;
}

/** Timers that were set and have neither fired nor been cancelled. */
export interface PendingTimers {
  readonly total: number;
  /** Those that would keep a process alive (L5). */
  readonly ref: number;
}

interface PendingTimer {
  readonly dueMs: number;
  readonly order: number;
  readonly ref: boolean;
  readonly run: () => void;
}

/** Turns of the event loop that pass after the last yield before the code under test counts as at rest. */
const QUIET_TURNS = 3;
/** A code under test that yields more often than this without a timer between never comes to rest. */
const MAX_TURNS = 100_000;

/** A clock for tests: see `advance`, `shiftWall`, `suspend` and `block`. */
export class VirtualClock implements Clock {
  #monoMs: number;
  #wallMs: number;
  #order = 0;
  #yields = 0;
  #advancing = false;
  /** By due time, then by creation. */
  readonly #timers: PendingTimer[] = [];

  constructor(options: VirtualClockOptions = {}) {
    checkOptions('options', options, ['monoMs', 'wallMs']);
    if (options.monoMs !== undefined) requireNumber('options.monoMs', options.monoMs);
    if (options.wallMs !== undefined) requireNumber('options.wallMs', options.wallMs);
    this.#monoMs = options.monoMs ?? 1_000;
    this.#wallMs = options.wallMs ?? Date.UTC(2026, 0, 1);
  }

  now(): Instant {
    return { monoMs: this.#monoMs, wallMs: this.#wallMs };
  }

  setTimer(run: () => void, delayMs: number, options: TimerOptions = {}): Timer {
    requireFunction('run', run);
    checkOptions('options', options, ['ref']);
    if (delayMs !== Infinity && delayMs !== -Infinity) requireNumber('delayMs', delayMs);
    if (delayMs === Infinity) return { cancel: () => undefined };
    const dueMs = this.#monoMs + Math.max(delayMs, 0);
    const timer: PendingTimer = { dueMs, order: this.#order++, ref: options.ref !== false, run };
    this.#timers.splice(this.#placeOf(timer), 0, timer);
    return { cancel: () => this.#forget(timer) };
  }

  yield(run: () => void): void {
    requireFunction('run', run);
    this.#yields += 1;
    systemClock.yield(() => {
      this.#yields -= 1;
      run();
    });
  }

  /** Timers that were set and have neither fired nor been cancelled. */
  get pendingTimers(): PendingTimers {
    return { total: this.#timers.length, ref: this.#timers.filter((timer) => timer.ref).length };
  }

  /**
   * Lets `ms` pass on both clocks. Timers that are due fire in the order of their time, then of their creation, and
   * the code under test comes to rest before the next one does. What a timer throws is what `advance` rejects with.
   */
  async advance(ms: number): Promise<void> {
    requireNumber('ms', ms, 0);
    if (this.#advancing) throw new Error('the clock is being advanced already: await the first advance');
    this.#advancing = true;
    try {
      const targetMs = this.#monoMs + ms;
      await this.#rest();
      for (let timer = this.#nextDue(targetMs); timer !== undefined; timer = this.#nextDue(targetMs)) {
        this.#forget(timer);
        this.#passUntil(timer.dueMs);
        timer.run();
        await this.#rest();
      }
      this.#passUntil(targetMs);
      await this.#rest();
    } finally {
      this.#advancing = false;
    }
  }

  /**
   * Lets time pass from timer to timer until `promise` settles, and answers what it answers: for code under test that
   * sleeps in loops of its own. Rejects when `withinMs` pass first, or when no timer is left that could move anything.
   */
  async runUntil<T>(promise: Promise<T>, withinMs = 3_600_000, what = 'the promise'): Promise<T> {
    requireMethods('promise', promise, 'a promise', ['then']);
    if (withinMs !== Infinity) requireNumber('withinMs', withinMs, 0);
    let settled = false;
    const done = (): void => void (settled = true);
    promise.then(done, done);
    const endMs = this.#monoMs + withinMs;
    for (await this.settle(); !settled;) {
      const [next] = this.#timers;
      if (next === undefined) throw new Error(`${what} is pending, and no timer is left`);
      if (next.dueMs > endMs) throw new Error(`${what} is still pending after ${withinMs} ms`);
      await this.advance(Math.max(next.dueMs - this.#monoMs, 0));
    }
    return promise;
  }

  /** Fires what is due now and lets the code under test come to rest; no time passes. */
  settle(): Promise<void> {
    return this.advance(0);
  }

  /** Steps the wall clock, forward or back, as an administrator or a time service does. */
  shiftWall(ms: number): void {
    requireNumber('ms', ms);
    this.#wallMs += ms;
  }

  /** The machine sleeps: wall time passes, monotonic time does not, and no timer fires. */
  suspend(ms: number): void {
    requireNumber('ms', ms, 0);
    this.#wallMs += ms;
  }

  /**
   * A blocked event loop or a stopped process: both clocks go on, and no timer fires. Synchronous, so that it can
   * stand for a busy loop in the middle of the work. What became due fires late, at the next `advance` or `settle`.
   */
  block(ms: number): void {
    requireNumber('ms', ms, 0);
    this.#passUntil(this.#monoMs + ms);
  }

  async #rest(): Promise<void> {
    let quiet = 0;
    for (let turns = 0; quiet < QUIET_TURNS; turns += 1) {
      if (turns === MAX_TURNS) throw new Error(`no rest after ${MAX_TURNS} turns: the code yields for ever`);
      await new Promise<void>((resolve) => systemClock.yield(resolve));
      quiet = this.#yields > 0 ? 0 : quiet + 1;
    }
  }

  #nextDue(targetMs: number): PendingTimer | undefined {
    const [first] = this.#timers;
    // Time can be beyond the target already, where the code under test blocked the loop.
    return first !== undefined && first.dueMs <= Math.max(targetMs, this.#monoMs) ? first : undefined;
  }

  #passUntil(monoMs: number): void {
    const ms = Math.max(monoMs - this.#monoMs, 0);
    this.#monoMs += ms;
    this.#wallMs += ms;
  }

  #forget(timer: PendingTimer): void {
    const place = this.#placeOf(timer);
    if (this.#timers[place] === timer) this.#timers.splice(place, 1);
  }

  #placeOf(timer: PendingTimer): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#timers[middle]!;
      const before = other.dueMs < timer.dueMs || (other.dueMs === timer.dueMs && other.order < timer.order);
      if (before) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
