/**
 * What the runtime owes a backend, checked on every call that goes through a faulty backend: adapters rely on it, and
 * a batch that breaks it can be granted twice or deadlock on a real server long before a test would notice.
 */
import { compareText, type LockBackend } from '@guard/core';

/** The rules of the port that a batch breaks, as sentences; empty where it keeps them all. */
export function portViolations(
  backend: LockBackend,
  verb: 'acquire' | 'renew' | 'release',
  operations: readonly { readonly key: string }[],
): string[] {
  const found: string[] = [];
  const { maxBatch, maxRenew = maxBatch } = backend.traits;
  const most = verb === 'renew' ? maxRenew : maxBatch;
  const keys = operations.map(({ key }) => key);
  if (keys.length === 0) found.push(`${verb}: an empty batch`);
  if (keys.length > most) found.push(`${verb}: ${keys.length} operations in one batch of at most ${most}`);
  if (new Set(keys).size < keys.length) found.push(`${verb}: two operations on one key in one batch`);
  const sorted = [...keys].sort(compareText);
  if (keys.some((key, index) => key !== sorted[index])) found.push(`${verb}: the batch is not sorted by key`);
  const partitions = new Set(keys.map((key) => backend.partition?.(key) ?? ''));
  if (partitions.size > 1) found.push(`${verb}: one batch over ${partitions.size} partitions`);
  return found;
}
