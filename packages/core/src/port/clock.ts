/**
 * Time and chance as ports, so that tests can hold both in their hands. Nothing in Guard reads a clock, sets a timer
 * or draws a random number except through these two.
 */
import type { Instant } from '../value/instant.js';

/** A timer that was set. */
export interface Timer {
  /** Forgets the timer; without effect once it has fired. */
  cancel(): void;
  /**
   * Says anew whether the timer keeps the process alive (L5): cheaper than a new timer. A clock without it is asked for
   * new timers instead.
   */
  keepAlive?(alive: boolean): void;
}

/** What a timer may ask for. */
export interface TimerOptions {
  /** `false`: the timer does not keep the process alive (L5). Default `true`. */
  readonly ref?: boolean;
}

/** Monotonic time, wall time and timers. */
export interface Clock {
  /** Both clocks, read together. */
  now(): Instant;
  /**
   * Calls `run` once after at least `delayMs`; any finite delay is kept exactly, also beyond the 24.8 days that the
   * platform's own timers can hold. An infinite delay never fires.
   */
  setTimer(run: () => void, delayMs: number, options?: TimerOptions): Timer;
  /** Calls `run` after the event loop had a turn for timers and I/O. */
  yield(run: () => void): void;
}

/** Where unpredictable values come from. */
export interface Random {
  /** An id that no other process and no earlier start has ever drawn (at least 120 bits). */
  id(): string;
  /** A number in [0, 1), for jitter only. */
  fraction(): number;
}

/**
 * What runs calls to a backend: a place for timeouts, breakers and bulkheads. A policy of the library cockatiel fits
 * as it is. It must call `fn` at most once per execution: Guard retries by itself, with the same claim or write id.
 */
export interface Policy {
  /** Runs `fn`, or rejects without running it. */
  execute<T>(fn: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}
