/**
 * What the runtime owes a backend, checked on every call that goes through a faulty backend: adapters rely on it, and
 * a batch that breaks it can be granted twice or deadlock on a real server long before a test would notice.
 */
import { compareText, type LockBackend } from '@guard/core';

/** The rules of the port that a batch breaks, as sentences; empty where it keeps them all. */
export function portViolations(
  backend: LockBackend,
  verb: string,
  operations: readonly { readonly key: string; readonly ttlMs?: number }[],
): string[] {
  const found: string[] = [];
  const keys = operations.map(({ key }) => key);
  if (operations.length === 0) found.push(`${verb}: an empty batch`);
  if (operations.length > backend.traits.maxBatch) {
    found.push(`${verb}: ${operations.length} operations in one batch of at most ${backend.traits.maxBatch}`);
  }
  if (new Set(keys).size < keys.length) found.push(`${verb}: two operations on one key in one batch`);
  const sorted = [...keys].sort(compareText);
  if (keys.some((key, index) => key !== sorted[index])) found.push(`${verb}: the batch is not sorted by key`);
  if (backend.partition !== undefined) {
    // A release names no ttl, so its partition cannot be told from here.
    const named = operations.flatMap(({ key, ttlMs }) => (ttlMs === undefined ? [] : [{ key, ttlMs }]));
    const partitions = new Set(named.map(({ key, ttlMs }) => backend.partition!(key, ttlMs)));
    if (partitions.size > 1) found.push(`${verb}: one batch over ${partitions.size} partitions`);
  }
  return found;
}
