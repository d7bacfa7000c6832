/**
 * What an entry leaves behind when it is deleted or expires: the fence that refuses an older holder's write, and the
 * `writeId` by which a re-sent delete recognises itself. Kept for `FENCE_KEPT_MS`, and by age beyond a number that
 * no application with fences should reach.
 */
import { FENCE_KEPT_MS, type Fence } from '../port/state-store.js';

/** The most entries that are remembered after they went. */
export const MAX_GONE = 100_000;

/** The last write of an entry, present or gone. */
export interface LastWrite {
  readonly version: string;
  readonly writeId: string;
  /** Of the newest holder that ever wrote; kept over writes without a fence. */
  readonly fence: Fence | undefined;
}

/** Entries that are not there any more, in the order in which they went. */
export class GoneEntries {
  readonly #gone = new Map<string, { readonly last: LastWrite; readonly untilMs: number }>();

  /** What is remembered of a key. */
  get(key: string, nowMs: number): LastWrite | undefined {
    const gone = this.#gone.get(key);
    return gone !== undefined && gone.untilMs > nowMs ? gone.last : undefined;
  }

  /** Remembers an entry that went at `sinceMs`. */
  add(key: string, last: LastWrite, sinceMs: number, nowMs: number): void {
    this.#gone.delete(key);
    this.#gone.set(key, { last, untilMs: sinceMs + FENCE_KEPT_MS });
    this.#prune(nowMs);
  }

  /** Forgets an entry that is there again. */
  delete(key: string): void {
    this.#gone.delete(key);
  }

  #prune(nowMs: number): void {
    for (const [key, gone] of this.#gone) {
      if (gone.untilMs > nowMs && this.#gone.size <= MAX_GONE) return;
      this.#gone.delete(key);
    }
  }
}
