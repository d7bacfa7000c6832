/**
 * Versioned state as an application sees it. A write says what it expects to find, and learns whether that was so;
 * nothing here overwrites by accident.
 */
import type { Duration } from '../value/duration.js';
import type { Key } from '../value/key.js';
import type { Lock } from './lock.js';

/** A JSON value with the version that the next write names. A plain object: it survives `JSON.stringify`. */
export interface Entry<T> {
  readonly value: T;
  /** Opaque. Never used twice for a key, not even after a delete. */
  readonly version: string;
}

/** An entry of a listing. */
export interface ListedEntry<T> extends Entry<T> {
  readonly key: string;
}

/** Options of a write. */
export interface WriteOptions {
  /** The entry ends after this time. Without it an existing entry keeps the end it has, a new one has none. */
  readonly ttl?: Duration;
  /**
   * The lock under which the write happens: it must be held, and the write is refused (`stale-token`) where a newer
   * holder of the same lock wrote before.
   */
  readonly lock?: Lock;
}

/** A change that a watcher is told of. */
export interface WatchedChange<T> {
  readonly key: string;
  /** The newest entry, or `null`: it is gone. */
  readonly entry: Entry<T> | null;
}

/** An open watch. */
export interface Watch extends AsyncDisposable {
  close(): Promise<void>;
}

/**
 * The state part of a guard. Every call throws GuardError `unavailable` when the store cannot be asked
 * (`inDoubt: true` when a write may have been applied), `invalid-argument` before any traffic, `closed`; writes with
 * a lock also `lock-lost`, `lock-suspect` and `stale-token`. Values are JSON up to 1 MiB of UTF-8.
 */
export interface StateApi {
  get<T>(key: Key): Promise<Entry<T> | null>;
  /** Writes a new entry; its version, or `null`: there is one already. */
  create(key: Key, value: unknown, options?: WriteOptions): Promise<string | null>;
  /** Writes over exactly this version; the new version, or `null`: somebody was faster. */
  update(key: Key, version: string, value: unknown, options?: WriteOptions): Promise<string | null>;
  /** Writes whatever is there. Its version. */
  set(key: Key, value: unknown, options?: WriteOptions): Promise<string>;
  /**
   * Deletes exactly this version (`false`: somebody was faster, or it is gone already), or without one whatever is
   * there, if anything (`true`).
   */
  delete(key: Key, version?: string, options?: Pick<WriteOptions, 'lock'>): Promise<boolean>;
  /** Entries whose key starts with exactly these characters, in pages, in the order of their keys' bytes. */
  list<T>(prefix: string): AsyncIterable<ListedEntry<T>>;
  /**
   * Calls back with the newest value after changes below a prefix; changes between may merge. Ends when it is closed, and
   * with the guard.
   */
  watch<T>(prefix: string, onChange: (change: WatchedChange<T>) => void): Promise<Watch>;
}
