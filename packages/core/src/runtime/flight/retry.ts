/** The one way to repeat a whole call: for questions and state, which have no claim to keep track of. */
import { backoffMs } from '../../machine/backoff.js';
import type { Clock, Random } from '../../port/clock.js';
import { pause, within } from './pause.js';
import { isPermanent, unavailable } from './outage.js';

/** What a retry needs. */
export interface RetryHost {
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Calls until it succeeds, a fault is permanent, or the budget is spent.
 *
 * @throws GuardError `unavailable` with the last fault as `cause`; a permanent fault as it is.
 */
export async function retrying<T>(
  host: RetryHost,
  budgetMs: number,
  what: string,
  call: () => Promise<T>,
): Promise<T> {
  const endMonoMs = host.clock.now().monoMs + budgetMs;
  for (let failures = 1; ; failures += 1) {
    try {
      return await call();
    } catch (cause) {
      const pauseMs = backoffMs(failures, host.random.fraction());
      const spent = host.clock.now().monoMs + pauseMs >= endMonoMs;
      if (isPermanent(cause) || spent) throw unavailable(what, cause);
      await pause(host.clock, pauseMs);
    }
  }
}

/** The same for a call that may never be answered: it is given half of the budget, and then sent again (L3). */
export function asking<T>(
  host: RetryHost,
  budgetMs: number,
  what: string,
  call: () => Promise<T>,
): Promise<T> {
  const late = (): Error => new Error(`no answer within ${budgetMs / 2} ms`);
  return retrying(host, budgetMs, what, () => within(host.clock, budgetMs / 2, call(), late));
}
