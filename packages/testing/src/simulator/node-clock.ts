/**
 * The clocks of one machine: they run a little too fast or too slow, start anywhere, can be set (wall), stand still
 * while the machine sleeps (monotonic), and go on while the process is stopped, although no timer fires then.
 */
import type { Clock, Instant, Timer, TimerOptions } from '@guard/core';
import { EPOCH_MS, type TurnSource, type World } from './world.js';

interface NodeTimer {
  readonly dueMonoMs: number;
  readonly order: number;
  readonly ref: boolean;
  readonly run: () => void;
}

/** How a machine's clocks start. */
export interface NodeClockOptions {
  /** Local milliseconds per true millisecond. */
  readonly rate: number;
  readonly monoMs: number;
  /** How far the wall clock is off. */
  readonly wallOffsetMs: number;
}

/** Both clocks and the timers of one machine. */
export class NodeClock implements Clock, TurnSource {
  readonly #world: World;
  readonly #rate: number;
  readonly #timers: NodeTimer[] = [];
  #order = 0;
  /** Readings at `#sinceMs` of true time, from which both clocks are counted on. */
  #sinceMs: number;
  #monoMs: number;
  #wallMs: number;
  #asleep = false;
  #stopped = false;
  #lagUntilMs = 0;

  constructor(world: World, { rate, monoMs, wallOffsetMs }: NodeClockOptions) {
    this.#world = world;
    this.#rate = rate;
    this.#sinceMs = world.nowMs;
    this.#monoMs = monoMs;
    this.#wallMs = EPOCH_MS + world.nowMs + wallOffsetMs;
    world.add(this);
  }

  now(): Instant {
    const passedMs = (this.#world.nowMs - this.#sinceMs) * this.#rate;
    return { monoMs: this.#monoMs + (this.#asleep ? 0 : passedMs), wallMs: this.#wallMs + passedMs };
  }

  setTimer(run: () => void, delayMs: number, options: TimerOptions = {}): Timer {
    if (delayMs === Infinity) return { cancel: () => undefined };
    const dueMonoMs = this.now().monoMs + Math.max(delayMs, 0);
    const timer = { dueMonoMs, order: this.#order++, ref: options.ref !== false, run };
    let place = this.#timers.length;
    while (place > 0 && this.#timers[place - 1]!.dueMonoMs > dueMonoMs) place -= 1;
    this.#timers.splice(place, 0, timer);
    return {
      cancel: () => {
        const at = this.#timers.indexOf(timer);
        if (at >= 0) this.#timers.splice(at, 1);
      },
    };
  }

  yield(run: () => void): void {
    this.setTimer(run, 0);
  }

  /** Timers that would keep the process alive (L5). */
  get refTimers(): number {
    return this.#timers.filter(({ ref }) => ref).length;
  }

  get dueMs(): number {
    const [first] = this.#timers;
    if (first === undefined || this.#stopped || this.#asleep) return Infinity;
    return Math.max(this.#sinceMs + (first.dueMonoMs - this.#monoMs) / this.#rate, this.#lagUntilMs);
  }

  fire(): void {
    const timer = this.#timers.shift();
    if (timer === undefined) return;
    this.#rebase();
    // Counting there and back again loses the last bit, and a timer never fires early.
    this.#monoMs = Math.max(this.#monoMs, timer.dueMonoMs);
    timer.run();
  }

  /** The process is stopped: no timer fires until it goes on. */
  stop(): void {
    this.#stopped = true;
  }

  /** The machine sleeps: no timer fires, and the monotonic clock stands still. */
  sleep(): void {
    this.#rebase();
    this.#asleep = true;
  }

  /** The process goes on after `stop` or `sleep`; its first timers come after `lagMs`. */
  wake(lagMs: number): void {
    this.#rebase();
    this.#asleep = false;
    this.#stopped = false;
    this.#lagUntilMs = this.#world.nowMs + lagMs;
  }

  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  /** The process is gone, and its timers with it. */
  kill(): void {
    this.#timers.length = 0;
    this.#world.remove(this);
  }

  #rebase(): void {
    const { monoMs, wallMs } = this.now();
    this.#monoMs = monoMs;
    this.#wallMs = wallMs;
    this.#sinceMs = this.#world.nowMs;
  }
}
