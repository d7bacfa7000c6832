/** Waits for a server that was just started, and says why it does not come. */
import { GuardError, systemClock } from '@guard/core';
import type { Recipe } from './recipe.js';

const READY_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 25;

/** Resolves when the server serves. `failure` is why it never will, `log` what it wrote last. */
export async function untilReady(
  { kind, port, isReady }: Recipe,
  failure: () => Error | undefined,
  log: () => string,
): Promise<void> {
  const giveUpAt = systemClock.now().monoMs + READY_WITHIN_MS;
  while (!(await isReady())) {
    const cause = failure();
    const late = systemClock.now().monoMs > giveUpAt;
    if (cause !== undefined || late) {
      const why = cause?.message ?? `it does not answer after ${READY_WITHIN_MS} ms`;
      throw new GuardError('unavailable', `${kind} did not start on port ${port}: ${why}\n${log()}`, {
        cause,
      });
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** Waits until `look` answers something other than `undefined`; rejects after `limitMs`. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined>,
  limitMs = READY_WITHIN_MS,
): Promise<T> {
  const giveUpAt = systemClock.now().monoMs + limitMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (systemClock.now().monoMs > giveUpAt) {
      throw new GuardError('unavailable', `${what}: not within ${limitMs} ms`);
    }
    await sleep(LOOK_EVERY_MS);
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.setTimer(resolve, ms));
}
