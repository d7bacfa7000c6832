/**
 * State in `<file>-guard`: the state port on SQLite. A batch of writes is one transaction, on the disk before it is
 * answered; every write in it is judged against what the ones before it left, so no read of the caller is trusted.
 */
import { FENCE_KEPT_MS, nextToken } from '@guard/core';
import type {
  Clock,
  StateChange,
  StatePage,
  StateStore,
  StateWrite,
  StoredEntry,
  Subscription,
  WriteAnswer,
} from '@guard/core';
import type { Connection } from '../connection.js';
import type { GuardFileParts } from '../guard-file.js';
import type { Lifetimes } from '../lifetime.js';
import { integer, text } from '../row.js';
import * as sql from '../statements/sqlite-state.js';
import { entryRow, isForgotten, storedEntry, type EntryRow } from './entry-rows.js';
import { endOfPrefix } from './prefix.js';
import { StateWatches } from './state-watch.js';

/** The longest time for which a busy file is asked again by one call; the runtime asks again by itself. */
const MAX_PATIENCE_MS = 5_000;
/** How often rows that mean nothing any more are removed, a stretch at a time, by whoever writes. */
const HOUSEKEEPING_MS = 5_000;
/** Rows that one stretch looks at. */
const STRETCH = 64;
/** A page ends early rather than hold more than this many characters. */
const MAX_PAGE_LENGTH = 4_194_304;

/** A state store over one connection to a guard file. */
export class SqliteState implements StateStore {
  readonly name: string;
  // A transaction is synchronous: a longer one would keep timers and other processes waiting.
  readonly traits = { maxBatch: 64, push: false, atomicBatch: true };

  readonly #connection: Connection;
  readonly #lifetimes: Lifetimes;
  readonly #clock: Clock;
  readonly #watches: StateWatches;
  #houseKeptMs: number;
  #walkedTo = 0n;

  constructor({ name, connection, lifetimes, clock }: GuardFileParts) {
    this.name = name;
    this.#connection = connection;
    this.#lifetimes = lifetimes;
    this.#clock = clock;
    this.#watches = new StateWatches(connection, lifetimes, clock);
    this.#houseKeptMs = clock.now().monoMs;
  }

  async now(): Promise<number> {
    return Math.floor(this.#clock.now().wallMs);
  }

  read(keys: readonly string[]): Promise<readonly (StoredEntry | null)[]> {
    return this.#connection.read(MAX_PATIENCE_MS, () =>
      keys.map((key) => {
        const row = this.#row(key);
        return row === undefined ? null : storedEntry(row, this.#lifetimes);
      }),
    );
  }

  async write(writes: readonly StateWrite[]): Promise<readonly WriteAnswer[]> {
    try {
      return await this.#connection.write(MAX_PATIENCE_MS, () =>
        this.#connection.immediate(() => writes.map((write) => this.#write(write))),
      );
    } catch (cause) {
      return writes.map(() => ({ status: 'failed', cause }));
    } finally {
      this.#keepHouse();
    }
  }

  /** A cursor is the key where the next page starts, whether or not it is still there by then. */
  scan(prefix: string, cursor: string | undefined, limit: number): Promise<StatePage> {
    return this.#connection.read(MAX_PATIENCE_MS, () => this.#page(prefix, cursor ?? prefix, limit));
  }

  watch(prefix: string, listener: (change: StateChange) => void): Promise<Subscription> {
    return this.#watches.open(prefix, listener);
  }

  async close(): Promise<void> {
    this.#watches.closeAll();
    this.#connection.close();
  }

  #row(key: string): EntryRow | undefined {
    const raw = this.#connection.row(sql.READ_ENTRY, key);
    return raw === undefined ? undefined : entryRow(raw);
  }

  #write(write: StateWrite): WriteAnswer {
    const row = this.#row(write.key);
    const last = row === undefined || isForgotten(row, this.#lifetimes) ? undefined : row;
    if (last?.writeId === write.writeId) return { status: 'written', version: String(last.version) };
    const newer = newerHolder(write, last);
    if (newer !== undefined) return { status: 'fenced', token: newer };
    const entry = last === undefined ? null : storedEntry(last, this.#lifetimes);
    if (!isExpected(write, entry)) return { status: 'conflict', version: entry?.version ?? null };
    return { status: 'written', version: String(this.#put(write, last, entry !== null)) };
  }

  #put(write: StateWrite, last: EntryRow | undefined, present: boolean): bigint {
    const { key, value, writeId } = write;
    const least = nextToken(0n, this.#clock.now().wallMs);
    const next = integer(this.#connection.row(sql.NEXT_VERSION, least)!, 'last');
    const fence = write.fence ?? last?.fence;
    const { boot, since, deadline } = this.#life(write, present ? last : undefined);
    this.#connection.run(
      sql.WRITE_ENTRY,
      key,
      value,
      next,
      writeId,
      fence?.lock ?? null,
      fence?.token ?? null,
      boot,
      since,
      deadline,
    );
    return next;
  }

  #life(
    { value, ttl }: StateWrite,
    entry: EntryRow | undefined,
  ): Pick<EntryRow, 'boot' | 'since' | 'deadline'> {
    if (value === null) return this.#lifetimes.lasting(FENCE_KEPT_MS);
    if (ttl === 'keep' && entry !== undefined) return entry;
    return ttl === 'keep' || ttl === 'none'
      ? { ...this.#lifetimes.lasting(0), deadline: null }
      : this.#lifetimes.lasting(ttl);
  }

  #page(prefix: string, from: string, limit: number): StatePage {
    const end = endOfPrefix(prefix);
    const entries: StoredEntry[] = [];
    let length = 0;
    for (let first = from; ;) {
      const rows = this.#connection.rows(sql.SCAN_ENTRIES, first, end, STRETCH);
      for (const row of rows.map(entryRow)) {
        const entry = storedEntry(row, this.#lifetimes);
        if (entry === null) continue;
        if (entries.length === limit || length > MAX_PAGE_LENGTH) return { entries, cursor: row.key };
        entries.push(entry);
        length += entry.value.length;
      }
      if (rows.length < STRETCH) return { entries };
      // U+0000 is in no key, so this is the first text after the last one.
      first = `${text(rows.at(-1)!, 'key')}\0`;
    }
  }

  #keepHouse(): void {
    const nowMs = this.#clock.now().monoMs;
    if (nowMs - this.#houseKeptMs < HOUSEKEEPING_MS) return;
    this.#houseKeptMs = nowMs;
    // A busy file is left alone until the next time, and any other fault meets the next call too.
    this.#connection.write(0, () => this.#connection.immediate(() => this.#walk())).catch(() => undefined);
  }

  #walk(): void {
    const rows = this.#connection.rows(sql.WALK_ENTRIES, this.#walkedTo, STRETCH);
    for (const row of rows.map(entryRow)) {
      if (!isForgotten(row, this.#lifetimes)) continue;
      this.#connection.run(sql.REMOVE_ENTRY, row.id);
      this.#lifetimes.forget(row.key);
    }
    this.#walkedTo = rows.length < STRETCH ? 0n : integer(rows.at(-1)!, 'id');
  }
}

/** The token of the holder whose write may not be written over, if there is one. */
function newerHolder({ fence }: StateWrite, last: EntryRow | undefined): bigint | undefined {
  if (fence === undefined || last?.fence?.lock !== fence.lock) return undefined;
  return last.fence.token > fence.token ? last.fence.token : undefined;
}

function isExpected({ expect }: StateWrite, entry: StoredEntry | null): boolean {
  if (expect === 'any') return true;
  return expect === 'absent' ? entry === null : entry?.version === expect.version;
}
