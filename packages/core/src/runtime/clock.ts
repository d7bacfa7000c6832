/**
 * The system's clocks and timers: the only file of Guard that touches them.
 */
import { performance } from 'node:perf_hooks';
import type { Clock, Timer, TimerOptions } from '../port/clock.js';
import type { Instant } from '../value/instant.js';

/** The longest delay that the platform's timer holds; a longer one would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** The clock of the machine. */
export const systemClock: Clock = {
  now: (): Instant => ({ monoMs: performance.now(), wallMs: Date.now() }),
  setTimer,
  yield: (run) => void setImmediate(run),
};

function setTimer(run: () => void, delayMs: number, options: TimerOptions = {}): Timer {
  if (delayMs === Infinity) return { cancel: () => undefined };
  const dueMs = performance.now() + delayMs;
  let alive = options.ref !== false;
  let handle = arm();
  return {
    cancel: () => clearTimeout(handle),
    keepAlive: (wanted) => {
      alive = wanted;
      if (alive) handle.ref();
      else handle.unref();
    },
  };

  function arm(): NodeJS.Timeout {
    const leftMs = dueMs - performance.now();
    // A platform timer may fire a fraction early; whoever asked for a delay must never see it undercut.
    const timeout = setTimeout(fire, Math.min(Math.max(Math.ceil(leftMs), 0), MAX_TIMER_MS));
    if (!alive) timeout.unref();
    return timeout;
  }

  function fire(): void {
    if (performance.now() >= dueMs) run();
    else handle = arm();
  }
}
