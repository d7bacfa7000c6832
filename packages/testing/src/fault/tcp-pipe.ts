/**
 * One direction of one connection through the proxy: bytes wait in a queue until they are due, and the queue stands
 * still while the wire is cut. Nothing is lost on a cut wire: what was sent arrives when it heals, as with TCP.
 */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '@guard/core';
import type { Delay } from './fault.js';

/** What the wire does to bytes in one direction. Read anew for every chunk, so a change acts at once. */
export interface Wire {
  cut: boolean;
  delay: Delay;
  /** Infinity: as fast as it goes. */
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
  readonly reset: () => void;
}

/** Above this, the sender has to wait, as it would for a full receive window. */
const MAX_QUEUED_BYTES = 1_048_576;

/** Moves bytes from one socket to another. */
export class TcpPipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #rules: PipeRules;
  readonly #queue: { readonly what: Buffer | 'end' | 'reset'; readonly dueMs: number }[] = [];
  #queuedBytes = 0;
  #lastDueMs = 0;
  #timer: Timer | undefined;
  #closed = false;

  constructor(from: Socket, to: Socket, rules: PipeRules) {
    this.#from = from;
    this.#to = to;
    this.#rules = rules;
    from.on('data', (chunk: Buffer) => this.#take(chunk));
    from.on('end', () => this.#take('end'));
    this.update();
  }

  /** Follows a change of the wire. */
  update(): void {
    if (this.#rules.wire.cut || this.#queuedBytes > MAX_QUEUED_BYTES) this.#from.pause();
    else this.#from.resume();
    this.#flush();
  }

  /** Ends this direction now: the receiver sees the end, and later bytes are dropped. */
  end(): void {
    this.#to.end();
    this.#forget();
  }

  /** Forgets what is queued; nothing is sent any more. */
  close(): void {
    this.#forget();
  }

  #take(chunk: Buffer | 'end'): void {
    if (this.#closed) return;
    const verdict = this.#rules.look(chunk);
    if (verdict === 'pass') this.#add(chunk);
    else if (verdict !== 'drop') {
      if (chunk !== 'end') this.#add(chunk.subarray(0, verdict.resetAfter));
      this.#add('reset');
    }
  }

  #add(what: Buffer | 'end' | 'reset'): void {
    const size = typeof what === 'string' ? 0 : what.length;
    const { clock, wire } = this.#rules;
    const delayMs = typeof wire.delay === 'function' ? wire.delay() : wire.delay;
    // Bytes never overtake each other, and each takes its time on the wire after the ones before it.
    const startMs = Math.max(clock.now().monoMs + delayMs, this.#lastDueMs);
    this.#lastDueMs = startMs + (size / wire.bytesPerSecond) * 1_000;
    this.#queue.push({ what, dueMs: this.#lastDueMs });
    this.#queuedBytes += size;
    if (this.#queuedBytes > MAX_QUEUED_BYTES) this.#from.pause();
    this.#flush();
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    while (!this.#rules.wire.cut) {
      const next = this.#queue[0];
      if (next === undefined) break;
      const leftMs = next.dueMs - this.#rules.clock.now().monoMs;
      if (leftMs > 0) {
        this.#timer = this.#rules.clock.setTimer(() => this.#flush(), leftMs, { ref: false });
        return;
      }
      this.#queue.shift();
      this.#send(next.what);
    }
  }

  #send(what: Buffer | 'end' | 'reset'): void {
    if (what === 'end') this.#to.end();
    else if (what === 'reset') this.#rules.reset();
    else {
      this.#queuedBytes -= what.length;
      if (this.#to.writable) this.#to.write(what);
      if (!this.#rules.wire.cut && this.#queuedBytes <= MAX_QUEUED_BYTES) this.#from.resume();
    }
  }

  #forget(): void {
    this.#closed = true;
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.#timer?.cancel();
    // Read on, or the end of the sender would never be seen.
    if (!this.#rules.wire.cut) this.#from.resume();
  }
}
