/**
 * Processes that hold what claims of this one are next in line for. When a process dies, etcd deletes the markers of its
 * leases together with its locks, and a watch sees that: without it, whoever is next would find out when it refreshes
 * its ticket. One watch per process, however many locks that holds, and only for claims that wait for longer than their
 * first refreshing takes: a hand-over needs none, and stays as cheap as it is.
 */
import type { IKeyValue, IWatchResponse } from 'etcd3';
import { ChangeWatch, type WatchCarrier } from './change-watch.js';
import type { Names } from './names.js';

/** Beyond it the one that was met longest ago is given up: its successors find out when they refresh their tickets. */
const MAX_WATCHES = 64;

/** The predecessors of one adapter's claims. */
export class Predecessors {
  /** By process, the one that was met last at the end. */
  private readonly watches = new Map<string, ChangeWatch>();

  constructor(
    private readonly stream: WatchCarrier,
    private readonly names: Names,
    private readonly process: string,
    /** Every claim that waits is to ask again. */
    private readonly wake: () => void,
  ) {}

  /** A claim of this process refreshed its ticket, and these are the oldest keys of its lock. */
  met([head, next]: readonly IKeyValue[]): void {
    if (head === undefined || next === undefined) return;
    const holder = this.names.parseClaim(head.key).process;
    const isNext = this.names.parseClaim(next.key).process === this.process;
    if (isNext && holder !== this.process) this.listen(holder);
  }

  close(): void {
    for (const process of [...this.watches.keys()]) this.leave(process);
  }

  private listen(process: string): void {
    const known = this.watches.get(process);
    this.watches.delete(process);
    if (known !== undefined) return void this.watches.set(process, known);
    if (this.watches.size >= MAX_WATCHES) this.leave([...this.watches.keys()][0]!);
    const heard = ({ events }: IWatchResponse): void => {
      if (!this.isOf(process, watch) || events.every(({ type }) => type !== 'Delete')) return;
      // A process that lives is met again.
      this.leave(process);
      this.wake();
    };
    // What was missed while it was down is told by the gap of the inbox, which is on the same stream: whoever still waits
    // for that process meets it again.
    const again = (open: boolean): void => void (open && this.isOf(process, watch) && this.leave(process));
    const watch = new ChangeWatch(this.stream, this.names.markers(process), heard, again);
    watch.isWaitedFor = false;
    this.watches.set(process, watch);
    // Where it does not open, the next refreshing tries again.
    watch.open().catch(() => void (this.isOf(process, watch) && this.watches.delete(process)));
  }

  private isOf(process: string, watch: ChangeWatch): boolean {
    return this.watches.get(process) === watch;
  }

  private leave(process: string): void {
    const watch = this.watches.get(process);
    this.watches.delete(process);
    watch?.close();
  }
}
