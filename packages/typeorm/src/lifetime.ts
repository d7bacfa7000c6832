/**
 * Whether a row that lives for a time is still alive. A row of this boot says so by itself. A row of another boot
 * (the machine was started again, or the file is shared by machines that count differently) cannot: its moment means
 * nothing here, so it counts as alive until this process has seen it unchanged for its whole time.
 */
import type { MachineTime } from './machine-time.js';

/** The columns that every row with a limited life has. */
export interface Lifetime {
  readonly boot: string;
  /** When it was written, by the machine's time of that boot. */
  readonly since: number;
  /** When it ends. */
  readonly deadline: number;
}

interface Sighting {
  readonly stamp: string;
  readonly firstMs: number;
}

/** The most rows of other boots that are kept in sight; further ones wait until one of them has ended. */
export const MAX_SIGHTINGS = 10_000;
/** A row written this much later than now was written in another boot. */
const FUTURE_MS = 1_000;

/** Judges lifetimes. */
export class Lifetimes {
  readonly #time: MachineTime;
  readonly #sightings = new Map<string, Sighting>();

  constructor(time: MachineTime) {
    this.#time = time;
  }

  /** The boot that rows written now belong to. */
  get boot(): string {
    return this.#time.boot;
  }

  /** Now, for comparisons: a deadline at or below it has passed. */
  nowMs(): number {
    return Math.floor(this.#time.nowMs());
  }

  /** The columns of a row that lives for `ms` from now, and not a moment less. */
  lasting(ms: number): Lifetime {
    const now = this.#time.nowMs();
    return { boot: this.#time.boot, since: Math.floor(now), deadline: Math.ceil(now) + ms };
  }

  /** Whether the row's moments are those of this boot, so that a statement can compare them. */
  isNative({ boot, since }: Lifetime): boolean {
    return boot === this.#time.boot && since <= this.nowMs() + FUTURE_MS;
  }

  /**
   * How long the row lives on; 0 or less: it has ended.
   *
   * @param id names the row in this process. @param stamp changes with every write of it.
   */
  leftMs(id: string, stamp: string, row: Lifetime): number {
    if (this.isNative(row)) return row.deadline - this.nowMs();
    const spanMs = row.deadline - row.since;
    const seen = this.#sightings.get(id);
    if (seen?.stamp === stamp) return spanMs - (this.nowMs() - seen.firstMs);
    if (seen !== undefined || this.#sightings.size < MAX_SIGHTINGS) {
      this.#sightings.set(id, { stamp, firstMs: this.nowMs() });
    }
    return spanMs;
  }

  /** Drops what is known of a row that is gone. */
  forget(id: string): void {
    if (this.#sightings.size > 0) this.#sightings.delete(id);
  }
}
