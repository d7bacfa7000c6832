/**
 * Gathers operations of one verb into batches. Nothing waits for company: with nothing in flight an operation is sent
 * as soon as everything that is ready has run, together with what that submits; what arrives while two batches are on
 * their way goes with the next, at most half of what is outstanding, so that client and server work at the same time
 * (C2).
 *
 * Two rules are for safety: one key stands at most once in a batch and never in two batches in flight (two claims on
 * one key in one transaction were both granted, on a real server), and batches are sorted by key, so that batches
 * that overlap on the server cannot deadlock.
 */
import type { Clock } from '../../port/clock.js';
import type { Instant } from '../../value/instant.js';
import { compareText } from '../../value/token.js';
import { Loads, type Load } from './load.js';
import { Entry, type Landing, type Sink, type Submitted } from './operation.js';
import type { Due, Scheduler } from './scheduler.js';
import { soon } from './soon.js';
import { Tails } from './tails.js';
import type { Turn } from './turn.js';

/** How a coalescer sends. */
export interface CoalescerOptions<Op, Answer> {
  readonly clock: Clock;
  /** Where the flights' time-outs are kept: one that keeps the process alive while something is on its way (L5). */
  readonly deadlines: Scheduler;
  readonly send: (batch: readonly Op[], partition: string) => Promise<readonly Answer[]>;
  readonly maxBatch: number;
  /**
   * What is due together travels together: operations of one turn share a batch as large as the backend takes, so
   * that their latency does not add up. For renewals, which run against a deadline.
   */
  readonly together?: boolean;
  /** Shared with the verbs that take turns with this one. Default: its own operations are all there is. */
  readonly loads?: Loads;
  /** Answers an operation without a flight, where the backend lives in this process; `undefined`: not now. */
  readonly atOnce?: (op: Op, nowMonoMs: number) => Answer | undefined;
  /** While it is over nothing is sent: the event loop comes first. Default: flights alone give it its turns. */
  readonly turn?: Turn;
  /** Sees every landing before its sink does: the watch over the backend's health. */
  readonly watch?: (landing: Landing<Answer>, partition: string) => void;
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
  private readonly loads: Loads;

  constructor(private readonly options: CoalescerOptions<Op, Answer>) {
    this.loads = options.loads ?? new Loads();
  }

  /**
   * Sends `op`, alone or with others of its partition; `sink` is called exactly once unless it is withdrawn. After
   * the shortest `timeoutMs` in a batch the flight counts as failed and does not hold the next (L3); its late answer
   * is not looked at.
   */
  submit(partition: string, key: string, op: Op, timeoutMs: number, sink: Sink<Answer>): Submitted {
    let lane = this.lanes.get(partition);
    if (lane === undefined) {
      lane = new Lane(this.options, partition, this.loads.of(partition));
      this.lanes.set(partition, lane);
    }
    return lane.submit(key, op, timeoutMs, sink);
  }

  /** The answer to `op` without a flight, unless an operation of its partition is queued or in flight before it. */
  answerAtOnce(partition: string, op: Op, nowMonoMs: number): Answer | undefined {
    const { atOnce } = this.options;
    if (atOnce === undefined || this.lanes.get(partition)?.isIdle === false) return undefined;
    return atOnce(op, nowMonoMs);
  }
}

/** The operations of one partition. */
class Lane<Op, Answer> {
  /** Nothing stands before its head: what was sent is garbage at once, and not first when it is dropped in pieces. */
  private readonly queue: (Entry<Op, Answer> | undefined)[] = [];
  private head = 0;
  /** The last operation of each key that is queued or in flight. */
  private readonly tails = new Tails<Entry<Op, Answer>>();
  private flights = 0;
  private turnStartedMs = -Infinity;
  private flightsInTurn = 0;
  private yielding = false;

  constructor(
    private readonly options: CoalescerOptions<Op, Answer>,
    private readonly partition: string,
    private readonly load: Load,
  ) {}

  get isIdle(): boolean {
    return this.tails.isEmpty;
  }

  submit(key: string, op: Op, timeoutMs: number, sink: Sink<Answer>): Submitted {
    const entry = new Entry(key, op, timeoutMs, sink);
    const tail = this.tails.append(entry);
    if (tail === undefined) this.queue.push(entry);
    else tail.next = entry;
    this.load.operations += 1;
    this.pumpSoon();
    return entry;
  }

  private pumpSoon(): void {
    if (this.yielding) return;
    this.yielding = true;
    soon(() => {
      this.yielding = false;
      this.pump();
    });
  }

  private pump(): void {
    if (this.options.turn?.isOver) return this.pumpNextTurn(this.options.turn);
    while (this.flights < MAX_IN_FLIGHT && this.head < this.queue.length) {
      const batch = this.gather();
      if (batch.length > 0) this.fly(batch);
    }
    if (this.head === this.queue.length) {
      this.queue.length = 0;
      this.head = 0;
    } else if (this.head >= COMPACT_AT) {
      this.queue.splice(0, this.head);
      this.head = 0;
    }
  }

  private pumpNextTurn(turn: Turn): void {
    this.yielding = true;
    turn.next(() => {
      this.answerQueued();
      this.yielding = false;
      this.pump();
    });
  }

  /** From the head of the queue, for as long as answers come at once. What a sink submits stands at its end. */
  private answerQueued(): void {
    const { atOnce, clock } = this.options;
    while (atOnce !== undefined && this.flights === 0 && this.head < this.queue.length) {
      const entry = this.queue[this.head]!;
      const sentAt = clock.now();
      const answer = entry.withdrawn ? undefined : atOnce(entry.op, sentAt.monoMs);
      if (!entry.withdrawn && answer === undefined) return;
      this.pass();
      entry.sent = !entry.withdrawn;
      this.leave(entry);
      if (answer !== undefined) entry.sink({ ok: true, answer, sentAt });
    }
  }

  private gather(): Entry<Op, Answer>[] {
    const cap = this.cap();
    const batch: Entry<Op, Answer>[] = [];
    while (batch.length < cap && this.head < this.queue.length) {
      const entry = this.queue[this.head]!;
      this.pass();
      if (entry.withdrawn) this.leave(entry);
      else batch.push(entry);
    }
    if (batch.length > 1) batch.sort((a, b) => compareText(a.key, b.key));
    return batch;
  }

  private pass(): void {
    this.queue[this.head] = undefined;
    this.head += 1;
  }

  private cap(): number {
    const { maxBatch, together } = this.options;
    if (together) return maxBatch;
    return Math.min(maxBatch, Math.max(SMALLEST_CAP, Math.ceil(this.load.operations / 2)));
  }

  private fly(batch: Entry<Op, Answer>[]): void {
    const { clock, deadlines } = this.options;
    const sentAt = clock.now();
    this.flights += 1;
    let timeoutMs = Infinity;
    for (const entry of batch) {
      entry.sent = true;
      timeoutMs = Math.min(timeoutMs, entry.timeoutMs);
    }
    const flight: Due & { landed: boolean } = {
      dueMonoMs: 0,
      slot: -1,
      landed: false,
      fire: () => {
        flight.landed = true;
        const late = `the backend did not answer within ${Math.round(timeoutMs)} ms`;
        this.land(batch, undefined, new Error(late), sentAt);
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

  /** A send that throws is a flight that fails. */
  private send(batch: readonly Entry<Op, Answer>[]): Promise<readonly Answer[]> {
    try {
      const operations = batch.length === 1 ? [batch[0]!.op] : batch.map((entry) => entry.op);
      return this.options.send(operations, this.partition);
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
    this.flights -= 1;
    for (const entry of batch) this.leave(entry);
    for (let index = 0; index < batch.length; index += 1) {
      const answer = answers?.[index];
      const landing: Landing<Answer> =
        typeof answer !== 'object' || answer === null
          ? { ok: false, cause: cause ?? tooFew(), sentAt }
          : { ok: true, answer, sentAt };
      this.options.watch?.(landing, this.partition);
      batch[index]!.sink(landing);
    }
    this.nextFlight();
  }

  /** Sends on, or gives the event loop a turn first where flights come back without one. */
  private nextFlight(): void {
    if (this.yielding) return;
    const { clock } = this.options;
    this.flightsInTurn += 1;
    if (this.flightsInTurn % LOOK_EVERY !== 0 || clock.now().monoMs - this.turnStartedMs < TURN_MS) {
      return this.pumpSoon();
    }
    this.yielding = true;
    clock.yield(() => {
      this.yielding = false;
      this.turnStartedMs = clock.now().monoMs;
      this.pump();
    });
  }

  private leave(entry: Entry<Op, Answer>): void {
    this.load.operations -= 1;
    if (entry.next !== undefined) this.queue.push(entry.next);
    else this.tails.leave(entry);
  }
}

function tooFew(): Error {
  return new Error('the backend answered fewer operations than it was asked');
}
