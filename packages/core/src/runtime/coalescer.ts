/**
 * Gathers operations of one verb into batches. Nothing waits for company: with nothing in flight an operation is sent
 * at once; what arrives while two batches are on their way goes with the next, at most half of what is outstanding,
 * so that client and server work at the same time (C2).
 *
 * Two rules are for safety: one key stands at most once in a batch and never in two batches in flight (two claims on
 * one key in one transaction were both granted, on a real server), and batches are sorted by key, so that batches
 * that overlap on the server cannot deadlock.
 */
import type { Clock } from '../port/clock.js';
import type { Instant } from '../value/instant.js';
import { compareText } from '../value/token.js';
import { Entry, type Landing, type Sink, type Submitted } from './landing.js';
import type { Due, Scheduler } from './scheduler.js';

/** How a coalescer sends. */
export interface CoalescerOptions<Op, Answer> {
  readonly clock: Clock;
  /** Where the flights' time-outs are kept: one that keeps the process alive while something is on its way (L5). */
  readonly deadlines: Scheduler;
  readonly send: (batch: readonly Op[]) => Promise<readonly Answer[]>;
  /**
   * Answers an operation without a flight, where the backend is in this process; `undefined`: not now. Asked only while
   * nothing is queued or in flight, so that the order stays.
   */
  readonly atOnce?: (op: Op, now: Instant) => Answer | undefined;
  readonly maxBatch: number;
  /**
   * What is due together travels together: operations of one turn share a batch as large as the backend takes, so
   * that their latency does not add up. For renewals, which run against a deadline.
   */
  readonly together?: boolean;
  /** Sees every landing before its sink does: the watch over the backend's health. */
  readonly watch?: (landing: Landing<Answer>) => void;
}

const MAX_IN_FLIGHT = 2;
const SMALLEST_CAP = 8;
/** Sent entries at the front of the queue are dropped in pieces of this size. */
const COMPACT_AT = 1_024;
/** A backend that answers without I/O would let timers starve: after so long the event loop gets a turn. */
const TURN_MS = 4;
/** The clock is looked at once in so many flights. */
const LOOK_EVERY = 8;

/** Batches of one verb. */
export class Coalescer<Op, Answer> {
  private readonly lanes = new Map<string, Lane<Op, Answer>>();

  constructor(private readonly options: CoalescerOptions<Op, Answer>) {}

  /**
   * Sends `op`, alone or with others of its partition; `sink` is called exactly once unless it is withdrawn. After
   * the shortest `timeoutMs` in a batch the flight counts as failed and does not hold the next (L3); its late answer
   * is not looked at.
   */
  submit(partition: string, key: string, op: Op, timeoutMs: number, sink: Sink<Answer>): Submitted {
    return this.lane(partition).submit(key, op, timeoutMs, sink);
  }

  /** Answers a lone operation without a flight; `undefined`: not now, submit it. */
  answerAtOnce(partition: string, op: Op, now: Instant): Answer | undefined {
    return this.lane(partition).answerAtOnce(op, now);
  }

  private lane(partition: string): Lane<Op, Answer> {
    let lane = this.lanes.get(partition);
    if (lane === undefined) {
      lane = new Lane(this.options);
      this.lanes.set(partition, lane);
    }
    return lane;
  }
}

class Lane<Op, Answer> {
  private readonly queue: Entry<Op, Answer>[] = [];
  private head = 0;
  /** The last operation of each key that is queued or in flight. */
  private readonly tails = new Map<string, Entry<Op, Answer>>();
  private flights = 0;
  private inFlightOps = 0;
  private turnStartedMs = -Infinity;
  private flightsInTurn = 0;
  private yielding = false;
  private pumping = false;

  constructor(private readonly options: CoalescerOptions<Op, Answer>) {}

  answerAtOnce(op: Op, now: Instant): Answer | undefined {
    const { atOnce } = this.options;
    if (atOnce === undefined || this.yielding || this.flights > 0 || this.queue.length > 0) return undefined;
    const answer = atOnce(op, now);
    if (answer !== undefined) this.nextFlight();
    return answer;
  }

  submit(key: string, op: Op, timeoutMs: number, sink: Sink<Answer>): Submitted {
    const entry = new Entry(key, op, timeoutMs, sink);
    const tail = this.tails.get(key);
    this.tails.set(key, entry);
    if (tail === undefined) this.queue.push(entry);
    else tail.next = entry;
    if (this.options.together) this.pumpSoon();
    else if (!this.yielding) this.pump();
    return entry;
  }

  private pumpSoon(): void {
    if (this.yielding) return;
    this.yielding = true;
    queueMicrotask(() => {
      this.yielding = false;
      this.pump();
    });
  }

  private pump(): void {
    // A flight that lands at once comes back here: the loop is running already.
    if (this.pumping) return;
    this.pumping = true;
    try {
      while (!this.yielding && this.flights < MAX_IN_FLIGHT && this.head < this.queue.length) {
        const batch = this.gather();
        if (batch.length > 0) this.fly(batch);
      }
    } finally {
      this.pumping = false;
    }
    this.compact();
  }

  private compact(): void {
    if (this.head === 0) return;
    if (this.head === this.queue.length) {
      this.queue.length = 0;
      this.head = 0;
    } else if (this.head >= COMPACT_AT) {
      this.queue.splice(0, this.head);
      this.head = 0;
    }
  }

  private gather(): Entry<Op, Answer>[] {
    const cap = this.cap();
    const batch: Entry<Op, Answer>[] = [];
    while (batch.length < cap && this.head < this.queue.length) {
      const entry = this.queue[this.head]!;
      this.head += 1;
      if (entry.withdrawn) this.leave(entry);
      else batch.push(entry);
    }
    if (batch.length > 1) batch.sort((a, b) => compareText(a.key, b.key));
    return batch;
  }

  private cap(): number {
    const { maxBatch, together } = this.options;
    if (together) return maxBatch;
    const outstanding = this.queue.length - this.head + this.inFlightOps;
    return Math.min(maxBatch, Math.max(SMALLEST_CAP, Math.ceil(outstanding / 2)));
  }

  private fly(batch: Entry<Op, Answer>[]): void {
    const { clock, deadlines } = this.options;
    const sentAt = clock.now();
    this.flights += 1;
    this.inFlightOps += batch.length;
    let timeoutMs = Infinity;
    for (const entry of batch) {
      entry.sent = true;
      timeoutMs = Math.min(timeoutMs, entry.timeoutMs);
    }
    const answers = this.answersAtOnce(batch, sentAt);
    if (answers !== undefined) return this.land(batch, answers, undefined, sentAt);
    const flight: Due & { landed: boolean } = {
      dueMonoMs: 0,
      slot: -1,
      landed: false,
      fire: () => {
        flight.landed = true;
        this.land(batch, undefined, new Error(`the backend did not answer within ${timeoutMs} ms`), sentAt);
      },
    };
    deadlines.schedule(flight, sentAt.monoMs + timeoutMs);
    const land = (answers: readonly Answer[] | undefined, cause: unknown): void => {
      if (flight.landed) return;
      flight.landed = true;
      deadlines.cancel(flight);
      this.land(batch, answers, cause, sentAt);
    };
    this.send(batch).then(
      (answers) => land(answers, undefined),
      (cause: unknown) => land(undefined, cause),
    );
  }

  private answersAtOnce(batch: readonly Entry<Op, Answer>[], now: Instant): readonly Answer[] | undefined {
    const { atOnce } = this.options;
    const answers: Answer[] = [];
    for (const { op } of batch) {
      const answer = atOnce?.(op, now);
      if (answer === undefined) return undefined;
      answers.push(answer);
    }
    return answers;
  }

  /** A send that throws is a flight that fails. */
  private send(batch: readonly Entry<Op, Answer>[]): Promise<readonly Answer[]> {
    try {
      return this.options.send(batch.length === 1 ? [batch[0]!.op] : batch.map((entry) => entry.op));
    } catch (cause) {
      return Promise.reject(cause instanceof Error ? cause : new Error('the backend threw', { cause }));
    }
  }

  private land(
    batch: readonly Entry<Op, Answer>[],
    answers: readonly Answer[] | undefined,
    cause: unknown,
    sentAt: Instant,
  ): void {
    const landedAt = this.options.clock.now();
    this.flights -= 1;
    this.inFlightOps -= batch.length;
    for (const entry of batch) this.leave(entry);
    for (let index = 0; index < batch.length; index += 1) {
      const answer = answers?.[index];
      const landing: Landing<Answer> =
        answer === undefined
          ? { ok: false, cause: cause ?? tooFew(), sentAt, landedAt }
          : { ok: true, answer, sentAt, landedAt };
      this.options.watch?.(landing);
      const entry = batch[index]!;
      entry.landed = true;
      entry.sink(landing);
    }
    this.nextFlight();
  }

  /** Sends on, or gives the event loop a turn first where flights come back without one. */
  private nextFlight(): void {
    if (this.yielding) return;
    const { clock } = this.options;
    this.flightsInTurn += 1;
    if (this.flightsInTurn % LOOK_EVERY !== 0 || clock.now().monoMs - this.turnStartedMs < TURN_MS) {
      return this.pump();
    }
    this.yielding = true;
    clock.yield(() => {
      this.yielding = false;
      this.turnStartedMs = clock.now().monoMs;
      this.pump();
    });
  }

  private leave(entry: Entry<Op, Answer>): void {
    if (entry.next !== undefined) this.queue.push(entry.next);
    else if (this.tails.get(entry.key) === entry) this.tails.delete(entry.key);
  }
}

function tooFew(): Error {
  return new Error('the backend answered fewer operations than it was asked');
}
