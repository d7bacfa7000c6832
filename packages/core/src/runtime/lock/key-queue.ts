/**
 * The waiting claims of one process on one key. However many they are, one of them speaks for all: the first in line
 * re-sends its acquire, which refreshes every ticket of the session (L2), and so a process costs one request per key
 * and period. Where the backend pushes, that is a third of the ticket's life; otherwise it is the poll.
 */
import { backoffMs } from '../../machine/backoff.js';
import type { QueueView } from '../../machine/claim.js';
import type { ClaimHost, WaitingClaim } from './claim-host.js';
import type { Due } from '../flight/scheduler.js';
import type { PollPace } from './poll-pace.js';
import { FreshMap } from '../../value/fresh-map.js';

/** One key that claims of this process wait for. */
export class KeyQueue implements Due {
  dueMonoMs = 0;
  slot = -1;
  /** What the backend told when the tickets were last refreshed. */
  view: QueueView | undefined;
  private readonly claims = new FreshMap<WaitingClaim, WaitingClaim>();
  private failures = 0;
  /** When the request was sent that last refreshed every ticket; a newcomer's first request refreshes its own only. */
  private refreshedMonoMs = 0;
  /** A third of the shortest ticket's life. */
  private periodMs = Infinity;

  constructor(
    private readonly host: ClaimHost,
    private readonly isPushing: () => boolean,
    readonly pace: PollPace,
  ) {}

  get size(): number {
    return this.claims.size;
  }

  /** Whether tickets stand in the backend, or claims merely poll. */
  has(claim: WaitingClaim): boolean {
    return this.claims.has(claim);
  }

  /** A ticket was made or refreshed. */
  refreshed(claim: WaitingClaim, view: QueueView, ahead: number | undefined): void {
    if (this.claims.size === 0 || this.claims.has(claim)) this.refreshedMonoMs = view.sentAt.monoMs;
    this.join(claim);
    // An answer that was overtaken by a newer one says nothing new.
    if (this.view === undefined || view.sentAt.monoMs >= this.view.sentAt.monoMs) this.view = view;
    if (claim === this.first()) this.pace.stands(ahead ?? 0, view.sentAt.monoMs);
    this.scheduleNext(claim !== this.first());
  }

  /** The claim is one of those that poll. */
  polls(claim: WaitingClaim): void {
    this.join(claim);
    const isFirst = claim === this.first();
    // Nobody says how many stand before it: that it has to wait still is all that is known.
    if (isFirst) this.pace.stands(0, this.host.clock.now().monoMs);
    this.scheduleNext(!isFirst);
  }

  failed(): void {
    this.failures += 1;
    this.scheduleNext();
  }

  /** The claim ended; `true`: nobody is left. */
  leave(claim: WaitingClaim): boolean {
    const wasFirst = claim === this.first();
    this.claims.delete(claim);
    if (wasFirst) this.pace.turned(this.host.clock.now().monoMs);
    if (this.claims.size === 0) {
      this.host.waits.cancel(this);
      return true;
    }
    if (!wasFirst) return false;
    // It may have spoken just now, and its answer was its own grant: somebody has to speak for the others.
    if (this.slot < 0) this.scheduleNext();
    return false;
  }

  /** The tickets of the session died: everybody else asks again, in line. */
  renewOthers(claim: WaitingClaim): void {
    for (const other of this.claims.values()) if (other !== claim) other.ask();
  }

  /** Asks now: a notice may have been missed, or a lock of this process was given back. */
  wake(): void {
    const first = this.first();
    if (first?.isAsking === true) first.askAfresh();
    else this.speak();
  }

  /** Called by the scheduler. */
  fire(): void {
    this.speak();
  }

  private speak(): void {
    const first = this.first();
    if (first === undefined || first.isAsking) return;
    this.pace.polled(this.host.clock.now().monoMs);
    first.ask();
  }

  private join(claim: WaitingClaim): void {
    if (!this.claims.has(claim)) this.claims.set(claim, claim);
    this.failures = 0;
    this.periodMs = Math.min(this.periodMs, claim.plan.ticketTtlMs / 3);
  }

  private first(): WaitingClaim | undefined {
    return this.claims.first();
  }

  /** `newcomer`: one that stands behind others, whose turn comes no later by it. */
  private scheduleNext(newcomer = false): void {
    const { clock, random, waits } = this.host;
    const nowMs = clock.now().monoMs;
    const fraction = random.fraction();
    if (this.failures > 0) return waits.schedule(this, nowMs + backoffMs(this.failures, fraction));
    if (this.isPushing()) return waits.schedule(this, this.refreshedMonoMs + this.periodMs);
    const nextMs = this.pace.nextMs(nowMs, fraction, this.periodMs);
    waits.schedule(this, newcomer && this.slot >= 0 ? Math.min(this.dueMonoMs, nextMs) : nextMs);
  }
}
