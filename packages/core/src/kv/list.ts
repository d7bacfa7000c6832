/**
 * Runs as a person looks at them, newest first, along the index of all runs. Tombstones are keys, not runs.
 */
import type { StoredRun } from '../machine/run-record.js';
import type { RunPage, RunQuery } from '../port/run-store.js';
import type { StateStore } from '../port/state-store.js';
import { isOf } from './index-entry.js';
import { listPrefix } from './keys.js';
import { isUnreadable, shown, type Records } from './records.js';
import { walk } from './walk.js';

/** See `RunStore.list`. */
export async function listedRuns(
  state: StateStore,
  records: Records,
  namespace: string,
  { task, states, limit, cursor }: RunQuery,
): Promise<RunPage> {
  return walk(state, {
    prefix: listPrefix(namespace),
    cursor,
    limit,
    pick: async (entries) => {
      const own = entries.filter((entry) => task === undefined || entry.task === task);
      const kept = await records.readAll(namespace, own);
      const listed = new Map<string, StoredRun>();
      for (const [place, entry] of own.entries()) {
        const record = kept[place]!;
        // A person has to see that there is one.
        if (isUnreadable(record)) throw record.unreadable;
        if (!isOf(entry, record) || record.pruned) continue;
        if (states === undefined || states.includes(record.run.state))
          listed.set(entry.entryKey, shown(record));
      }
      return entries.map(({ entryKey }) => listed.get(entryKey) ?? null);
    },
  });
}
