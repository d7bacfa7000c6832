/**
 * The one stream on which all watches of an adapter travel, so that one sign of life serves them all. It opens itself
 * again after a break, with every watch on it, on another member where there are several.
 *
 * Watches have no start revision: with one, a busy server counts the watch as late and delivers in its own time, some
 * 90 ms later. So a compaction never ends one, and what happened while it was down is not told: whoever listens has to
 * ask.
 */
import { GuardError, type Clock, type Timer } from '@guard/core';
import type { IWatchResponse } from 'etcd3';
import type { ChangeWatch, WatchCarrier } from './change-watch.js';
import type { ChangeStream, EtcdConnection } from './connection.js';
import { letProcessEnd } from './idle-stream.js';
import { SignOfLife } from './sign-of-life.js';

const REOPEN_AFTER_MS = 250;
/** A member that hangs takes a stream and says nothing. */
const OPEN_WITHIN_MS = 3_000;

/** The stream of one adapter, open while anybody watches. */
export class WatchStream implements WatchCarrier {
  /** By their number on the stream. */
  private readonly watches = new Map<string, ChangeWatch>();
  private readonly life: SignOfLife;
  /** Put on the stream and not answered yet: answers come in this order, and a refusal does not say of whom it is. */
  private readonly asked: ChangeWatch[] = [];
  private stream: ChangeStream | undefined;
  private connecting = false;
  /** Something was opened on the stream of now. */
  private served = false;
  /** The last watch that was to be opened was refused: the client's login may have ended. */
  private refusing = false;
  private turn = 0;
  private lastId = 0;
  /** Until the stream has served, or until it is opened again. */
  private timer: Timer | undefined;
  private closed = false;

  constructor(
    private readonly connection: EtcdConnection,
    private readonly clock: Clock,
  ) {
    this.life = new SignOfLife(clock, {
      ask: () => this.stream?.write({ progress_request: {} }),
      revision: () => connection.revision(),
      dead: (cause) => this.lost(cause),
      tick: () => this.readmit(),
    });
  }

  /**
   * Resolves when the watch sees changes from now on.
   *
   * @throws GuardError `closed`: it was closed meanwhile, or the stream was; anything else says that it is not open.
   */
  async add(watch: ChangeWatch): Promise<void> {
    if (this.closed) throw closedError();
    watch.id = String((this.lastId += 1));
    watch.asksFirst = this.refusing || this.watches.size > 0;
    this.watches.set(watch.id, watch);
    const opened = this.opened(watch);
    if (watch.asksFirst) void this.admit(watch);
    else this.put(watch);
    await opened;
  }

  /** The watch hears nothing any more; where it was being opened, that ends too. */
  remove(watch: ChangeWatch): void {
    this.give(watch, closedError());
  }

  /** Opens it anew: nobody may be at the other end. */
  renew(): void {
    if (this.stream !== undefined) this.lost(new Error('the stream of watches was opened anew'));
  }

  /** Ends all watches, for good. */
  close(): void {
    this.closed = true;
    for (const watch of [...this.watches.values()]) this.remove(watch);
  }

  /** Settles when the watch is open, or does not come to be. */
  private opened(watch: ChangeWatch): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      // Whoever waits keeps the process alive; an open watch does not (L5).
      const timer = this.clock.setTimer(() => this.late(watch), OPEN_WITHIN_MS, { ref: watch.isWaitedFor });
      const settled = (settle: () => void): void => {
        watch.waiting = undefined;
        timer.cancel();
        settle();
      };
      watch.waiting = {
        resolve: () => settled(resolve),
        reject: (cause) => settled(() => reject(cause)),
      };
    });
  }

  private late(watch: ChangeWatch): void {
    const cause = new Error('etcd did not open a watch in time');
    const wasAsked = this.stream !== undefined && !watch.asksFirst;
    this.give(watch, cause);
    // Whoever says nothing to this one says nothing to the others either.
    if (wasAsked && this.watches.size > 0) this.lost(cause);
  }

  /** Gives a watch up. */
  private give(watch: ChangeWatch, cause: Error): void {
    if (!this.watches.delete(watch.id)) return;
    watch.isOpen = false;
    if (this.watches.size === 0) this.drop();
    else this.stream?.write({ cancel_request: { watch_id: watch.id } });
    watch.waiting?.reject(cause);
  }

  private connect(): void {
    const turn = (this.turn += 1);
    this.timer?.cancel();
    this.connecting = true;
    this.served = false;
    const late = (): void => this.lost(new Error('etcd did not open a stream of watches in time'));
    this.timer = this.clock.setTimer(late, OPEN_WITHIN_MS, { ref: false });
    const over = (cause: Error): void => {
      if (turn === this.turn) this.lost(cause);
    };
    const use = (stream: ChangeStream): void => {
      if (turn !== this.turn) return stream.cancel();
      this.connecting = false;
      this.stream = stream;
      stream.on('error', over);
      stream.on('end', () => over(new Error('the stream of watches ended')));
      stream.on('data', (response) => {
        if (turn === this.turn) this.heard(stream, response);
      });
      for (const watch of this.watches.values()) if (!watch.asksFirst) this.put(watch);
    };
    this.connection.changes().then(use, over);
  }

  /** Puts a watch on the stream; on the next one, where there is none. */
  private put(watch: ChangeWatch): void {
    if (this.stream !== undefined) {
      this.asked.push(watch);
      this.stream.write({ create_request: { ...watch.range, watch_id: watch.id, fragment: true } });
    } else if (!this.connecting && this.timer === undefined) this.connect();
  }

  private heard(stream: ChangeStream, response: IWatchResponse): void {
    this.life.heard(BigInt(response.header.revision));
    const watch = response.created ? this.asked.shift() : this.watches.get(response.watch_id);
    // One that was closed here is over as it should be.
    const isWanted = watch !== undefined && this.watches.has(watch.id);
    if (response.canceled) {
      if (isWanted) this.refused(watch, response.cancel_reason);
    } else if (!response.created) watch?.onChanges(response);
    else {
      this.timer?.cancel();
      if (!this.served) this.life.start();
      this.served = true;
      this.refusing = false;
      letProcessEnd(stream);
      if (isWanted) nowOpen(watch);
    }
  }

  /** A stream keeps the login that it was opened with, so the next try is on another one. */
  private refused(watch: ChangeWatch, reason: string): void {
    watch.asksFirst = true;
    this.refusing = true;
    this.lost(new Error(`etcd ended the watch: ${reason}`));
  }

  private lost(cause: Error): void {
    const { served } = this;
    this.drop();
    for (const watch of [...this.watches.values()]) {
      if (watch.waiting === undefined) nowDown(watch);
      else if (!served) this.give(watch, cause);
      // A stream that served may have been too old for the newcomer: its login had ended. The next one is asked.
      else if (watch.asksFirst) void this.admit(watch);
    }
    if (this.watches.size === 0) return;
    const again = (): void => {
      this.readmit();
      this.connect();
    };
    this.timer = this.clock.setTimer(again, REOPEN_AFTER_MS, { ref: false });
  }

  private drop(): void {
    this.turn += 1;
    this.life.stop();
    this.timer?.cancel();
    this.timer = undefined;
    this.connecting = false;
    this.asked.length = 0;
    this.stream?.cancel();
    this.stream = undefined;
  }

  /** Looks after watches that were refused: their rights may be back. */
  private readmit(): void {
    for (const watch of this.watches.values()) {
      if (watch.asksFirst && watch.waiting === undefined) void this.admit(watch);
    }
  }

  /**
   * Puts a watch on the stream once its range can be read: a refusal costs all that is on it a new stream. A client whose login
   * has ended logs in anew for that question, as it does for no stream.
   */
  private async admit(watch: ChangeWatch): Promise<void> {
    try {
      await this.connection.range({ ...watch.range, count_only: true });
    } catch (cause) {
      if (watch.waiting !== undefined) this.give(watch, cause as Error);
      return;
    }
    if (this.watches.get(watch.id) !== watch || !watch.asksFirst) return;
    watch.asksFirst = false;
    this.put(watch);
  }
}

function nowOpen(watch: ChangeWatch): void {
  watch.isOpen = true;
  if (watch.waiting !== undefined) watch.waiting.resolve();
  else watch.onState(true);
}

function nowDown(watch: ChangeWatch): void {
  if (!watch.isOpen) return;
  watch.isOpen = false;
  watch.onState(false);
}

function closedError(): GuardError {
  return new GuardError('closed', 'the watch was closed before it was open');
}
