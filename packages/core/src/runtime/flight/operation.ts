/**
 * One operation on its way to the backend, alone or in a batch, and what comes back of it. It is no promise: one for each
 * would cost more than the operation.
 */
import type { Instant } from '../../value/instant.js';
import type { Cell, Tailed } from './tails.js';

/** What the answer of a flight is, for one operation. */
export type Landing<Answer> =
  | { readonly ok: true; readonly answer: Answer; readonly sentAt: Instant }
  /** Nothing is known about the operation (S6). */
  | { readonly ok: false; readonly cause: unknown; readonly sentAt: Instant };

/** Who waits for the answer to an operation. */
export type Sink<Answer> = (landing: Landing<Answer>) => void;

/** A submitted operation that can be taken back while it has not been sent. */
export interface Submitted {
  /** `true`: it was never sent and never will be. */
  withdraw(): boolean;
}

/** An operation that was submitted. */
export class Entry<Op, Answer> implements Submitted, Tailed<Entry<Op, Answer>> {
  /** The next operation on the same key: it is queued when this one has landed. */
  next: Entry<Op, Answer> | undefined = undefined;
  /** Where the last operation of its key stands. */
  cell: Cell<Entry<Op, Answer>> | undefined = undefined;
  withdrawn = false;
  sent = false;

  constructor(
    readonly key: string,
    readonly op: Op,
    readonly timeoutMs: number,
    readonly sink: Sink<Answer>,
  ) {}

  withdraw(): boolean {
    return !this.sent && (this.withdrawn = true);
  }
}
