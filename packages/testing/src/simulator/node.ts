/**
 * One start of one process: its clocks, its guard, and the gate through which everything reaches it. A stopped process
 * takes nothing in; what arrives waits at the gate, and comes in some order when it goes on. A process that is gone
 * takes nothing in ever again.
 */
import type { Guard } from '@guard/core';
import type { NodeClock } from './node-clock.js';
import { between, chance } from './chance.js';
import type { Stage } from './stage.js';

/** After a stop, the first timers fire within so long. */
const WAKE_LAG_MS = 2;
/** And what waited at the gate comes within one of these times: connections are read in any order. */
const WAKE_SPREADS_MS = [2, 20, 200] as const;

/** A process of the simulation. */
export class SimNode {
  /** The guard of this process; set once its connection is there. */
  guard!: Guard;
  /** The guard is being closed by its owner. */
  closing = false;
  /** Until when something is in the way of this process: faults of its connection, pauses, faults of the backend. */
  disturbedUntilMs = -1;
  readonly #waiting: (() => void)[] = [];
  #state: 'up' | 'stopped' | 'gone' = 'up';
  #activeMs = 0;
  #upSinceMonoMs: number;

  constructor(
    readonly name: string,
    readonly slot: number,
    readonly clock: NodeClock,
    private readonly stage: Stage,
  ) {
    this.#upSinceMonoMs = clock.now().monoMs;
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  get isGone(): boolean {
    return this.#state === 'gone';
  }

  /** Whether its timers had the time to fire since it went on. */
  get isAwake(): boolean {
    return this.isUp && this.clock.now().monoMs - this.#upSinceMonoMs > WAKE_LAG_MS;
  }

  /** How long it ran, on its own clock: time in which it was stopped does not count. */
  get activeMs(): number {
    return this.#activeMs + (this.isUp ? this.clock.now().monoMs - this.#upSinceMonoMs : 0);
  }

  /** Something is in the way for `ms` from now on. */
  disturb(ms: number): void {
    this.disturbedUntilMs = Math.max(this.disturbedUntilMs, this.stage.world.nowMs + ms);
  }

  /** Lets something from outside in, or keeps it at the gate. */
  deliver(run: () => void): void {
    if (this.#state === 'up') run();
    else if (this.#state === 'stopped') this.#waiting.push(run);
  }

  /** Waits on the clock of this process. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.setTimer(resolve, ms, { ref: false }));
  }

  /** SIGSTOP, a long collection, a starved machine: the clocks go on. `asleep`: the machine sleeps. */
  stop(ms: number, asleep: boolean): void {
    if (!this.isUp) return;
    this.#activeMs = this.activeMs;
    this.#state = 'stopped';
    this.disturb(ms + 250);
    if (asleep) this.clock.sleep();
    else this.clock.stop();
    this.stage.journal.note(`${this.name} ${asleep ? 'sleeps' : 'is stopped'} for ${ms.toFixed(1)}`);
    this.stage.world.after(ms, () => this.#wake());
  }

  /** SIGKILL. */
  kill(): void {
    this.stage.journal.note(`${this.name} is killed`);
    this.#state = 'gone';
    this.#waiting.length = 0;
    this.clock.kill();
  }

  #wake(): void {
    if (this.#state !== 'stopped') return;
    this.stage.journal.note(`${this.name} goes on`);
    this.#state = 'up';
    const { random, world } = this.stage;
    const timersFirst = chance(random, 0.5);
    this.clock.wake(timersFirst ? 0 : between(random, 0, WAKE_LAG_MS));
    this.#upSinceMonoMs = this.clock.now().monoMs;
    const spreadMs = random.pick(WAKE_SPREADS_MS);
    for (const run of this.#waiting.splice(0))
      world.after(between(random, 0, spreadMs), () => this.deliver(run));
  }
}
