/** `lock.extend`: one renewal with a ttl of its own, repeated within a bounded time while the lock is held. */
import { backoffMs } from '../../machine/backoff.js';
import type { RenewAnswer } from '../../port/lock-backend.js';
import type { Landing } from '../flight/operation.js';
import type { Grant, LeaseHost } from './lease-host.js';
import { pause } from '../flight/pause.js';

const BUDGET_MS = 5_000;

/** The lease that is extended. */
export interface ExtendableLease extends Grant {
  assertHeld(): void;
  landed(landing: Landing<RenewAnswer>, ttlMs: number): void;
}

/**
 * Makes the lease last at least `ttlMs` from now.
 *
 * @throws GuardError `lock-lost`, `lock-suspect`, `unavailable`.
 */
export async function extendLease(host: LeaseHost, lease: ExtendableLease, ttlMs: number): Promise<void> {
  const giveUpMonoMs = host.clock.now().monoMs + BUDGET_MS;
  for (let failures = 1; ; failures += 1) {
    lease.assertHeld();
    const landing = await host.renew(lease, ttlMs);
    lease.landed(landing, ttlMs);
    lease.assertHeld();
    if (landing.ok && landing.answer.status === 'renewed') return;
    if (host.clock.now().monoMs >= giveUpMonoMs) {
      throw host.unavailable(`extend of ${lease.key}`, causeOf(landing));
    }
    await pause(host.clock, backoffMs(failures, host.random.fraction()));
  }
}

function causeOf(landing: Landing<RenewAnswer>): unknown {
  if (!landing.ok) return landing.cause;
  return landing.answer.status === 'failed' ? landing.answer.cause : undefined;
}
