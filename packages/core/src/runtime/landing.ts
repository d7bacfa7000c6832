/** An operation on its way through a coalescer, and what comes back. */
import type { Instant } from '../value/instant.js';

/** What the answer of a flight is, for one operation. */
export type Landing<Answer> = {
  readonly sentAt: Instant;
  readonly landedAt: Instant;
} & (
  | { readonly ok: true; readonly answer: Answer }
  /** Nothing is known about the operation (S6). */
  | { readonly ok: false; readonly cause: unknown }
);

/** Who waits for the answer to an operation. */
export type Sink<Answer> = (landing: Landing<Answer>) => void;

/** A submitted operation that can be taken back while it has not been sent. */
export interface Submitted {
  /** The answer came at once: `sink` has been called. */
  readonly landed: boolean;
  /** `true`: it was never sent and never will be. */
  withdraw(): boolean;
}

/** An operation that is queued or in flight. */
export class Entry<Op, Answer> implements Submitted {
  /** The next operation on the same key: it is queued when this one has landed. */
  next: Entry<Op, Answer> | undefined;
  withdrawn = false;
  sent = false;
  landed = false;

  constructor(
    readonly key: string,
    readonly op: Op,
    readonly timeoutMs: number,
    readonly sink: Sink<Answer>,
  ) {}

  withdraw(): boolean {
    if (!this.sent) this.withdrawn = true;
    return this.withdrawn;
  }
}
