/** The streams of messages that a backend has open, so that its end is theirs, also of one that is being opened. */
import { GuardError, type Subscription } from '@guard/core';
import type { RedisConnection } from './connection.js';

/** Open subscriptions of one backend. */
export class Subscriptions {
  private readonly open = new Set<Subscription>();
  private closed = false;

  constructor(private readonly connection: RedisConnection) {}

  /**
   * Listens to a channel until the subscription is closed, or all are.
   *
   * @throws GuardError `closed`: they were closed, before or meanwhile; whatever the client throws.
   */
  async add(...channel: Parameters<RedisConnection['subscribe']>): Promise<Subscription> {
    this.refuseWhenClosed();
    const opened = await this.connection.subscribe(...channel);
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

  /** Ends all of them, for good. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.open].map((subscription) => subscription.close()));
  }

  private refuseWhenClosed(): void {
    if (this.closed) throw new GuardError('closed', 'the locks on Redis were closed');
  }
}
