/**
 * What really became of every write of state. The store is believed about versions, and about nothing else: whether
 * a write was rightly applied, and how often, is counted here.
 */
import type { StateWrite, WriteAnswer } from '@guard/core';
import type { Stage } from '../stage.js';

/** What the simulation writes: a wish of its own each time, so that it can be found again. */
export interface WrittenValue {
  readonly wish: string;
}

interface KnownEntry {
  /** Of the last write, also where it was a delete. */
  readonly version: string;
  readonly isThere: boolean;
  readonly writeId: string;
}

/** All entries of one simulation. */
export class Entries {
  readonly #stage: Stage;
  readonly #prefix: string;
  readonly #tell: (write: StateWrite) => void;
  readonly #known = new Map<string, KnownEntry>();
  readonly #versions = new Set<string>();
  readonly #fences = new Map<string, bigint>();
  /** Version by wish. */
  readonly #applied = new Map<string, string>();
  /** Wishes whose owner was told that nothing was written. */
  readonly #refused = new Set<string>();

  /** `prefix`: of the state that applications write by themselves. */
  constructor(stage: Stage, prefix: string, applied: (write: StateWrite) => void) {
    this.#stage = stage;
    this.#prefix = prefix;
    this.#tell = applied;
  }

  /** Books a write that the store carried out. */
  executed(write: StateWrite, answer: WriteAnswer): void {
    const { key } = write;
    const known = this.#known.get(key);
    const version = known?.isThere ? known.version : null;
    const expected =
      write.expect === 'any' || (write.expect === 'absent' ? null : write.expect.version) === version;
    if (answer.status === 'written') {
      if (known?.writeId === write.writeId) return this.#repeated(write, known, answer.version);
      if (!expected) this.#broken('fence', `${key}: written over ${version}, which was not expected`);
      this.#apply(write, answer.version);
    }
    if (answer.status === 'conflict' && (expected || known?.writeId === write.writeId))
      this.#broken('S6', `${key}: a conflict, although it is as expected`);
    if (answer.status === 'fenced' && answer.token <= (write.fence?.token ?? 0n))
      this.#broken('S6', `${key}: fenced by ${answer.token}, which is not newer`);
  }

  /** The owner of a wish was told `version`: it was written. */
  toldWritten(wish: string, version: string): void {
    if (this.#applied.get(wish) !== version)
      this.#broken('S6', `${wish} was told version ${version}, and ${this.#applied.get(wish)} is true`);
  }

  /** The owner of a wish was told that nothing was written, and never will be. */
  toldRefused(wish: string, why: string): void {
    if (this.#applied.has(wish)) this.#broken('S4', `${wish} was told "${why}", and it is written`);
    this.#refused.add(wish);
  }

  #repeated(write: StateWrite, known: KnownEntry, version: string): void {
    this.#stage.journal.count('re-sent write recognised');
    if (known.version !== version)
      this.#broken('S4', `${write.key}: a re-sent write got version ${version} after ${known.version}`);
  }

  #apply(write: StateWrite, version: string): void {
    const { key, fence } = write;
    const wish = this.#wishOf(write);
    if (this.#versions.has(`${key}#${version}`))
      this.#broken('fence', `${key}: version ${version} comes twice`);
    this.#versions.add(`${key}#${version}`);
    this.#known.set(key, { version, isThere: write.value !== null, writeId: write.writeId });
    if (wish !== undefined) {
      // A write that expects nothing is a wish to overwrite, and a repetition of it overwrites once more.
      if (this.#applied.has(wish) && write.expect !== 'any') this.#broken('S4', `${wish} was applied twice`);
      if (this.#refused.has(wish))
        this.#broken('S4', `${wish} was applied after its owner was told that it is not`);
      this.#applied.set(wish, version);
    }
    this.#tell(write);
    if (fence === undefined) return;
    const name = `${key}|${fence.lock}`;
    const newest = this.#fences.get(name) ?? 0n;
    if (fence.token < newest)
      this.#broken('fence', `${key}: a write under ${fence.token} after the one of ${newest}`);
    else this.#fences.set(name, fence.token);
  }

  /** Runs and nodes are kept in the same store, and wish for nothing that is counted here. */
  #wishOf({ key, value }: StateWrite): string | undefined {
    if (value === null || !key.startsWith(this.#prefix)) return undefined;
    return (JSON.parse(value) as WrittenValue).wish;
  }

  #broken(promise: 'S4' | 'S6' | 'fence', message: string): void {
    this.#stage.journal.broken(promise, `state: ${message}`);
  }
}
