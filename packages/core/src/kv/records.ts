/**
 * The records of runs in a state store, one key each: read, created and moved by compare-and-set.
 *
 * A create writes index entries and record in one call where the store takes a batch in one step; elsewhere the
 * entries go first, in a call of their own, because a record that no index names would never be taken over (L4). A
 * move needs no entry unless it opens a closed record: an open one has its entry already.
 */
import type { RunEvent, RunRecord, StoredRun } from '../machine/run-record.js';
import type { Failed } from '../port/lock-backend.js';
import type { CreateAnswer, RunRef, TransitionAnswer } from '../port/run-store.js';
import type { StateStore, StateWrite, StoredEntry, WriteAnswer } from '../port/state-store.js';
import { GuardError } from '../value/error.js';
import { readAll, tidy } from './batches.js';
import { entriesOfLost, entriesOfNew, entryOfOpened } from './index-entry.js';
import { recordKey } from './keys.js';
import { KnownRuns, type KnownRun } from './known.js';
import { begun, continued, decode, encode, isOpen, knows, type History, type KeptRun } from './record.js';

/** The most writes that one create or move takes: the record and an entry in each index. */
const WRITES_AT_ONCE = 3;

/** What stands under the name of a record. */
export type Found = KeptRun | Unreadable | null;

/** A record that something else than a guard wrote. */
export interface Unreadable {
  readonly unreadable: Error;
}

export function isUnreadable(found: Found): found is Unreadable {
  return found !== null && 'unreadable' in found;
}

/** Records of runs. */
export class Records {
  readonly #state: StateStore;
  readonly #atOnce: boolean;
  readonly #known = new KnownRuns();

  constructor(state: StateStore) {
    this.#state = state;
    this.#atOnce = state.traits.atomicBatch === true && state.traits.maxBatch >= WRITES_AT_ONCE;
  }

  /** One record, or `null`. */
  async read(namespace: string, ref: RunRef): Promise<KeptRun | null> {
    const key = recordKey(namespace, ref);
    const [entry] = await this.#state.read([key]);
    if (entry == null) return null;
    const kept = decode(entry, ref);
    this.#known.add(key, kept);
    return kept;
  }

  /** Records in the order of their names. One that cannot be read keeps nobody from the others (L4). */
  async readAll(namespace: string, refs: readonly RunRef[]): Promise<Found[]> {
    const keys = refs.map((ref) => recordKey(namespace, ref));
    const entries = await readAll(this.#state, keys);
    const records = entries.map((entry, place) => (entry === null ? null : foundOf(entry, refs[place]!)));
    for (const [place, kept] of records.entries()) {
      if (kept !== null && !isUnreadable(kept) && isOpen(kept.run)) this.#known.add(keys[place]!, kept);
    }
    return records;
  }

  /** Writes a new record. See `RunStore.create`. */
  async create(namespace: string, run: RunRecord, event: RunEvent): Promise<CreateAnswer> {
    const history = begun(event);
    const entries = entriesOfNew(namespace, run, event);
    const written = await this.#write(namespace, entries, run, 'absent', history);
    if (written.status === 'written') {
      return { status: 'created', stored: { run, version: written.version } };
    }
    if (written.status === 'failed') return written;
    const current = await this.read(namespace, run);
    if (current === null) return cameAndWent(run);
    if (knows(current.history, event.writeId)) return this.#applied(namespace, current, event, 'created');
    await tidy(this.#state, entriesOfLost(namespace, run, event));
    return { status: 'exists', stored: shown(current) };
  }

  /** Moves a record on. See `RunStore.transition`. */
  async move(
    namespace: string,
    expected: string,
    next: RunRecord,
    event: RunEvent,
  ): Promise<TransitionAnswer> {
    const key = recordKey(namespace, next);
    let before: KnownRun | undefined = this.#known.at(key, expected);
    if (before === undefined) {
      const current = await this.read(namespace, next);
      if (current?.version !== expected) return this.#settled(namespace, current, event);
      before = current;
    }
    const history = continued(before.history, event);
    const opens = isOpen(next) && !isOpen(before.run);
    const entries = opens ? [entryOfOpened(namespace, next, history, event)] : [];
    const written = await this.#write(namespace, entries, next, { version: expected }, history);
    if (written.status === 'written') {
      return { status: 'moved', stored: { run: next, version: written.version } };
    }
    if (written.status === 'failed') return written;
    return this.#settled(namespace, await this.read(namespace, next), event);
  }

  /** What became of a move whose expectation did not hold: the history tells whether it was our own doing (S4). */
  async #settled(namespace: string, current: KeptRun | null, event: RunEvent): Promise<TransitionAnswer> {
    if (current === null) return { status: 'conflict', stored: null };
    if (knows(current.history, event.writeId)) return this.#applied(namespace, current, event, 'moved');
    return { status: 'conflict', stored: shown(current) };
  }

  /** An earlier sending was applied. Its index entry may not have been, where a batch is not one step. */
  async #applied<S extends 'created' | 'moved'>(
    namespace: string,
    current: KeptRun,
    event: RunEvent,
    status: S,
  ): Promise<{ readonly status: S; readonly stored: StoredRun } | Failed> {
    if (isOpen(current.run)) {
      const entry = entryOfOpened(namespace, current.run, current.history, event);
      const failed = (await this.#state.write([entry])).find(isFailed);
      if (failed !== undefined) return failed;
    }
    return { status, stored: shown(current) };
  }

  async #write(
    namespace: string,
    entries: readonly StateWrite[],
    run: RunRecord,
    expect: StateWrite['expect'],
    history: History,
  ): Promise<Extract<WriteAnswer, { status: 'written' | 'conflict' | 'failed' }>> {
    const key = recordKey(namespace, run);
    const { writeId } = history.events.at(-1)!;
    const record: StateWrite = { key, value: encode(run, history), expect, writeId, ttl: 'none' };
    const first = this.#atOnce ? [] : entries;
    const failedFirst = first.length === 0 ? undefined : (await this.#state.write(first)).find(isFailed);
    if (failedFirst !== undefined) return failedFirst;
    const answers = await this.#state.write(this.#atOnce ? [...entries, record] : [record]);
    const answer = answers.at(-1)!;
    if (answer.status === 'fenced') return { status: 'failed', cause: fencedWithoutFence() };
    if (answer.status !== 'written') return answer;
    if (isOpen(run)) this.#known.add(key, { run, version: answer.version, history });
    else this.#known.delete(key);
    // The record is there, its entry may not be: as good as no answer, and the next sending sees to it.
    return answers.find(isFailed) ?? answer;
  }
}

/** A record as the port shows it. */
export function shown({ run, version }: KeptRun): StoredRun {
  return { run, version };
}

function isFailed(answer: WriteAnswer): answer is Failed {
  return answer.status === 'failed';
}

function cameAndWent({ task, key }: RunRecord): Failed {
  const cause = new GuardError('unavailable', `the record of run ${key} of ${task} went while it was read`);
  return { status: 'failed', cause };
}

function fencedWithoutFence(): GuardError {
  return new GuardError('unavailable', 'the state store refused a write under a fence that it did not have');
}

function foundOf(entry: StoredEntry, ref: RunRef): KeptRun | Unreadable {
  try {
    return decode(entry, ref);
  } catch (error) {
    return { unreadable: error as Error };
  }
}
