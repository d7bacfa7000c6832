/**
 * Keys in the order of their bytes, kept in runs of bounded length, so that adding one among a million moves a few
 * hundred places and a scan starts where its prefix starts.
 */
import { compareBytes } from '../value/byte-order.js';

/** A run that grows beyond this is split in two. */
const MAX_RUN = 512;

/** A sorted set of texts. */
export class SortedKeys {
  /** Never empty inside; sorted inside and among each other. */
  readonly #runs: string[][] = [];

  /** Adds a key that is not in the set. */
  add(key: string): void {
    const at = Math.min(this.#runOf(key), this.#runs.length - 1);
    const run = this.#runs[at];
    if (run === undefined) {
      this.#runs.push([key]);
      return;
    }
    run.splice(placeOf(run, key), 0, key);
    if (run.length > MAX_RUN) this.#runs.splice(at + 1, 0, run.splice(MAX_RUN / 2));
  }

  /** Removes a key that is in the set. */
  delete(key: string): void {
    const at = this.#runOf(key);
    const run = this.#runs[at]!;
    run.splice(placeOf(run, key), 1);
    if (run.length === 0) this.#runs.splice(at, 1);
  }

  /** The keys from `first` on (itself included). The set must not change meanwhile. */
  *from(first: string): Generator<string> {
    for (let at = this.#runOf(first); at < this.#runs.length; at += 1) {
      const run = this.#runs[at]!;
      for (let place = placeOf(run, first); place < run.length; place += 1) yield run[place]!;
    }
  }

  /** The first run whose last key is not before `key`; one past the end where there is none. */
  #runOf(key: string): number {
    return firstIndex(this.#runs.length, (at) => compareBytes(this.#runs[at]!.at(-1)!, key) >= 0);
  }
}

/** Where `key` stands in a sorted list, or would. */
function placeOf(run: readonly string[], key: string): number {
  return firstIndex(run.length, (place) => compareBytes(run[place]!, key) >= 0);
}

/** The first index below `length` for which `reached` is true; `length` where there is none. */
function firstIndex(length: number, reached: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
