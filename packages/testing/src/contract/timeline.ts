/**
 * The time that a case runs in: a virtual clock for adapters in memory, the system's for real servers. A case's main
 * line lets time pass and waits for promises only through this, so it is written once for both.
 */
import { systemClock, type Clock } from '@guard/core';
import type { VirtualClock } from '../clock/virtual-clock.js';

/** Time as a case sees it. */
export interface Timeline {
  readonly virtual: boolean;
  readonly clock: Clock;
  /** Monotonic milliseconds. */
  now(): number;
  /** Lets time pass; only the main line of a case calls it. */
  pass(ms: number): Promise<void>;
  /** Waits until a promise settles; fails the case when that takes longer than `withinMs`. Main line only. */
  until<T>(promise: Promise<T>, withinMs: number, what?: string): Promise<T>;
  /** Waits until `look` says yes. Main line only. */
  untilTrue(look: () => boolean | Promise<boolean>, withinMs: number, what: string): Promise<void>;
}

/** The timeline of a virtual clock, or of the system's. */
export function timelineOf(clock?: VirtualClock): Timeline {
  return clock === undefined ? realTimeline() : virtualTimeline(clock);
}

function virtualTimeline(clock: VirtualClock): Timeline {
  const now = (): number => clock.now().monoMs;
  return {
    virtual: true,
    clock,
    now,
    pass: (ms) => clock.advance(ms),
    until: (promise, withinMs, what) => clock.runUntil(promise, withinMs, what),
    untilTrue: async (look, withinMs, what) => {
      const endMs = now() + withinMs;
      while (!(await look())) {
        if (now() >= endMs) throw new Error(`${what}: not within ${withinMs} ms`);
        await clock.advance(Math.min(5, endMs - now()));
      }
    },
  };
}

function realTimeline(): Timeline {
  const now = (): number => systemClock.now().monoMs;
  const pass = (ms: number): Promise<void> =>
    new Promise((resolve) => void systemClock.setTimer(resolve, ms));
  return {
    virtual: false,
    clock: systemClock,
    now,
    pass,
    until: (promise, withinMs, what = 'the promise') => {
      let fail: (error: Error) => void = () => undefined;
      const late = new Promise<never>((_resolve, reject) => (fail = reject));
      const error = new Error(`${what} is still pending after ${withinMs} ms`);
      const timer = systemClock.setTimer(() => fail(error), withinMs);
      return Promise.race([promise, late]).finally(() => timer.cancel());
    },
    untilTrue: async (look, withinMs, what) => {
      const endMs = now() + withinMs;
      while (!(await look())) {
        if (now() >= endMs) throw new Error(`${what}: not within ${withinMs} ms`);
        await pass(5);
      }
    },
  };
}
