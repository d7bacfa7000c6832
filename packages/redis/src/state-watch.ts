/** One watch over a prefix: the messages that every write publishes, and the feed that makes news of them. */
import { StateFeed, type StateFeedParts } from '@guard/core';
import type { Channel, RedisConnection } from './connection.js';

/** A watch that is open. */
export class StateWatch {
  private readonly feed: StateFeed;
  private channel: Channel | undefined;

  constructor(
    private readonly connection: RedisConnection,
    private readonly channelName: string,
    parts: StateFeedParts,
  ) {
    this.feed = new StateFeed(parts);
  }

  /** Hears of everything from now on, or leaves nothing open. */
  async open(): Promise<void> {
    this.channel = await this.connection.subscribe(
      this.channelName,
      (key) => this.feed.wrote([key]),
      (open) => open && this.feed.gap(),
    );
    try {
      await this.feed.start();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.feed.close();
    await this.channel?.close();
  }
}
