/** What the director and its workers tell each other. */
import type { ServedBackends } from './backends.js';

/** What a worker is started with. */
export interface WorkerConfig {
  readonly label: string;
  /** File of the ledger. */
  readonly file: string;
  readonly guarded: boolean;
  readonly backends: ServedBackends;
}

/** From the director to a worker. */
export type Order =
  /** Call the job in every second from `first` to `last`; stand still in the middle of those in `halts`. */
  | {
      readonly type: 'begin';
      readonly first: number;
      readonly last: number;
      readonly halts: readonly number[];
    }
  /** To a worker that stands still in the middle of a run. */
  | { readonly type: 'answer'; readonly second: number; readonly then: 'go-on' | 'stop' }
  | { readonly type: 'finish' };

/** From a worker to the director. */
export type Report =
  | { readonly type: 'ready' }
  /** The work of a run has begun; from now on the ledger refuses older runs of this second. */
  | { readonly type: 'began'; readonly second: number; readonly owed: number; readonly takeover: boolean }
  | { readonly type: 'halfway'; readonly second: number; readonly paid: number }
  /** The next thing that this worker does is to stop itself. */
  | { readonly type: 'stopping'; readonly second: number }
  | { readonly type: 'settled'; readonly second: number; readonly merchants: number; readonly cents: number }
  | {
      readonly type: 'refused';
      readonly second: number;
      readonly what: 'ledger write' | 'finish';
      readonly reason: string;
    }
  | { readonly type: 'trouble'; readonly second?: number; readonly message: string };
