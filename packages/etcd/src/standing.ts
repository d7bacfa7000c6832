/** The lease that the key of a claim stands under, or is to stand under. */
import type { Instant } from '@guard/core';
import type { Own } from './claims.js';
import type { Session, Sessions } from './sessions.js';

/**
 * Where a granted claim is to stand. One that was promised a longer time stays where it is until a ttl from now is
 * longer (S5); one whose lease is as long as the ttl asks stays too, also where that takes no new claims any more.
 */
export async function sessionFor(
  sessions: Sessions,
  own: Own,
  ttlMs: number,
  now: Instant,
): Promise<Session> {
  return staysAt(own, ttlMs, now) ?? sessions.take(ttlMs);
}

/** Where it is to stay, if it is. */
export function staysAt({ home, held, untilMs }: Own, ttlMs: number, now: Instant): Session | undefined {
  if (home === undefined || !held || home.over || home.leaseMs <= ttlMs) return undefined;
  const isLonger = untilMs > now.monoMs + ttlMs;
  return isLonger || home.leaseMs - ttlMs <= 1_000 ? home : undefined;
}

/** Its key stands under a lease that is over, or under none that is known. */
export function standsUnderNothing({ home, created }: Own): boolean {
  return home === undefined ? created !== undefined : home.over;
}
