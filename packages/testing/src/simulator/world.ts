/**
 * The one true time of a simulation, and everything that will happen in it. Whatever happens is one *turn*: the
 * earliest event runs, and every promise it moved settles before the next one. Between two turns nothing is half done,
 * which is where the laws look.
 */
import { systemClock, type Clock, type Timer } from '@guard/core';

/** Something that makes turns of its own: the timers of a node, which its pauses and clocks move. */
export interface TurnSource {
  /** True time of its next turn; `Infinity` while it has none. */
  readonly dueMs: number;
  /** Runs that turn. */
  fire(): void;
}

interface WorldEvent {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Wall time at the beginning of every simulation. */
export const EPOCH_MS = Date.UTC(2026, 0, 1);

/** True time and its turns. */
export class World {
  /** Milliseconds of true time since the start. */
  nowMs = 0;
  turns = 0;
  /** True time as a clock, for what has none of its own: the network. */
  readonly clock: Clock;
  readonly #sources = new Set<TurnSource>();
  /** By time, then in the order in which they were made. */
  readonly #events: WorldEvent[] = [];
  #order = 0;

  constructor() {
    this.clock = {
      now: () => ({ monoMs: this.nowMs, wallMs: EPOCH_MS + this.nowMs }),
      setTimer: (run, delayMs) => this.after(delayMs, run),
      yield: (run) => void this.after(0, run),
    };
  }

  /** Lets `run` happen in a turn of its own. */
  after(delayMs: number, run: () => void): Timer {
    if (delayMs === Infinity) return { cancel: () => undefined };
    const event = { atMs: this.nowMs + Math.max(delayMs, 0), order: this.#order++, run };
    this.#events.splice(this.#placeOf(event), 0, event);
    return {
      cancel: () => {
        const place = this.#events.indexOf(event);
        if (place >= 0) this.#events.splice(place, 1);
      },
    };
  }

  add(source: TurnSource): void {
    this.#sources.add(source);
  }

  remove(source: TurnSource): void {
    this.#sources.delete(source);
  }

  /** True time of the next turn; `Infinity`: nothing will ever happen again. */
  get nextMs(): number {
    let next = this.#events[0]?.atMs ?? Infinity;
    for (const { dueMs } of this.#sources) next = Math.min(next, dueMs);
    return Math.max(next, this.nowMs);
  }

  /** Runs the next turn and lets everything settle. `false`: there is none. */
  async turn(): Promise<boolean> {
    const run = this.#next();
    if (run === undefined) return false;
    this.turns += 1;
    run();
    await settle();
    return true;
  }

  #next(): (() => void) | undefined {
    const [first] = this.#events;
    let nextMs = first?.atMs ?? Infinity;
    let due: TurnSource | undefined;
    for (const source of this.#sources) {
      if (source.dueMs >= nextMs) continue;
      nextMs = source.dueMs;
      due = source;
    }
    if (nextMs === Infinity) return undefined;
    this.nowMs = Math.max(this.nowMs, nextMs);
    if (due !== undefined) return () => due.fire();
    this.#events.shift();
    return first!.run;
  }

  #placeOf({ atMs }: WorldEvent): number {
    let place = this.#events.length;
    while (place > 0 && this.#events[place - 1]!.atMs > atMs) place -= 1;
    return place;
  }
}

/** One real turn of the event loop: by its end every promise that can settle has. */
export function settle(): Promise<void> {
  return new Promise((resolve) => systemClock.yield(resolve));
}
