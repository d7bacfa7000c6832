/** The faults there are, and which requests they meet. */

/** What becomes of one request. */
export type Fault =
  /** Vanishes: nothing is executed and nobody ever answers. */
  | { readonly type: 'cut' }
  /** Is executed, but its answer never arrives. */
  | { readonly type: 'lose-reply' }
  /** Is rejected at once with `error`; executed or not, which the caller cannot know. */
  | { readonly type: 'reset'; readonly executed: boolean; readonly error?: Error }
  /** Takes its time on the way there, on the way back, or both. Several delays add up, and other faults follow. */
  | { readonly type: 'delay'; readonly requestMs?: Delay; readonly replyMs?: Delay }
  /** Is executed only `afterMs` later, as from a client's offline queue; until then no answer, or a rejection. */
  | { readonly type: 'execute-later'; readonly afterMs: number; readonly answer: 'never' | 'reject' }
  /**
   * Is executed, and once more `afterMs` later. The second answer is what arrives, as after a reconnect; or the first
   * one, where the network doubled the packet.
   */
  | { readonly type: 'execute-twice'; readonly afterMs?: number; readonly answer?: 'first' | 'second' }
  /** Single operations answer `failed`; executed or not, which the caller cannot know. */
  | {
      readonly type: 'fail';
      readonly executed: boolean;
      readonly operations?: (operation: unknown) => boolean;
    };

/** Milliseconds, or a function that draws them. */
export type Delay = number | (() => number);

/** Which requests a fault meets. */
export interface FaultScope<V extends string> {
  /** Default: all verbs. */
  readonly verbs?: readonly V[];
  /** Lets this many requests of those verbs pass first. Default 0. */
  readonly skip?: number;
  /** Meets this many requests, then is over. Default: all, until it is stopped. */
  readonly times?: number;
}
