/**
 * What may go, along the index of all runs: first the content of a record, later its key. The index starts with the
 * newest run, so a call may have to pass many entries to reach old ones; it remembers where it stopped, and the next
 * one goes on there.
 */
import type { RunRecord } from '../machine/run-record.js';
import type { PruneQuery, TaskRecord } from '../port/run-store.js';
import type { StateStore, StateWrite } from '../port/state-store.js';
import { readAll, tidy, writeAll } from './batches.js';
import { dropped, ENTRY_GRACE_MS, isOf, parseEntry, type IndexEntry } from './index-entry.js';
import { listPrefix, recordKey, taskKey } from './keys.js';
import { encodeTombstone, type KeptRun } from './record.js';
import { isUnreadable, type Found, type Records } from './records.js';
import { ENTRIES_PER_PAGE, PAGES_PER_CALL } from './walk.js';

/** Prunes the namespaces of one store. */
export class Pruner {
  readonly #state: StateStore;
  readonly #records: Records;
  /** Where the last call stopped, by namespace. */
  readonly #places = new Map<string, string>();

  constructor(state: StateStore, records: Records) {
    this.#state = state;
    this.#records = records;
  }

  /** See `RunStore.prune`. */
  async prune(namespace: string, query: PruneQuery): Promise<number> {
    const nowMs = await this.#state.now();
    let cursor = this.#places.get(namespace);
    let gone = 0;
    for (let page = 0; page < PAGES_PER_CALL; page += 1) {
      const scanned = await this.#state.scan(listPrefix(namespace), cursor, ENTRIES_PER_PAGE);
      const old = scanned.entries
        .map(parseEntry)
        .filter(({ slot }) => slot.createdAtMs < query.recordsBeforeMs);
      gone += await this.#prunePage(namespace, old, { ...query, limit: query.limit - gone }, nowMs);
      // A page that reached the limit may hold more: the next call looks at it again.
      if (gone < query.limit) cursor = scanned.cursor;
      if (gone >= query.limit || cursor === undefined) break;
    }
    if (cursor === undefined) this.#places.delete(namespace);
    else this.#places.set(namespace, cursor);
    return gone;
  }

  async #prunePage(
    namespace: string,
    entries: readonly IndexEntry[],
    query: PruneQuery,
    nowMs: number,
  ): Promise<number> {
    if (entries.length === 0) return 0;
    const kept = await this.#records.readAll(namespace, entries);
    const marks = await this.#lowWaterMarks(namespace, kept);
    const writes: StateWrite[] = [];
    const entryOf = new Map<string, IndexEntry>();
    const stray: StateWrite[] = [];
    for (const [place, entry] of entries.entries()) {
      const record = kept[place]!;
      if (isUnreadable(record)) continue;
      if (!isOf(entry, record)) {
        if (entry.atMs <= nowMs - ENTRY_GRACE_MS) stray.push(dropped(entry));
        continue;
      }
      const write = pruning(namespace, record, query, marks.get(record.run.task));
      if (write === undefined || writes.length >= query.limit) continue;
      writes.push(write);
      if (write.value === null) entryOf.set(write.key, entry);
    }
    const answers = await writeAll(this.#state, writes);
    const done = writes.filter((_, place) => answers[place]!.status === 'written');
    // Entries go after their records: one that stays behind is a stray, a record without one would stay for ever.
    const over = done.flatMap(({ key }) => entryOf.get(key) ?? []).map(dropped);
    await tidy(this.#state, [...stray, ...over]);
    return done.length;
  }

  async #lowWaterMarks(namespace: string, records: readonly Found[]): Promise<Map<string, number>> {
    const tasks = new Set<string>();
    for (const record of records) {
      if (record === null || isUnreadable(record)) continue;
      if (record.run.scheduledForMs !== undefined) tasks.add(record.run.task);
    }
    const keys = [...tasks].map((task) => taskKey(namespace, task));
    const entries = await readAll(this.#state, keys);
    const found = entries.flatMap((entry) => (entry === null ? [] : [JSON.parse(entry.value) as TaskRecord]));
    return new Map(
      found.flatMap(({ task, lowWaterMarkMs: mark }) => (mark === undefined ? [] : [[task, mark]])),
    );
  }
}

/** The write that prunes a record, if there is anything to prune. */
function pruning(
  namespace: string,
  record: KeptRun,
  query: PruneQuery,
  markMs: number | undefined,
): StateWrite | undefined {
  const { run, version, pruned } = record;
  const finishedAtMs = finishedAt(run);
  if (finishedAtMs === undefined || finishedAtMs >= query.recordsBeforeMs) return undefined;
  const write = { key: recordKey(namespace, run), expect: { version }, ttl: 'none' } as const;
  if (finishedAtMs < query.keysBeforeMs && !isAbove(run, markMs)) {
    return { ...write, value: null, writeId: `${version}/remove` };
  }
  return pruned ? undefined : { ...write, value: encodeTombstone(record), writeId: `${version}/prune` };
}

function finishedAt(run: RunRecord): number | undefined {
  if (run.state === 'failed') return run.compensation === 'due' ? undefined : run.finishedAtMs;
  if (run.state === 'completed' || run.state === 'skipped' || run.state === 'expired')
    return run.finishedAtMs;
  return undefined;
}

/** An instant above the mark could be created anew once its key is gone. Without a mark the first one will be now. */
function isAbove(run: RunRecord, markMs: number | undefined): boolean {
  return run.scheduledForMs !== undefined && markMs !== undefined && run.scheduledForMs > markMs;
}
