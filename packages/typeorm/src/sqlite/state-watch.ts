/**
 * Watches of a state store. SQLite tells nobody of a change, so one timer for all watches reads the version of the
 * last write, a single number; only where it grew are the rows behind it read. Every row has the version of its last
 * write, so however much happened in between, one read brings the newest of everything (level-triggered).
 *
 * A delete leaves its row behind for `FENCE_KEPT_MS`. A process that was stopped for longer could miss it, so it
 * lists again, and tells what is gone from the keys that it knew.
 */
import {
  FENCE_KEPT_MS,
  GuardError,
  type Clock,
  type StateChange,
  type Subscription,
  type Timer,
} from '@guard/core';
import type { Connection } from '../connection.js';
import type { Lifetimes } from '../lifetime.js';
import { integer, text } from '../row.js';
import * as sql from '../statements/sqlite-state.js';
import { entryRow, storedEntry, type EntryRow } from './entry-rows.js';
import { endOfPrefix } from './prefix.js';

type Listener = (change: StateChange) => void;

interface Watcher {
  readonly prefix: string;
  readonly listener: Listener;
  /** Keys with an entry, as far as the listener can know. */
  readonly known: Set<string>;
}

/** How often the version of the last write is read while anybody watches. */
export const POLL_MS = 100;
/** Rows that are read in one go, between two turns of the event loop. */
const PAGE = 256;
/** After so long without a look, rows of deletes may be gone. */
const GAP_MS = FENCE_KEPT_MS / 2;
/** The longest time for which opening a watch asks a busy file again. */
const PATIENCE_MS = 5_000;

/** Open watches of one store. */
export class StateWatches {
  readonly #connection: Connection;
  readonly #lifetimes: Lifetimes;
  readonly #clock: Clock;
  readonly #watchers = new Set<Watcher>();
  #timer: Timer | undefined;
  /** Everything up to this version has been delivered. */
  #seen = 0n;
  #seenAtMs = 0;
  #closed = false;

  constructor(connection: Connection, lifetimes: Lifetimes, clock: Clock) {
    this.#connection = connection;
    this.#lifetimes = lifetimes;
    this.#clock = clock;
  }

  /**
   * Opens a watch: it hears of every write from now on.
   *
   * @throws GuardError `closed`: the store was closed, before or meanwhile; whatever reading the file throws.
   */
  async open(prefix: string, listener: Listener): Promise<Subscription> {
    this.#refuseWhenClosed();
    const watcher: Watcher = { prefix, listener, known: new Set() };
    try {
      if (this.#watchers.size === 0) await this.#start();
      this.#watchers.add(watcher);
      for await (const row of this.#list(prefix)) watcher.known.add(row.key);
      this.#refuseWhenClosed();
    } catch (error) {
      this.#close(watcher);
      // What a call that was overtaken by the end met is no news.
      this.#refuseWhenClosed();
      throw error;
    }
    return { close: async () => this.#close(watcher) };
  }

  /** Ends all watches, for good. */
  closeAll(): void {
    this.#closed = true;
    for (const watcher of this.#watchers) this.#close(watcher);
  }

  #refuseWhenClosed(): void {
    if (this.#closed) throw new GuardError('closed', 'the state was closed: nothing is watched any more');
  }

  async #start(): Promise<void> {
    this.#seen = await this.#connection.read(PATIENCE_MS, () => this.#lastVersion());
    this.#refuseWhenClosed();
    this.#seenAtMs = this.#lifetimes.nowMs();
    this.#timer ??= this.#nextLook();
  }

  #close(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #nextLook(): Timer {
    return this.#clock.setTimer(() => void this.#look(), POLL_MS, { ref: false });
  }

  async #look(): Promise<void> {
    const timer = this.#timer;
    try {
      const atMs = this.#lifetimes.nowMs();
      if (atMs - this.#seenAtMs > GAP_MS) await this.#listAgain();
      else while (await this.#deliverPage());
      this.#seenAtMs = atMs;
    } catch {
      // Whatever keeps the file from being read now, the next look finds all that was missed.
    }
    // Another one when the last watch was closed meanwhile, and the next one opened: that one has its own looks.
    if (this.#timer === timer && timer !== undefined) this.#timer = this.#nextLook();
  }

  /** Delivers what was written since; whether there may be more. */
  async #deliverPage(): Promise<boolean> {
    const rows = await this.#connection.read(POLL_MS, () =>
      this.#lastVersion() === this.#seen ? [] : this.#connection.rows(sql.CHANGED_ENTRIES, this.#seen, PAGE),
    );
    for (const row of rows.map(entryRow)) {
      this.#seen = row.version;
      for (const watcher of this.#watchers) if (row.key.startsWith(watcher.prefix)) this.#tell(watcher, row);
    }
    return rows.length === PAGE;
  }

  async #listAgain(): Promise<void> {
    const seen = await this.#connection.read(PATIENCE_MS, () => this.#lastVersion());
    for (const watcher of this.#watchers) {
      const gone = new Set(watcher.known);
      for await (const row of this.#list(watcher.prefix)) {
        gone.delete(row.key);
        this.#tell(watcher, row);
      }
      for (const key of gone) this.#deliver(watcher, { key, entry: null });
    }
    this.#seen = seen;
  }

  async *#list(prefix: string): AsyncGenerator<EntryRow> {
    const end = endOfPrefix(prefix);
    for (let from: string | undefined = prefix; from !== undefined;) {
      const first: string = from;
      const rows = await this.#connection.read(PATIENCE_MS, () =>
        this.#connection.rows(sql.SCAN_ENTRIES, first, end, PAGE),
      );
      yield* rows.map(entryRow);
      // U+0000 is in no key, so this is the first text after the last one.
      from = rows.length < PAGE ? undefined : `${text(rows.at(-1)!, 'key')}\0`;
    }
  }

  #tell(watcher: Watcher, row: EntryRow): void {
    this.#deliver(watcher, { key: row.key, entry: storedEntry(row, this.#lifetimes) });
  }

  /** Each change in a turn of its own: a listener that throws reaches nobody else. */
  #deliver(watcher: Watcher, change: StateChange): void {
    if (change.entry === null) watcher.known.delete(change.key);
    else watcher.known.add(change.key);
    queueMicrotask(() => {
      if (this.#watchers.has(watcher)) watcher.listener(change);
    });
  }

  #lastVersion(): bigint {
    const row = this.#connection.row(sql.LAST_VERSION);
    return row === undefined ? 0n : integer(row, 'last');
  }
}
