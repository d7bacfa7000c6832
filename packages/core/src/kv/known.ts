/**
 * Records by their version, with their history. A move has to write the history again with one more line; who read
 * or wrote that very version before need not read it once more, so a run costs one trip per change (C5). A version
 * never stands for two values, so what is remembered is never wrong; the oldest is forgotten when there are too many.
 */
import type { KeptRun } from './record.js';

/** The most records that are remembered. Only open ones stay, and a node has few of those at a time. */
const MAX_KNOWN = 1_024;

/** What a record was at one version. */
export type KnownRun = Omit<KeptRun, 'pruned'>;

/** The newest known version of records, by their key. */
export class KnownRuns {
  readonly #runs = new Map<string, KnownRun>();

  /** What the record was at this version, if it is known. */
  at(key: string, version: string): KnownRun | undefined {
    const known = this.#runs.get(key);
    return known?.version === version ? known : undefined;
  }

  /** Remembers a version in the place of the one before. */
  add(key: string, known: KnownRun): void {
    this.#runs.delete(key);
    this.#runs.set(key, known);
    if (this.#runs.size <= MAX_KNOWN) return;
    for (const oldest of this.#runs.keys()) {
      this.#runs.delete(oldest);
      return;
    }
  }

  /** Forgets a record that is over: nobody is likely to change it again. */
  delete(key: string): void {
    this.#runs.delete(key);
  }
}
