/** Single operations on a lock backend, as tests of locks want them. */
import type { Claim, ClaimAnswer, LeaseRef, LockBackend, LockInfo } from '@guard/core';

let ids = 0;

/** A claim with an id and a session of its own. */
export function claim(over: Partial<Claim> = {}): Claim {
  ids += 1;
  const id = `claim-${process.pid}-${ids}`;
  return {
    ...{ key: 'ns/lock/k', id, ttlMs: 3_000, wait: false, ticketTtlMs: 900, session: `session of ${id}` },
    holder: { label: `node of ${id}` },
    ...over,
  };
}

export async function ask(locks: LockBackend, wanted: Claim): Promise<ClaimAnswer> {
  const [answer] = await locks.acquire([wanted]);
  return answer!;
}

/** A claim that must be granted. */
export async function granted(locks: LockBackend, wanted: Claim = claim()): Promise<LeaseRef> {
  const answer = await ask(locks, wanted);
  if (answer.status !== 'granted') throw new Error(`expected a grant, got ${JSON.stringify(answer)}`);
  return { key: wanted.key, claim: wanted.id, token: answer.token, session: wanted.session };
}

export async function release(locks: LockBackend, lease: LeaseRef): Promise<string> {
  const [answer] = await locks.release([lease]);
  return answer!.status;
}

export async function renew(locks: LockBackend, lease: LeaseRef, ttlMs = 3_000): Promise<string> {
  const [answer] = await locks.renew([{ ...lease, ttlMs }]);
  return answer!.status;
}

export async function look(locks: LockBackend, key = 'ns/lock/k'): Promise<LockInfo> {
  const [info] = await locks.inspect({ keys: [key] });
  return info!;
}
