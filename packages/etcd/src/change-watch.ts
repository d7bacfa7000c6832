/** One watch over a range of keys, which its stream opens again as often as that is needed. */
import type { IWatchResponse } from 'etcd3';
import type { KeyRange } from './names.js';

/** What carries watches. */
export interface WatchCarrier {
  add(watch: ChangeWatch): Promise<void>;
  remove(watch: ChangeWatch): void;
}

/** A watch, and what its stream knows of it. */
export class ChangeWatch {
  id = '';
  isOpen = false;
  /** It is not put on a stream before its range could be read. */
  asksFirst = false;
  /** Whether somebody waits for it to open, and the process lives for that (L5). */
  isWaitedFor = true;
  /** Who waits for its first opening. */
  waiting: { readonly resolve: () => void; readonly reject: (cause: Error) => void } | undefined;

  constructor(
    private readonly stream: WatchCarrier,
    readonly range: KeyRange,
    readonly onChanges: (response: IWatchResponse) => void,
    /** Whether it sees changes, once that is another answer than the last one. */
    readonly onState: (open: boolean) => void,
  ) {}

  /** Resolves when changes from now on will be seen. */
  open(): Promise<void> {
    return this.stream.add(this);
  }

  close(): void {
    this.stream.remove(this);
  }
}
