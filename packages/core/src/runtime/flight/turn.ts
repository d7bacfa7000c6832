/**
 * The turn of the event loop that claims are answered in. What is answered without I/O needs no turn of the loop, so a
 * loop of such claims would keep timers and I/O waiting for ever (L1 rests on timers). After a few milliseconds of one
 * turn the next claims wait for the next one, in their order.
 *
 * The loop is one, so all guards of one clock share a turn. It begins with the first claim that asks, and a callback
 * that runs when the loop turns ends it: that is exact, and costs a guard that is not busy nothing but that callback.
 */
import type { Clock } from '../../port/clock.js';

/** For how long claims may be answered without a turn of the loop. */
const TURN_MS = 4;

const turns = new WeakMap<Clock, Turn>();

/** The turn that everything on this clock shares. */
export function turnOf(clock: Clock): Turn {
  let turn = turns.get(clock);
  if (turn === undefined) {
    turn = new Turn(clock);
    turns.set(clock, turn);
  }
  return turn;
}

/** One turn after the other. */
export class Turn {
  private startedMonoMs: number | undefined;
  private over = false;
  private waiting: (() => void)[] = [];

  constructor(private readonly clock: Clock) {}

  /** Timers and I/O have waited long enough: whatever is not sent yet waits for `next`. */
  get isOver(): boolean {
    return this.over;
  }

  /** Whether one more claim may be answered in this turn. */
  lasts(nowMonoMs: number): boolean {
    if (this.startedMonoMs === undefined) {
      this.startedMonoMs = nowMonoMs;
      this.clock.yield(() => this.end());
    } else if (nowMonoMs - this.startedMonoMs >= TURN_MS) {
      this.over = true;
    }
    return !this.over;
  }

  /** Calls `run` at the beginning of the turn after one that is over. */
  next(run: () => void): void {
    this.waiting.push(run);
  }

  private end(): void {
    const { waiting } = this;
    this.startedMonoMs = undefined;
    this.over = false;
    this.waiting = [];
    for (const run of waiting) run();
  }
}
