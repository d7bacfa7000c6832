/** Time for servers, which know no virtual one: what takes seconds by it is over in a tenth of them. */
import { systemClock, type Clock } from '@guard/core';

const SPEED = 10;

/** Time that passes ten times as fast: a statement has half a second. */
export const fastClock: Clock = {
  now: () => ({ monoMs: performance.now() * SPEED, wallMs: Date.now() }),
  setTimer: (run, ms, options) => systemClock.setTimer(run, ms / SPEED, options),
  yield: (run) => systemClock.yield(run),
};
