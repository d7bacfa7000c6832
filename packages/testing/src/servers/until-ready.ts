/** Waits for a server that was just started, and says why it does not come. */
import { GuardError, systemClock } from '@guard/core';
import type { Recipe } from './recipe.js';

const READY_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 25;
/** By then a server that found its port taken has ended. */
const SETTLED_AFTER_MS = 400;

/** What tells about a server that starts. */
export interface Looks {
  /** Why it never will serve: above all that its process has ended. Then nobody who answers is this server. */
  readonly failure: () => Error | undefined;
  /** What it wrote last. */
  readonly log: () => string | Promise<string>;
}

/** Resolves when the server serves. */
export async function untilReady({ kind, port, isReady }: Recipe, { failure, log }: Looks): Promise<void> {
  const giveUpAt = systemClock.now().monoMs + READY_WITHIN_MS;
  for (;;) {
    let hopeless: Error | undefined;
    const ready = await isReady().catch((error: unknown) => {
      hopeless = error as Error;
      return false;
    });
    const cause = failure() ?? hopeless;
    if (cause === undefined && ready) return;
    if (cause !== undefined || systemClock.now().monoMs > giveUpAt) {
      const why = cause?.message ?? `it does not answer after ${READY_WITHIN_MS} ms`;
      throw new GuardError('unavailable', `${kind} did not start on port ${port}: ${why}\n${await log()}`, {
        cause,
      });
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/**
 * For a server that answers, though nothing tells whether it is the one that was started: says yes once it has been
 * asked for a while, in which the one that was started would have ended if it were not.
 */
export function settling(): () => boolean {
  let firstMs: number | undefined;
  return () => {
    const { monoMs } = systemClock.now();
    firstMs ??= monoMs;
    return monoMs - firstMs >= SETTLED_AFTER_MS;
  };
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
