/**
 * One timer for any number of things that are due: a heap, so that ten thousand held locks cost one timer (C3). The
 * timer is left armed when its reason goes away and looks again when it fires, so that taking and giving back a lock
 * costs no timer at all. While nothing is scheduled it keeps no process alive; where the clock cannot say that of a timer
 * that is set, an idle scheduler lets go of it one turn of the event loop later.
 */
import type { Clock, Timer } from '../../port/clock.js';

/** Something that is due once. An object of its own, or a field of what it belongs to. */
export interface Due {
  /** Monotonic time at which it is due. */
  dueMonoMs: number;
  /** Its place in the heap; -1 while it is not scheduled. Owned by the scheduler. */
  slot: number;
  /** What to do; called once, after the item left the heap. */
  fire(nowMonoMs: number): void;
}

/** A heap of due things over one timer. */
export class Scheduler {
  private readonly heap: Due[] = [];
  private timer: Timer | undefined;
  private armedForMs = Infinity;
  private checking = false;
  /** The timer is set for nothing, and keeps nothing alive. */
  private resting = false;
  private firing = false;

  /** `ref: true`: what is scheduled here keeps the process alive (L5). */
  constructor(
    private readonly clock: Clock,
    private readonly ref: boolean,
  ) {}

  /** How many things are scheduled. */
  get size(): number {
    return this.heap.length;
  }

  /** The earliest thing, if any. */
  peek(): Due | undefined {
    return this.heap[0];
  }

  /** Schedules, or moves what is scheduled already. */
  schedule(item: Due, dueMonoMs: number): void {
    item.dueMonoMs = dueMonoMs;
    if (item.slot < 0) {
      item.slot = this.heap.length;
      this.heap.push(item);
      this.rise(item);
    } else {
      this.rise(item);
      this.sink(item);
    }
    if (this.firing) return;
    if (dueMonoMs < this.armedForMs) this.arm();
    else if (this.resting) this.rest(false);
  }

  /** Forgets an item; without effect if it is not scheduled. */
  cancel(item: Due): void {
    const { slot } = item;
    if (slot < 0) return;
    item.slot = -1;
    const last = this.heap.pop()!;
    if (last !== item) {
      this.heap[slot] = last;
      last.slot = slot;
      this.rise(last);
      this.sink(last);
    }
    if (this.heap.length === 0 && this.timer !== undefined) this.idle(this.timer);
  }

  private idle(timer: Timer): void {
    if (timer.keepAlive === undefined) this.checkIdleSoon();
    else if (this.ref) this.rest(true);
  }

  private rest(resting: boolean): void {
    this.resting = resting;
    this.timer?.keepAlive?.(!resting);
  }

  private arm(): void {
    const first = this.heap[0];
    if (first === undefined) return;
    this.timer?.cancel();
    this.resting = false;
    this.armedForMs = first.dueMonoMs;
    const delayMs = Math.max(0, first.dueMonoMs - this.clock.now().monoMs);
    this.timer = this.clock.setTimer(() => this.fire(), delayMs, { ref: this.ref });
  }

  private fire(): void {
    this.timer = undefined;
    this.resting = false;
    this.armedForMs = Infinity;
    this.firing = true;
    const nowMs = this.clock.now().monoMs;
    try {
      for (let first = this.heap[0]; first !== undefined && first.dueMonoMs <= nowMs; first = this.heap[0]) {
        this.cancel(first);
        first.fire(nowMs);
      }
    } finally {
      this.firing = false;
      this.arm();
    }
  }

  private checkIdleSoon(): void {
    if (this.checking) return;
    this.checking = true;
    this.clock.yield(() => {
      this.checking = false;
      if (this.heap.length > 0) return;
      this.timer?.cancel();
      this.timer = undefined;
      this.armedForMs = Infinity;
    });
  }

  private rise(item: Due): void {
    const { heap } = this;
    let slot = item.slot;
    while (slot > 0) {
      const above = (slot - 1) >> 1;
      const parent = heap[above]!;
      if (parent.dueMonoMs <= item.dueMonoMs) break;
      heap[slot] = parent;
      parent.slot = slot;
      slot = above;
    }
    heap[slot] = item;
    item.slot = slot;
  }

  private sink(item: Due): void {
    const { heap } = this;
    const half = heap.length >> 1;
    let slot = item.slot;
    while (slot < half) {
      let below = 2 * slot + 1;
      if (below + 1 < heap.length && heap[below + 1]!.dueMonoMs < heap[below]!.dueMonoMs) below += 1;
      const child = heap[below]!;
      if (child.dueMonoMs >= item.dueMonoMs) break;
      heap[slot] = child;
      child.slot = slot;
      slot = below;
    }
    heap[slot] = item;
    item.slot = slot;
  }
}
