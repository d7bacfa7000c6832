/**
 * Runs that the sweep has to look at, along the index of open runs. Whoever reads an entry that is not true any more,
 * of whatever task, takes it off: so finishing a run costs no trip for the index (C5), and sweeps tidy up in batches.
 */
import type { DueQuery, RunPage } from '../port/run-store.js';
import type { StateStore } from '../port/state-store.js';
import { tidy } from './batches.js';
import { dropped, isOf, isStale, type IndexEntry } from './index-entry.js';
import { openPrefix } from './keys.js';
import { isOpen, type KeptRun } from './record.js';
import { isUnreadable, shown, type Records } from './records.js';
import { walk } from './walk.js';

/** See `RunStore.due`. */
export async function dueRuns(
  state: StateStore,
  records: Records,
  namespace: string,
  { tasks, overdueMs, limit, cursor }: DueQuery,
): Promise<RunPage> {
  const wanted = new Set(tasks);
  const nowMs = await state.now();
  const unreadable: Error[] = [];
  const page = await walk(state, {
    prefix: openPrefix(namespace),
    cursor,
    limit,
    pick: async (entries) => {
      const found = await records.readAll(namespace, entries);
      const stale: IndexEntry[] = [];
      const due = entries.map((entry, place) => {
        const record = found[place]!;
        if (isUnreadable(record)) {
          if (wanted.has(entry.task)) unreadable.push(record.unreadable);
          return null;
        }
        if (isStale(entry, record, nowMs)) stale.push(entry);
        const counts = wanted.has(entry.task) && isOf(entry, record) && isDue(record, nowMs - overdueMs);
        return counts ? shown(record) : null;
      });
      await tidy(state, stale.map(dropped));
      return due;
    },
  });
  return unreadable.length === 0 ? page : { ...page, unreadable };
}

function isDue({ run }: KeptRun, byMs: number): boolean {
  return run.state === 'pending' ? run.availableAtMs <= byMs : isOpen(run);
}
