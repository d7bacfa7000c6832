/**
 * Renew by moving: a lock that was handed over stands under the lease of its ticket, and an extended one wants a longer
 * lease. The key is put again under another lease, which keeps the revision that created it, its token.
 *
 * Answers: succeeded → moved; else the key: the claim does not hold the lock, or its key was written since.
 */
import type { KeyRange } from '../names.js';
import type { Standing } from './acquire.js';
import { createdBy, noneOlder, put, read, writtenBy, type Step } from './txn.js';

export function move(lock: KeyRange, name: Buffer, standing: Standing, value: Buffer, lease: string): Step {
  const { created, modified } = standing;
  return {
    compare: [createdBy(name, created), writtenBy(name, modified), noneOlder(lock, created)],
    success: [put(name, value, lease)],
    failure: [read(name)],
  };
}
