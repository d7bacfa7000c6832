/**
 * What happened in a simulation, line by line, and the law that was broken, if one was. The lines are all there is to
 * compare two plays of one seed, so every draw that matters ends up in one.
 */
import { createHash } from 'node:crypto';
import type { World } from './world.js';

/** The promises that a simulation watches. */
export type WatchedPromise =
  'S1' | 'S2' | 'S3' | 'S4' | 'S5' | 'S6' | 'S7' | 'S8' | 'L1' | 'L3' | 'L5' | 'fence' | 'port';

/** A law that was broken. */
export interface Violation {
  readonly promise: WatchedPromise;
  readonly message: string;
  /** True time. */
  readonly atMs: number;
  /** How many turns had passed. */
  readonly turn: number;
}

/** The trace of one simulation. */
export class Journal {
  readonly lines: string[] = [];
  readonly #world: World;
  readonly #counts = new Map<string, number>();
  #violation: Violation | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** The first law that was broken: what follows from it is of no interest. */
  get violation(): Violation | undefined {
    return this.#violation;
  }

  /** Adds a line. */
  note(text: string): void {
    this.lines.push(`${this.#world.nowMs.toFixed(3)} ${text}`);
  }

  /** Counts how often a mechanism was met, so that a test can tell that the simulation reaches it. */
  count(mark: string): void {
    this.#counts.set(mark, (this.#counts.get(mark) ?? 0) + 1);
  }

  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }

  /** A law is broken. */
  broken(promise: WatchedPromise, message: string): void {
    this.note(`BROKEN [${promise}] ${message}`);
    this.#violation ??= { promise, message, atMs: this.#world.nowMs, turn: this.#world.turns };
  }

  /** The same for two plays only if every line is the same. */
  hash(): string {
    return createHash('sha256').update(this.lines.join('\n')).digest('hex').slice(0, 16);
  }
}
