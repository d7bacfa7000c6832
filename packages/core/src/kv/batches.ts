/**
 * Calls of a state store with any number of operations, in as many batches as the store needs.
 */
import type { StateStore, StateWrite, StoredEntry, WriteAnswer } from '../port/state-store.js';

/** Reads any number of keys. */
export function readAll(state: StateStore, keys: readonly string[]): Promise<(StoredEntry | null)[]> {
  return inBatches(state, keys, (some) => state.read(some));
}

/** Sends any number of writes of different keys, the next batch when the one before is answered. */
export function writeAll(state: StateStore, writes: readonly StateWrite[]): Promise<WriteAnswer[]> {
  return inBatches(state, writes, (some) => state.write(some));
}

/**
 * Sends writes that only clean up. Whether they succeed changes nothing for the caller, and the next reader tries
 * again, so their faults are nobody's.
 */
export async function tidy(state: StateStore, writes: readonly StateWrite[]): Promise<void> {
  await writeAll(state, writes).catch(() => undefined);
}

async function inBatches<O, A>(
  { traits: { maxBatch } }: StateStore,
  operations: readonly O[],
  send: (some: readonly O[]) => Promise<readonly A[]>,
): Promise<A[]> {
  const answers: A[] = [];
  for (let start = 0; start < operations.length; start += maxBatch) {
    answers.push(...(await send(operations.slice(start, start + maxBatch))));
  }
  return answers;
}
