/**
 * The keys of locks that this process holds for longer than a moment. A key that somebody deletes alone leaves its lease
 * alive, so neither a keep-alive nor the lease's marker says that the lock is gone; a renewal does, up to a third of the
 * ttl later. So locks that last are watched one by one (B20). Most locks are given back before that, and cost nothing.
 */
import type { Clock, Notice, Timer } from '@guard/core';
import type { IWatchResponse } from 'etcd3';
import { ChangeWatch, type WatchCarrier } from './change-watch.js';
import type { Claims, Own } from './claims.js';

/** A lock lasts that is held at two looks in a row. */
const LOOK_EVERY_MS = 400;
/** Beyond it renewals find out: each is a watch at the server. */
const MAX_WATCHES = 64;
/** So many are opened after one look: each asks first whether it may. */
const AT_ONCE = 32;
/** After one that did not open: whatever is in the way is the inbox's trouble too. */
const AGAIN_AFTER_MS = 5_000;

/** Who is told. */
interface Listeners {
  readonly isHeard: boolean;
  deliver(session: string, notice: Notice): void;
}

/** The held keys of one adapter. */
export class OwnKeys {
  private readonly watched = new Set<Own>();
  private timer: Timer | undefined;
  /** Locks that last have found no place. */
  private crowded = false;
  private notBeforeMs = -Infinity;

  constructor(
    private readonly stream: WatchCarrier,
    private readonly clock: Clock,
    private readonly claims: Claims,
    /** Whether there is no key of the claim. */
    private readonly isGone: (own: Own) => Promise<boolean>,
    private readonly listeners: Listeners,
  ) {}

  /** A lock is held, or those that hold some listen from now on. */
  held(): void {
    if (!this.listeners.isHeard || this.timer !== undefined) return;
    const delayMs = Math.max(LOOK_EVERY_MS, this.notBeforeMs - this.clock.now().monoMs);
    this.timer = this.clock.setTimer(() => this.look(), delayMs, { ref: false });
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
    for (const own of [...this.watched]) own.unwatch?.();
  }

  private look(): void {
    this.timer = undefined;
    this.crowded = false;
    let left = AT_ONCE;
    for (const own of this.claims.all()) {
      if (!own.held || own.unwatch !== undefined) continue;
      if (own.lasts && this.watched.size >= MAX_WATCHES) this.crowded = true;
      else if (!own.lasts || left === 0) this.held();
      else {
        left -= 1;
        void this.watch(own);
      }
      own.lasts = true;
    }
  }

  private async watch(own: Own): Promise<void> {
    const { ends } = own;
    const ask = (): Promise<void> => this.ask(own, ends);
    const heard = ({ events }: IWatchResponse): void => {
      if (events.some(({ type }) => type === 'Delete')) void ask();
    };
    const range = { key: own.name, range_end: Buffer.concat([own.name, Buffer.of(0)]) };
    // It may have been deleted while the watch was down.
    const watch = new ChangeWatch(this.stream, range, heard, (open) => void (open && ask()));
    watch.isWaitedFor = false;
    this.watched.add(own);
    const unwatch = (): void => {
      if (own.unwatch === unwatch) own.unwatch = undefined;
      this.watched.delete(own);
      watch.close();
      if (this.crowded) this.held();
    };
    own.unwatch = unwatch;
    try {
      await watch.open();
    } catch {
      if (own.unwatch !== unwatch) return;
      this.notBeforeMs = this.clock.now().monoMs + AGAIN_AFTER_MS;
      unwatch();
      return this.held();
    }
    // It may have been deleted before.
    await ask();
  }

  /** Whoever gives a lock back deletes its key too, and needs no telling. */
  private async ask(own: Own, ends: number): Promise<void> {
    const isOurs = (): boolean => own.ends === ends && !own.reaped && this.claims.get(own.id) === own;
    if (!isOurs()) return;
    const isGone = await this.isGone(own).catch(() => false);
    if (!isGone || !isOurs()) return;
    if (own.flights === 0) this.claims.forget(own);
    this.listeners.deliver(own.session, { type: 'lost', key: own.key, claim: own.id });
  }
}
