/**
 * Pages of runs along an index. A page of the index holds entries that do not count (other tasks, other states, hints
 * that are not true any more), so a walk goes on until it has as many runs as were asked for, the index ends, or the
 * call has looked at enough: then the next call goes on where this one stopped.
 */
import type { StoredRun } from '../machine/run-record.js';
import type { RunPage } from '../port/run-store.js';
import type { StateStore } from '../port/state-store.js';
import { compareBytes } from '../value/byte-order.js';
import { invalidArgument } from '../value/error.js';
import { parseEntry, type IndexEntry } from './index-entry.js';

/** Entries that are looked at together: two trips, one for them and one for their records. */
export const ENTRIES_PER_PAGE = 256;
/** The most pages of the index that one call looks at. */
export const PAGES_PER_CALL = 64;

/** Which walk: along which index, from where, for how many runs. */
export interface Walk {
  readonly prefix: string;
  readonly cursor: string | undefined;
  readonly limit: number;
  /** The run of each entry, or `null` where it does not count, in the order of the entries. */
  readonly pick: (entries: readonly IndexEntry[]) => Promise<readonly (StoredRun | null)[]>;
}

/** The next runs of a walk. */
export async function walk(state: StateStore, { prefix, cursor, limit, pick }: Walk): Promise<RunPage> {
  const runs: StoredRun[] = [];
  let place = placeOf(cursor);
  for (let page = 0; page < PAGES_PER_CALL; page += 1) {
    const { after } = place;
    const scanned = await state.scan(prefix, place.cursor, ENTRIES_PER_PAGE);
    const entries = scanned.entries
      .filter(({ key }) => after === undefined || compareBytes(key, after) > 0)
      .map(parseEntry);
    const picked = entries.length === 0 ? [] : await pick(entries);
    for (const [index, entry] of entries.entries()) {
      const run = picked[index];
      if (run) runs.push(run);
      const last = index === entries.length - 1 && scanned.cursor === undefined;
      if (runs.length >= limit && !last) {
        return { runs, cursor: textOf({ cursor: place.cursor, after: entry.entryKey }) };
      }
    }
    if (scanned.cursor === undefined) return { runs };
    place = { cursor: scanned.cursor };
  }
  return { runs, cursor: textOf(place) };
}

/** Where a walk stands: a cursor of the store, and the entry after which it goes on there. */
interface Place {
  readonly cursor?: string | undefined;
  readonly after?: string | undefined;
}

function textOf({ cursor = null, after = null }: { [K in keyof Place]: Place[K] | null }): string {
  return JSON.stringify([cursor, after]);
}

function placeOf(text: string | undefined): Place {
  if (text === undefined) return {};
  try {
    const [cursor, after] = JSON.parse(text) as [string | null, string | null];
    return { cursor: cursor ?? undefined, after: after ?? undefined };
  } catch {
    throw invalidArgument('cursor', text, 'must be one that an earlier page ended with');
  }
}
