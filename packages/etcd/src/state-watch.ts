/** One watch over a prefix: the changes that etcd tells of, and the feed that makes news of them. */
import { StateFeed, type StateFeedParts } from '@guard/core';
import { ChangeWatch } from './change-watch.js';
import type { EtcdConnection } from './connection.js';

/** A watch that is open. */
export class StateWatch {
  private readonly feed: StateFeed;
  private readonly changes: ChangeWatch;

  constructor(connection: EtcdConnection, parts: StateFeedParts) {
    const { names } = connection;
    this.feed = new StateFeed(parts);
    this.changes = new ChangeWatch(
      ...([connection, parts.clock, names.entriesBelow(parts.prefix)] as const),
      ({ events }) => this.feed.wrote(events.map(({ kv }) => names.entryKey(kv.key))),
      (open) => open && this.feed.gap(),
    );
  }

  /** Hears of everything from now on, or leaves nothing open. */
  async open(): Promise<void> {
    try {
      await this.changes.open();
      await this.feed.start();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    this.feed.close();
    this.changes.close();
  }
}
