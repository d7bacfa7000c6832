/**
 * What a state store implements: entries with versions, written by compare-and-set, atomic per key. A version is
 * never used twice for a key, not even after a delete, so a stale write can never succeed by accident.
 *
 * Keys are full keys, compared byte by byte. Values are texts (JSON) of at most `MAX_VALUE_BYTES`.
 */
import type { Failed, Subscription } from './lock-backend.js';

/** The longest value, in bytes of UTF-8: one mebibyte, below the request limit of every backend. */
export const MAX_VALUE_BYTES = 1_048_576;

/** How long the fence of a deleted or expired entry is kept at least. */
export const FENCE_KEPT_MS = 3_600_000;

/** One entry that is present and not expired. */
export interface StoredEntry {
  readonly key: string;
  readonly value: string;
  /** Opaque; equal only for the very same write. */
  readonly version: string;
  /** Remaining time by the backend's clock, where the entry has a ttl. */
  readonly expiresInMs?: number;
}

/** The lock under which a write happens. A write is refused where a larger token of the same lock wrote before. */
export interface Fence {
  /** Full key of the lock, made unique over lock backends by the caller. */
  readonly lock: string;
  readonly token: bigint;
}

/** One write. */
export interface StateWrite {
  readonly key: string;
  /** The new value, or `null` to delete. */
  readonly value: string | null;
  /** What must be there now: a version, nothing, or whatever. */
  readonly expect: { readonly version: string } | 'absent' | 'any';
  /** Unique per wish; stored with the entry, so that a re-sent write recognises itself (S4). */
  readonly writeId: string;
  /** New remaining time; `'keep'`: the one it has (none for a new entry); `'none'`: it does not expire. */
  readonly ttl: number | 'keep' | 'none';
  readonly fence?: Fence;
}

/** What became of a write. */
export type WriteAnswer =
  /** Applied, now or by an earlier sending of the same `writeId`. A delete has a version too. */
  | { readonly status: 'written'; readonly version: string }
  /**
   * The expectation did not hold. `version`: what is there, `null` for nothing. `resent: true`: the client may have
   * sent the write more than once by itself, so it is in doubt whether an earlier sending was applied (S4).
   */
  | { readonly status: 'conflict'; readonly version: string | null; readonly resent?: boolean }
  /** The entry was last written under a larger token of that lock. */
  | { readonly status: 'fenced'; readonly token: bigint }
  | Failed;

/** One page of a scan, in the order of the keys' bytes. */
export interface StatePage {
  readonly entries: readonly StoredEntry[];
  /** Where the next page starts; absent on the last one. */
  readonly cursor?: string;
}

/** A state store. */
export interface StateStore {
  /** Names the store and the place it keeps its entries in. */
  readonly name: string;
  readonly traits: {
    /** The most operations that one call takes. */
    readonly maxBatch: number;
    /** Changes are pushed to watchers; otherwise `watch` polls. */
    readonly push: boolean;
    /**
     * All writes of one call are carried out in one step: no crash and no reader ever comes between them. Each still
     * answers for itself, so a conflict of one does not hold up the others. Promised where all values but the longest
     * are together below 64 KiB. Default `false`.
     */
    readonly atomicBatch?: boolean;
    /** How much later than asked for an entry may expire. Never earlier. Default 0. */
    readonly ttlGranularityMs?: number;
  };
  /**
   * Where parts of the store can be away by themselves (the masters of a cluster), names the part that a key is in. What
   * a guard reads and writes for its callers then goes in calls of one partition, side by side, so that a part that is
   * away harms its own keys only. Every call still takes keys of any partitions; it is answered as a whole. Few and
   * stable. Default: one partition.
   */
  partition?(key: string): string;
  /** The store's own time, in milliseconds since the epoch. */
  now(): Promise<number>;
  /** In the order of the keys; `null` where nothing is (or it expired). */
  read(keys: readonly string[]): Promise<readonly (StoredEntry | null)[]>;
  /** At most one write per key in one call; the answers stand in the order of the writes. */
  write(writes: readonly StateWrite[]): Promise<readonly WriteAnswer[]>;
  /** Entries whose key starts with exactly these bytes. A cursor stays valid while entries come and go. */
  scan(prefix: string, cursor: string | undefined, limit: number): Promise<StatePage>;
  /**
   * Level-triggered: after the last write of an entry its newest value (or `null` for deleted) is delivered at least
   * once; writes between may merge, and an expiry is not announced. Where a stream has a gap the adapter closes it by listing again.
   */
  watch(prefix: string, listener: (change: StateChange) => void): Promise<Subscription>;
  /**
   * Ends all watches, also one that is being opened: that rejects with `closed`, as each later one does. A store that is one
   * object for all who share it, as in memory, frees nothing instead.
   */
  close(): Promise<void>;
}

/** A change that a watcher is told of. */
export interface StateChange {
  readonly key: string;
  /** The newest entry, or `null`: it is gone. */
  readonly entry: StoredEntry | null;
}
