/**
 * The value of a claim's key: the claim's id first, so that etcd can compare it, then who asks. `waits` tells a ticket
 * from a holder's key: the oldest key holds the lock in any case, but one that still says it waits may not know yet.
 */
import type { Claim, Holder } from '@guard/core';

/** What a claim's key says. */
export interface LockValue {
  readonly claim: string;
  readonly session: string;
  readonly holder: Holder;
  readonly waits: boolean;
}

export function writeValue({ id, session, holder }: Claim, waits: boolean): Buffer {
  return Buffer.from(`${id}|${JSON.stringify({ session, holder, ...(waits ? { waits } : undefined) })}`);
}

/** Texts between which every value of a claim stands, and no other. */
export function boundsOf(claim: string): readonly [string, string] {
  return [`${claim}|`, `${claim}}`];
}

/** `undefined`: it was not written by Guard. */
export function readValue(value: Buffer): LockValue | undefined {
  const text = value.toString();
  const end = text.indexOf('|');
  if (end < 0) return undefined;
  try {
    const rest = JSON.parse(text.slice(end + 1)) as Partial<LockValue>;
    const { session = '', holder = { label: '' }, waits = false } = rest;
    return { claim: text.slice(0, end), session, holder, waits };
  } catch {
    return undefined;
  }
}
