/** The streams of messages that a backend has open, so that its end is theirs, also of one that is being opened. */
import { GuardError, systemClock, type Claim, type ClaimAnswer, type Subscription } from '@guard/core';
import type { RedisConnection } from './connection.js';

/** Open subscriptions of one backend. */
export class Subscriptions {
  private readonly open = new Set<Subscription>();
  private closed = false;
  private awaitedUntilMs = 0;

  constructor(private readonly connection: RedisConnection) {}

  /**
   * Listens to a channel until the subscription is closed, or all are.
   *
   * @throws GuardError `closed`: they were closed, before or meanwhile; whatever the client throws.
   */
  async add(
    channel: string,
    onMessage: (message: string) => void,
    onState: (open: boolean) => void,
  ): Promise<Subscription> {
    this.refuseWhenClosed();
    const isAwaited = (): boolean => systemClock.now().monoMs < this.awaitedUntilMs;
    const opened = await this.connection.subscribe(channel, onMessage, onState, isAwaited);
    const subscription: Subscription = {
      close: async () => {
        this.open.delete(subscription);
        await opened.close();
      },
    };
    this.open.add(subscription);
    if (this.closed) await subscription.close();
    this.refuseWhenClosed();
    return subscription;
  }

  /** Who waits in a queue waits for messages. It asks again long before its ticket ends, and is noted again. */
  noteQueued(claims: readonly Claim[], answers: readonly ClaimAnswer[]): void {
    for (const [at, { status }] of answers.entries()) {
      if (status !== 'queued') continue;
      const untilMs = systemClock.now().monoMs + claims[at]!.ticketTtlMs;
      this.awaitedUntilMs = Math.max(this.awaitedUntilMs, untilMs);
    }
  }

  /** Ends all of them, for good. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.open].map((subscription) => subscription.close()));
  }

  private refuseWhenClosed(): void {
    if (this.closed) throw new GuardError('closed', 'the locks on Redis were closed');
  }
}
