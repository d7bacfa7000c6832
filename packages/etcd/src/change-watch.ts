/**
 * A long-lived watch over a range of keys. It has no start revision: with one, a busy server counts the watch as late
 * and delivers in its own time, some 90 ms later. So a compaction never ends it, and what happened while it was down is
 * not told: whoever listens has to ask.
 */
import type { Clock, Timer } from '@guard/core';
import type { IWatchResponse } from 'etcd3';
import type { ChangeStream, EtcdConnection } from './connection.js';
import { letProcessEnd } from './idle-stream.js';
import type { KeyRange } from './names.js';

const REOPEN_AFTER_MS = 250;
/** A member that hangs takes a stream and says nothing. */
const OPEN_WITHIN_MS = 3_000;

/** A watch over a range of keys that opens itself again. */
export class ChangeWatch {
  private stream: ChangeStream | undefined;
  private retry: Timer | undefined;
  private closed = false;
  private current = 0;

  constructor(
    private readonly connection: EtcdConnection,
    private readonly clock: Clock,
    private readonly range: KeyRange,
    private readonly onChanges: (response: IWatchResponse) => void,
    private readonly onState: (open: boolean) => void,
  ) {}

  /** Resolves when changes from now on will be seen. */
  async open(): Promise<void> {
    const turn = (this.current += 1);
    const stream = await this.connection.changes();
    if (this.closed || turn !== this.current) return stream.cancel();
    this.stream = stream;
    await new Promise<void>((resolve, reject) => {
      let isOpen = false;
      const over = (cause?: Error): void => {
        timer.cancel();
        reject(cause ?? new Error('the watch ended'));
        if (turn !== this.current) return;
        if (isOpen) this.lost();
        else this.drop();
      };
      const late = (): void => over(new Error('etcd did not open a watch in time'));
      const timer = this.clock.setTimer(late, OPEN_WITHIN_MS, { ref: false });
      stream.on('error', over);
      stream.on('end', () => over());
      stream.on('data', (response) => {
        if (turn !== this.current) return;
        if (response.canceled) return over(new Error(`etcd ended the watch: ${response.cancel_reason}`));
        if (response.created) {
          isOpen = true;
          timer.cancel();
          // Whoever waits keeps the process alive; an open watch does not (L5).
          letProcessEnd(stream);
          resolve();
        } else this.onChanges(response);
      });
      stream.write({ create_request: { ...this.range, fragment: true } });
    });
  }

  /** Opens it anew: nobody may be at the other end of the stream. */
  renew(): void {
    if (!this.closed && this.stream !== undefined) this.lost();
  }

  close(): void {
    this.closed = true;
    this.retry?.cancel();
    this.drop();
  }

  private drop(): void {
    this.current += 1;
    this.stream?.cancel();
    this.stream = undefined;
  }

  private lost(): void {
    this.drop();
    this.onState(false);
    this.again();
  }

  private again(): void {
    if (this.closed) return;
    const opened = (): void => void (this.closed || this.onState(true));
    const open = (): void => void this.open().then(opened, () => this.again());
    this.retry = this.clock.setTimer(open, REOPEN_AFTER_MS, { ref: false });
  }
}
