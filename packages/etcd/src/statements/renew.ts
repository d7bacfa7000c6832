/**
 * Renew by moving: a lock that was handed over stands under the lease of its ticket, and an extended one wants a longer
 * lease. The key is put again under another lease, which keeps the revision that created it, its token.
 *
 * Answers: succeeded → moved; else the claim does not hold the lock.
 */
import type { KeyRange } from '../names.js';
import { createdBy, noneOlder, put, type Step } from './txn.js';

export function move(lock: KeyRange, name: Buffer, created: bigint, value: Buffer, lease: string): Step {
  return {
    compare: [createdBy(name, created), noneOlder(lock, created)],
    success: [put(name, value, lease)],
  };
}
