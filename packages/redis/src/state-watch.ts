/**
 * One watch over a prefix: the messages that every write publishes, and the feeds that make news of them. In a cluster
 * each tag has a feed of its own: what its server cannot tell is asked for again, and all others tell meanwhile.
 */
import { StateFeed, type StateFeedParts } from '@guard/core';
import type { Channel, RedisConnection } from './connection.js';
import type { StateIndex } from './names.js';

/** What a watch works with: a feed's parts, and the lists that it asks for. */
export interface StateWatchParts extends Omit<StateFeedParts, 'store'> {
  readonly index: StateIndex;
  /** What a feed asks for the entries that one list names. */
  readonly storeOf: (index: string) => StateFeedParts['store'];
}

/** A watch that is open. */
export class StateWatch {
  private readonly feeds: ReadonlyMap<string, StateFeed>;
  private readonly index: StateIndex;
  private channel: Channel | undefined;

  constructor(
    private readonly connection: RedisConnection,
    private readonly channelName: string,
    { index, storeOf, ...parts }: StateWatchParts,
  ) {
    this.index = index;
    this.feeds = new Map(index.all.map((name) => [name, new StateFeed({ ...parts, store: storeOf(name) })]));
  }

  /** Hears of everything from now on, or leaves nothing open. */
  async open(): Promise<void> {
    const all = [...this.feeds.values()];
    this.channel = await this.connection.subscribe(
      this.channelName,
      (key) => this.feeds.get(this.index.of(key))?.wrote([key]),
      (open) => open && all.forEach((feed) => feed.gap()),
    );
    try {
      await Promise.all(all.map((feed) => feed.start()));
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const feed of this.feeds.values()) feed.close();
    await this.channel?.close();
  }
}
