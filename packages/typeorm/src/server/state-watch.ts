/**
 * Watches of a state store. A message for every write would make commits wait for each other, so one timer for all
 * watches asks what was written last, two numbers; only where something is new are the rows behind it read.
 * Every row has its last write, so however much happened in between, one read brings the newest of everything.
 *
 * What was written is dated by a number that grows: `written_by`. Writes become visible in another order, so a look
 * begins again at `low`: everything below it was visible at the last look.
 *
 * A delete leaves its row behind for `FENCE_KEPT_MS`. A process that was stopped for longer could miss it, so it lists
 * again, and tells what is gone from the keys that it knew.
 */
import {
  FENCE_KEPT_MS,
  GuardError,
  type Clock,
  type StateChange,
  type Subscription,
  type Timer,
} from '@guard/core';
import { integer, text, type Row } from '../row.js';
import type { StateStatements } from '../statements/postgres-state.js';
import { entryOf } from './entry-rows.js';
import { afterPrefix } from './prefix.js';
import type { Statements } from './statements.js';

type Listener = (change: StateChange) => void;

interface Watcher {
  readonly prefix: string;
  readonly listener: Listener;
  /** Keys with an entry, as far as the listener can know. */
  readonly known: Set<string>;
}

/** A write that was told, and may be read again while an older one is not visible yet. */
interface Told {
  readonly version: bigint;
  readonly writtenBy: bigint;
}

/** What watches work with. */
export interface WatchParts {
  readonly statements: Statements;
  readonly sql: StateStatements;
  readonly clock: Clock;
}

/** How often it is asked for news while anybody watches. */
const POLL_MS = 100;
/** Rows that are read in one statement, and their most bytes. */
const PAGE = 256;
const MAX_PAGE_BYTES = 4_194_304;
/** After so long without a look, rows of deletes may be gone. */
const GAP_MS = FENCE_KEPT_MS / 2;

/** Open watches of one store. */
export class StateWatches {
  readonly #parts: WatchParts;
  readonly #watchers = new Set<Watcher>();
  readonly #told = new Map<string, Told>();
  #closed = false;
  #starting: Promise<void> | undefined;
  #timer: Timer | undefined;
  /** Everything that was written before it has been delivered. */
  #low = 0n;
  #seenAtMs = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /**
   * Opens a watch: it hears of every write from now on.
   *
   * @throws GuardError `closed`: the store was closed, before or meanwhile; whatever the statements throw.
   */
  async open(prefix: string, listener: Listener): Promise<Subscription> {
    this.#refuseWhenClosed();
    const watcher: Watcher = { prefix, listener, known: new Set() };
    this.#watchers.add(watcher);
    try {
      await (this.#starting ??= this.#start());
      for await (const row of this.#list(prefix)) watcher.known.add(text(row, 'key'));
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
    for (const watcher of [...this.#watchers]) this.#close(watcher);
  }

  #refuseWhenClosed(): void {
    if (this.#closed) throw new GuardError('closed', 'the state was closed: nothing is watched any more');
  }

  async #start(): Promise<void> {
    const { low } = await this.#newest();
    // What was written before the first watch is nobody's news, even where an older write is not visible yet.
    for await (const row of this.#changed(low)) this.#note(row);
    this.#refuseWhenClosed();
    this.#low = low;
    this.#seenAtMs = this.#nowMs();
    this.#timer = this.#nextLook();
  }

  #close(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#starting = undefined;
    this.#told.clear();
  }

  #nextLook(): Timer {
    return this.#parts.clock.setTimer(() => void this.#look(), POLL_MS, { ref: false });
  }

  async #look(): Promise<void> {
    const timer = this.#timer;
    try {
      const atMs = this.#nowMs();
      await (atMs - this.#seenAtMs > GAP_MS ? this.#listAgain() : this.#deliver());
      this.#seenAtMs = atMs;
    } catch {
      // Whatever keeps the server from answering now, the next look finds all that was missed.
    }
    // Another one when the last watch was closed meanwhile, and the next one opened: that one has its own looks.
    if (this.#timer === timer && timer !== undefined) this.#timer = this.#nextLook();
  }

  async #deliver(): Promise<void> {
    const { low, newest } = await this.#newest();
    // A server whose clock, or whose count, went back begins again where it is now.
    const from = low < this.#low ? low : this.#low;
    if (newest >= from) {
      for await (const row of this.#changed(from)) {
        if (!this.#note(row)) continue;
        const key = text(row, 'key');
        for (const watcher of this.#watchers) if (key.startsWith(watcher.prefix)) this.#tell(watcher, row);
      }
    }
    this.#low = low;
    for (const [key, { writtenBy }] of this.#told) if (writtenBy < low) this.#told.delete(key);
  }

  async #listAgain(): Promise<void> {
    const { low } = await this.#newest();
    for (const watcher of this.#watchers) {
      const gone = new Set(watcher.known);
      for await (const row of this.#list(watcher.prefix)) {
        gone.delete(text(row, 'key'));
        this.#tell(watcher, row);
      }
      for (const key of gone) this.#say(watcher, { key, entry: null });
    }
    this.#low = low;
    this.#told.clear();
  }

  /** Whether a row is news. */
  #note(row: Row): boolean {
    const [key, version] = [text(row, 'key'), integer(row, 'version')];
    const isNews = this.#told.get(key)?.version !== version;
    this.#told.set(key, { version, writtenBy: integer(row, 'written_by') });
    return isNews;
  }

  async #newest(): Promise<{ readonly low: bigint; readonly newest: bigint }> {
    const [row] = await this.#parts.statements.rows(this.#parts.sql.newest, []);
    return { low: integer(row!, 'low'), newest: integer(row!, 'newest') };
  }

  async *#changed(low: bigint): AsyncGenerator<Row> {
    const { statements, sql } = this.#parts;
    for (let last: readonly [string, string] | undefined = ['-1', '']; last !== undefined;) {
      const after: readonly [string, string] = last;
      const rows = await statements.rows(sql.changed, [String(low), ...after, PAGE]);
      yield* rows;
      const end = rows.length < PAGE ? undefined : rows.at(-1);
      last = end === undefined ? undefined : [String(integer(end, 'written_by')), text(end, 'key')];
    }
  }

  async *#list(prefix: string): AsyncGenerator<Row> {
    const { statements, sql } = this.#parts;
    for (let after: string | undefined = ''; after !== undefined;) {
      const from: string = after;
      const values = [from === '' ? prefix : from, from, afterPrefix(prefix), PAGE, MAX_PAGE_BYTES];
      const rows = await statements.rows(sql.scan, values);
      yield* rows;
      const last = rows.at(-1);
      const isEnd =
        last === undefined || (integer(last, 'found') < PAGE && integer(last, 'found') <= rows.length);
      after = isEnd ? undefined : text(last, 'key');
    }
  }

  #tell(watcher: Watcher, row: Row): void {
    this.#say(watcher, { key: text(row, 'key'), entry: entryOf(row) });
  }

  /** Each change in a turn of its own: a listener that throws reaches nobody else. */
  #say(watcher: Watcher, change: StateChange): void {
    if (change.entry === null) watcher.known.delete(change.key);
    else watcher.known.add(change.key);
    queueMicrotask(() => {
      if (this.#watchers.has(watcher)) watcher.listener(change);
    });
  }

  #nowMs(): number {
    return this.#parts.clock.now().monoMs;
  }
}
