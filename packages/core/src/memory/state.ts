/**
 * State of one process, and the executable specification of the state port. Every write, whatever key it is of, gets
 * the next number of one counter as its version: so no version is ever used twice, not after a delete and not after
 * an expiry, without anything being remembered per key.
 */
import type { Clock } from '../port/clock.js';
import type { Subscription } from '../port/lock-backend.js';
import type {
  StateChange,
  StatePage,
  StateStore,
  StateWrite,
  StoredEntry,
  WriteAnswer,
} from '../port/state-store.js';
import { systemClock } from '../runtime/clock.js';
import { checkOptions } from '../value/options.js';
import { GoneEntries, type LastWrite } from './gone-entries.js';
import { SortedKeys } from './sorted-keys.js';
import { Watches } from './watches.js';

/** Options of the memory state store. */
export interface MemoryStateOptions {
  /** Expiry follows its monotonic time. Default: the system's clock. */
  readonly clock?: Clock;
}

/**
 * A state store in the memory of this process. Several guards may share one; `close()` frees nothing, because nothing
 * was opened, so one guard that closes leaves the others and their watches as they are.
 *
 * @throws GuardError `invalid-argument`: an option that does not exist.
 */
export function memoryState(options: MemoryStateOptions = {}): StateStore {
  checkOptions('memoryState options', options, ['clock']);
  return new MemoryState(options.clock ?? systemClock);
}

/** An entry that is there until it expires. */
interface Entry extends LastWrite {
  readonly value: string;
  /** On the monotonic clock; the entry is there before it. `Infinity`: it does not expire. */
  readonly untilMs: number;
}

/** Below this many entries nobody looks for expired ones. */
const SWEEP_FROM = 1_024;

class MemoryState implements StateStore {
  readonly name = 'memory';
  readonly traits = { maxBatch: 1_024, push: true, atomicBatch: true };

  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #keys = new SortedKeys();
  readonly #gone = new GoneEntries();
  readonly #watches: Watches;
  /** Starts at the wall time in microseconds, so that a version of an earlier process is not met again either. */
  #lastVersion: number;
  #sweepAt = SWEEP_FROM;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastVersion = Math.floor(clock.now().wallMs * 1_000);
    this.#watches = new Watches((key) => this.#stored(key, this.#clock.now().monoMs));
  }

  now(): Promise<number> {
    return Promise.resolve(Math.floor(this.#clock.now().wallMs));
  }

  read(keys: readonly string[]): Promise<readonly (StoredEntry | null)[]> {
    const nowMs = this.#clock.now().monoMs;
    return Promise.resolve(keys.map((key) => this.#stored(key, nowMs)));
  }

  write(writes: readonly StateWrite[]): Promise<readonly WriteAnswer[]> {
    const nowMs = this.#clock.now().monoMs;
    return Promise.resolve(writes.map((write) => this.#write(write, nowMs)));
  }

  /** A cursor is the key where the next page starts, whether or not it is still there by then. */
  scan(prefix: string, cursor: string | undefined, limit: number): Promise<StatePage> {
    const nowMs = this.#clock.now().monoMs;
    const entries: StoredEntry[] = [];
    for (const key of this.#keys.from(cursor ?? prefix)) {
      if (!key.startsWith(prefix)) break;
      const entry = this.#stored(key, nowMs);
      if (entry === null) continue;
      if (entries.length === limit) return Promise.resolve({ entries, cursor: key });
      entries.push(entry);
    }
    return Promise.resolve({ entries });
  }

  watch(prefix: string, listener: (change: StateChange) => void): Promise<Subscription> {
    return Promise.resolve(this.#watches.open(prefix, listener));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #write(write: StateWrite, nowMs: number): WriteAnswer {
    const entry = this.#settle(write.key, nowMs);
    const last = entry ?? this.#gone.get(write.key, nowMs);
    if (last?.writeId === write.writeId) return { status: 'written', version: last.version };
    const newer = newerHolder(write, last);
    if (newer !== undefined) return { status: 'fenced', token: newer };
    if (!expected(write, entry)) return { status: 'conflict', version: entry?.version ?? null };
    const version = String((this.#lastVersion += 1));
    const next: LastWrite = { version, writeId: write.writeId, fence: write.fence ?? last?.fence };
    if (write.value !== null)
      this.#put(write.key, { ...next, value: write.value, untilMs: end(write, entry, nowMs) }, nowMs);
    else this.#remove(write.key, next, nowMs, nowMs);
    this.#watches.changed(write.key);
    return { status: 'written', version };
  }

  #put(key: string, entry: Entry, nowMs: number): void {
    if (!this.#entries.has(key)) {
      if (this.#entries.size >= this.#sweepAt) this.#sweep(nowMs);
      this.#keys.add(key);
      this.#gone.delete(key);
    }
    this.#entries.set(key, entry);
  }

  #remove(key: string, last: LastWrite, sinceMs: number, nowMs: number): void {
    if (this.#entries.delete(key)) this.#keys.delete(key);
    this.#gone.add(key, last, sinceMs, nowMs);
  }

  /** The entry, if it is there; one that expired goes the way of a deleted one. */
  #settle(key: string, nowMs: number): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.untilMs > nowMs) return entry;
    const { version, writeId, fence } = entry;
    this.#remove(key, { version, writeId, fence }, entry.untilMs, nowMs);
    return undefined;
  }

  #stored(key: string, nowMs: number): StoredEntry | null {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.untilMs <= nowMs) return null;
    const { value, version, untilMs } = entry;
    if (untilMs === Infinity) return { key, value, version };
    return { key, value, version, expiresInMs: Math.ceil(untilMs - nowMs) };
  }

  /** Removes what expired unseen. Runs when the entries have doubled, so it costs a write next to nothing. */
  #sweep(nowMs: number): void {
    for (const key of this.#entries.keys()) this.#settle(key, nowMs);
    this.#sweepAt = Math.max(SWEEP_FROM, this.#entries.size * 2);
  }
}

/** The token of the holder whose write may not be written over, if there is one. */
function newerHolder({ fence }: StateWrite, last: LastWrite | undefined): bigint | undefined {
  if (fence === undefined || last?.fence?.lock !== fence.lock) return undefined;
  return last.fence.token > fence.token ? last.fence.token : undefined;
}

function expected({ expect }: StateWrite, entry: Entry | undefined): boolean {
  if (expect === 'any') return true;
  return expect === 'absent' ? entry === undefined : entry?.version === expect.version;
}

function end({ ttl }: StateWrite, entry: Entry | undefined, nowMs: number): number {
  if (ttl === 'none') return Infinity;
  return ttl === 'keep' ? (entry?.untilMs ?? Infinity) : nowMs + ttl;
}
