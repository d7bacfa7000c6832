/**
 * Everything that claims of this process wait for: one queue per key, one stream of notices for all of them (and for
 * holders, where the backend tells them of losses), one listener per abort signal however many claims share it.
 */
import type { QueueView } from '../../machine/claim.js';
import { backoffMs } from '../../machine/backoff.js';
import type { Notice, Subscription } from '../../port/lock-backend.js';
import { discreet } from '../../value/discreet.js';
import { KeyQueue } from './key-queue.js';
import type { ClaimHost, Room, WaitingClaim } from './claim-host.js';
import { PollPace } from './poll-pace.js';

/** Only holders listen for losses, and their renewals find out too. */
const LISTEN_AGAIN_MS = 1_000;
/** Beyond it all are forgotten. */
const MAX_PACES = 256;

/** The waiting claims of one guard. */
export class WaitingRoom implements Room {
  private readonly queues = new Map<string, KeyQueue>();
  /** Of keys that were polled for: who waits for one again goes on at its pace. */
  private readonly paces = new Map<string, PollPace>();
  private readonly aborts = new Map<
    AbortSignal,
    { readonly listeners: Set<() => void>; readonly end: () => void }
  >();
  private subscription: Promise<Subscription | undefined> | undefined;
  private pushing = false;
  private failures = 0;
  private closed = false;
  /** A stream that did not open is not asked for again before then. */
  private notBeforeMs = -Infinity;
  private readonly resubscribe = { dueMonoMs: 0, slot: -1, fire: (): void => this.subscribe() };
  /** The same where nobody waits, but locks are held whose loss it tells: keeps no process alive (L5). */
  private readonly listenAgain = { dueMonoMs: 0, slot: -1, fire: (): void => this.subscribe() };

  constructor(private readonly locks: ClaimHost) {}

  queued(claim: WaitingClaim, view: QueueView, ahead: number | undefined, renewed: boolean): void {
    const queue = this.queueOf(claim);
    if (!queue.has(claim)) {
      const { events } = this.locks;
      if (events.has('claim-queued')) {
        events.emit('claim-queued', {
          key: claim.request.shownKey,
          ...(ahead === undefined ? undefined : { ahead }),
        });
      }
    }
    queue.refreshed(claim, view, ahead);
    if (renewed) queue.renewOthers(claim);
    this.subscribe();
  }

  polls(claim: WaitingClaim): void {
    this.queueOf(claim).polls(claim);
  }

  failed(claim: WaitingClaim): void {
    this.queues.get(claim.request.key)?.failed();
  }

  leave(claim: WaitingClaim): void {
    const { key } = claim.request;
    const queue = this.queues.get(key);
    if (queue?.leave(claim) !== true) return;
    this.queues.delete(key);
    if (this.pushing) return;
    if (this.paces.size >= MAX_PACES && !this.paces.has(key)) this.paces.clear();
    this.paces.set(key, queue.pace);
  }

  viewOf(claim: WaitingClaim): QueueView | undefined {
    return this.queues.get(claim.request.key)?.view;
  }

  /** A lock of this process was given back. Where nobody is told by a message, the next in line here asks at once. */
  gaveBack(fullKey: string): void {
    if (!this.pushing) this.queues.get(fullKey)?.wake();
  }

  /** A lock is held whose loss is told by a notice. Where the stream does not open, a later lock asks for it again. */
  listenForLosses(): void {
    if (this.subscription === undefined && this.locks.clock.now().monoMs >= this.notBeforeMs)
      this.subscribe();
  }

  /** Calls `listener` when the signal aborts. Returns a function that takes the wish back. */
  onAbort(signal: AbortSignal, listener: () => void): () => void {
    const shared = this.aborts.get(signal) ?? this.listen(signal);
    shared.listeners.add(listener);
    return () => {
      shared.listeners.delete(listener);
      if (shared.listeners.size === 0) shared.end();
    };
  }

  /** Ends the stream of notices. */
  async close(): Promise<void> {
    this.closed = true;
    this.locks.waits.cancel(this.resubscribe);
    this.locks.leases.cancel(this.listenAgain);
    const subscription = await this.subscription;
    await subscription?.close();
  }

  private queueOf(claim: WaitingClaim): KeyQueue {
    const { key } = claim.request;
    let queue = this.queues.get(key);
    if (queue === undefined) {
      queue = new KeyQueue(this.locks, () => this.pushing, this.paces.get(key) ?? new PollPace());
      this.queues.set(key, queue);
    }
    return queue;
  }

  private listen(signal: AbortSignal): { readonly listeners: Set<() => void>; readonly end: () => void } {
    const listeners = new Set<() => void>();
    const onAbort = (): void => {
      end();
      for (const listener of [...listeners]) listener();
    };
    const end = (): void => {
      signal.removeEventListener('abort', onAbort);
      this.aborts.delete(signal);
    };
    signal.addEventListener('abort', onAbort);
    const shared = { listeners, end };
    this.aborts.set(signal, shared);
    return shared;
  }

  /** Opens the stream once there is something to wait for, and keeps it: the next wait must not miss its message. */
  private subscribe(): void {
    const { backend, session } = this.locks;
    if (this.closed || this.subscription !== undefined || backend.subscribe === undefined) return;
    this.subscription = backend
      .subscribe(session, (notice) => this.noticed(notice))
      .then(
        (subscription) => {
          this.failures = 0;
          this.opened();
          return subscription;
        },
        (error: unknown) => {
          this.subscriptionFailed(error);
          return undefined;
        },
      );
  }

  private opened(): void {
    this.pushing = true;
    // Whatever was handed over before the stream was open told nobody.
    for (const queue of this.queues.values()) queue.wake();
  }

  private subscriptionFailed(error: unknown): void {
    this.subscription = undefined;
    this.failures += 1;
    const { clock, events, random, waits, leases } = this.locks;
    // A stream that never opens is told of ever more rarely.
    if (Number.isInteger(Math.log2(this.failures)))
      events.emit('error', { error: discreet(error), during: 'subscribing to notices' });
    this.notBeforeMs = clock.now().monoMs + backoffMs(this.failures, random.fraction());
    if (this.closed) return;
    if (this.queues.size > 0) waits.schedule(this.resubscribe, this.notBeforeMs);
    else if (this.locks.awaitsLosses) leases.schedule(this.listenAgain, this.notBeforeMs + LISTEN_AGAIN_MS);
  }

  private noticed(notice: Notice): void {
    switch (notice.type) {
      case 'granted':
        return this.locks.noticedGrant(notice.claim, notice.token);
      case 'turn':
        return this.locks.noticedTurn(notice.claim);
      case 'lost':
        return this.locks.noticedLoss(notice.claim);
      case 'gap':
        this.pushing = notice.open;
        for (const queue of this.queues.values()) queue.wake();
        return;
    }
  }
}
