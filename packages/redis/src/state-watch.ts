/**
 * One watch over a prefix: the messages that every write publishes, and the feeds that make news of them. In a cluster
 * each tag has a feed of its own: what its server cannot tell is asked for again, and all others tell meanwhile.
 */
import { GuardError, StateFeed, type StateFeedParts } from '@guard/core';
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
  private closed = false;

  constructor(
    private readonly connection: RedisConnection,
    private readonly channelName: string,
    { index, storeOf, ...parts }: StateWatchParts,
  ) {
    this.index = index;
    this.feeds = new Map(index.all.map((name) => [name, new StateFeed({ ...parts, store: storeOf(name) })]));
  }

  /**
   * Hears of everything from now on, or leaves nothing open.
   *
   * @throws GuardError `closed`: it was closed meanwhile.
   */
  async open(): Promise<void> {
    const all = [...this.feeds.values()];
    try {
      this.channel = await this.connection.subscribe(
        this.channelName,
        (key) => this.feeds.get(this.index.of(key))?.wrote([key]),
        (open) => open && all.forEach((feed) => feed.gap()),
      );
      if (!this.closed) await Promise.all(all.map((feed) => feed.start()));
    } catch (error) {
      if (!this.closed) {
        await this.close();
        throw error;
      }
    }
    if (!this.closed) return;
    await this.close();
    throw new GuardError('closed', 'the state on Redis was closed while a watch was being opened');
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const feed of this.feeds.values()) feed.close();
    await this.channel?.close();
  }
}
