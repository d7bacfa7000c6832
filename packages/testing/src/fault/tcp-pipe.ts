/**
 * One direction of one connection through the proxy: bytes wait in a queue until they are due, and the queue stands
 * still while the wire is cut or the receiver does not read. Nothing is lost on a cut wire: what was sent arrives when
 * it heals, as with TCP. What a wire does is read anew for every piece, so that a change acts on what is under way too.
 */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '@guard/core';
import type { Delay } from './fault-kinds.js';

/** What the wire does to bytes in one direction. */
export interface Wire {
  cut: boolean;
  /** A function that draws it does not throw. */
  delay: Delay;
  /** Infinity: as fast as it goes. 0: nothing passes. */
  bytesPerSecond: number;
}

/** What comes out of a look at a chunk, or at the end of the stream, before it is sent on. */
export type Verdict =
  | 'pass'
  | 'drop'
  /** Sends the first bytes of the chunk, then resets the connection. */
  | { readonly resetAfter: number };

/** What a pipe needs of its connection. */
export interface PipeRules {
  readonly wire: Wire;
  readonly clock: Clock;
  readonly look: (chunk: Buffer | 'end') => Verdict;
  /** Everything before the reset was handed to the receiver's system. */
  readonly reset: () => void;
  /** The sender's own reset has arrived. */
  readonly senderReset: () => void;
}

interface Queued {
  what: Buffer | 'end' | 'reset' | 'sender-reset';
  dueMs: number;
}

/** Above this, the sender has to wait, as it would for a full receive window. */
const MAX_QUEUED_BYTES = 1_048_576;
/** A slow wire carries pieces that take this long, not whole chunks. */
const PIECE_MS = 50;

/** Moves bytes from one socket to another. */
export class TcpPipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #rules: PipeRules;
  readonly #queue: Queued[] = [];
  #queuedBytes = 0;
  /** When the newest of the queue has had its delay: bytes never overtake each other. */
  #lastDueMs = 0;
  /** Since when the wire carries the first piece of the queue, if that is due. */
  #freeMs = 0;
  #receiverIsFull = false;
  #timer: Timer | undefined;
  #closed = false;
  #senderIsGone = false;
  /** Whether nothing that the sender says now counts any more. */
  #ended = false;

  constructor(from: Socket, to: Socket, rules: PipeRules) {
    this.#from = from;
    this.#to = to;
    this.#rules = rules;
    from.on('data', (chunk: Buffer) => this.#take(chunk));
    from.on('end', () => this.#take('end'));
    to.on('drain', () => this.#drained());
    this.update();
  }

  /** Follows a change of the wire. */
  update(): void {
    const nowMs = this.#rules.clock.now().monoMs;
    // What the wire carried at its old speed does not count at the new one.
    this.#freeMs = nowMs;
    if (this.#rules.wire.delay === 0) {
      this.#lastDueMs = Math.min(this.#lastDueMs, nowMs);
      for (const queued of this.#queue) queued.dueMs = Math.min(queued.dueMs, nowMs);
    }
    this.#flush();
  }

  /** Ends this direction as its sender would: behind what is under way. Later bytes are dropped. */
  end(): void {
    if (this.#closed || this.#ended) return;
    this.#ended = true;
    this.#add('end');
  }

  /** The sender reset the connection: that travels as its bytes do, and behind them. */
  resetBySender(): void {
    if (this.#closed) this.#rules.senderReset();
    if (this.#closed || this.#senderIsGone) return;
    // No receiver is so full that it would not hear of a reset.
    this.#senderIsGone = true;
    this.#add('sender-reset');
  }

  /** Forgets what is queued; nothing is sent any more. */
  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.#timer?.cancel();
    // Read on, or the end of the sender would never be seen.
    this.#regulate();
  }

  #take(chunk: Buffer | 'end'): void {
    if (this.#closed || this.#ended) return;
    const verdict = this.#rules.look(chunk);
    if (verdict === 'pass') this.#add(chunk);
    else if (verdict !== 'drop') {
      if (chunk !== 'end') this.#add(chunk.subarray(0, verdict.resetAfter));
      this.#add('reset');
    }
  }

  #add(what: Queued['what']): void {
    const { clock, wire } = this.#rules;
    this.#lastDueMs = Math.max(clock.now().monoMs + delayOf(wire), this.#lastDueMs);
    this.#queue.push({ what, dueMs: this.#lastDueMs });
    this.#queuedBytes += sizeOf(what);
    this.#flush();
  }

  #flush(): void {
    const { clock, wire } = this.#rules;
    this.#timer?.cancel();
    this.#timer = undefined;
    while (!wire.cut && (this.#senderIsGone || !this.#receiverIsFull)) {
      const first = this.#queue[0];
      if (first === undefined) break;
      const piece = pieceOf(first.what, wire);
      const size = sizeOf(piece);
      const takesMs = size === 0 ? 0 : (size / wire.bytesPerSecond) * 1_000;
      const doneMs = Math.max(first.dueMs, this.#freeMs) + takesMs;
      const leftMs = doneMs - clock.now().monoMs;
      if (leftMs > 0) {
        if (leftMs < Infinity) this.#timer = clock.setTimer(() => this.#flush(), leftMs, { ref: false });
        break;
      }
      this.#freeMs = doneMs;
      if (typeof first.what === 'string' || size === first.what.length) this.#queue.shift();
      else first.what = first.what.subarray(size);
      this.#send(piece);
    }
    this.#regulate();
  }

  #send(what: Queued['what']): void {
    if (what === 'end') this.#to.end();
    else if (what === 'reset') this.#resetAfterWrites();
    else if (what === 'sender-reset') this.#rules.senderReset();
    else {
      this.#queuedBytes -= what.length;
      if (this.#to.writable) this.#receiverIsFull = !this.#to.write(what);
    }
  }

  #resetAfterWrites(): void {
    if (this.#to.writable) this.#to.write(Buffer.alloc(0), () => this.#rules.reset());
    else this.#rules.reset();
  }

  #drained(): void {
    this.#receiverIsFull = false;
    // The wire stood still.
    this.#freeMs = this.#rules.clock.now().monoMs;
    this.#flush();
  }

  #regulate(): void {
    if (this.#rules.wire.cut || this.#queuedBytes > MAX_QUEUED_BYTES) this.#from.pause();
    else this.#from.resume();
  }
}

function sizeOf(what: Queued['what']): number {
  return typeof what === 'string' ? 0 : what.length;
}

/** How much of it a wire carries at a time. */
function pieceOf(what: Queued['what'], { bytesPerSecond }: Wire): Queued['what'] {
  if (typeof what === 'string') return what;
  return what.subarray(0, Math.max(Math.floor((bytesPerSecond * PIECE_MS) / 1_000), 1));
}

function delayOf({ delay }: Wire): number {
  return typeof delay === 'function' ? delay() : delay;
}
