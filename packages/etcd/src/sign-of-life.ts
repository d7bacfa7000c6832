/**
 * Whether anybody is at the other end of a stream of watches, and whether that member hears of what the cluster writes.
 * A wire that was cut and a member that hangs look like a quiet time; so the member is asked every three seconds, and has
 * three seconds to say anything. One that is cut off from the others does answer: its revision stands still, and falls
 * behind what a majority says.
 */
import type { Clock, Timer } from '@guard/core';

/** How often a stream is asked for a sign of life, and how long it may owe one. */
const ASKED_EVERY_MS = 3_000;
/** How often a majority is asked for its revision: every so many signs of life. */
const COMPARED_EVERY = 4;

/** What a sign of life is asked of. */
export interface Asked {
  /** Asks for an answer on the stream. */
  ask(): void;
  /** The revision of the cluster, as a majority says. */
  revision(): Promise<bigint>;
  /** Nobody is there, or it is no member to listen to. */
  dead(cause: Error): void;
  /** Once for each sign of life, after it was asked for. */
  tick(): void;
}

/** The signs of life of one stream. */
export class SignOfLife {
  private timer: Timer | undefined;
  private dueMs = 0;
  private ticks = 0;
  private owes = false;
  private seen = 0n;
  /** What the member must have reached, when it answers after this tick. */
  private least: { readonly revision: bigint; readonly tick: number } | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly asked: Asked,
  ) {}

  /** Looks after a stream that is open. */
  start(): void {
    this.stop();
    this.next();
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.owes = false;
    this.seen = 0n;
    this.least = undefined;
  }

  /** Something came, which the member said at this revision. */
  heard(revision: bigint): void {
    this.owes = false;
    if (revision > this.seen) this.seen = revision;
  }

  private next(): void {
    this.dueMs = this.clock.now().monoMs + ASKED_EVERY_MS;
    this.timer = this.clock.setTimer(() => this.tick(), ASKED_EVERY_MS, { ref: false });
  }

  private tick(): void {
    // After a long turn, or a sleep of the machine, what came meanwhile has not been read yet.
    const isLate = this.clock.now().monoMs - this.dueMs > ASKED_EVERY_MS / 2;
    this.ticks += 1;
    this.next();
    if (!isLate) {
      if (this.owes)
        return this.asked.dead(new Error(`no answer on a stream of watches in ${ASKED_EVERY_MS} ms`));
      const { least } = this;
      if (least !== undefined && this.ticks >= least.tick + 2) {
        if (this.seen < least.revision) return this.asked.dead(new Error('a member of etcd is left behind'));
        this.least = undefined;
      }
    }
    this.owes = true;
    this.asked.ask();
    if (this.ticks % COMPARED_EVERY === 0) this.compare();
    this.asked.tick();
  }

  private compare(): void {
    // Where no majority answers, there is nothing to miss.
    this.asked.revision().then(
      (revision) => {
        if (this.timer !== undefined) this.least ??= { revision, tick: this.ticks };
      },
      () => undefined,
    );
  }
}
