/** One watch over a prefix: the changes that etcd tells of, and the feed that makes news of them. */
import { GuardError, StateFeed, type StateFeedParts } from '@guard/core';
import { ChangeWatch } from './change-watch.js';
import type { Names } from './names.js';
import type { WatchStream } from './watch-stream.js';

/** A watch that is open. */
export class StateWatch {
  private readonly feed: StateFeed;
  private readonly changes: ChangeWatch;
  private closed = false;

  constructor(stream: WatchStream, names: Names, parts: StateFeedParts) {
    this.feed = new StateFeed(parts);
    this.changes = new ChangeWatch(
      ...([stream, names.entriesBelow(parts.prefix)] as const),
      ({ events }) => this.feed.wrote(events.map(({ kv }) => names.entryKey(kv.key))),
      (open) => open && this.feed.gap(),
    );
  }

  /**
   * Hears of everything from now on, or leaves nothing open.
   *
   * @throws GuardError `closed`: it was closed meanwhile.
   */
  async open(): Promise<void> {
    try {
      await this.changes.open();
      await this.feed.start();
    } catch (error) {
      if (this.closed) throw closedError(error);
      this.close();
      throw error;
    }
    if (this.closed) throw closedError();
  }

  close(): void {
    this.closed = true;
    this.feed.close();
    this.changes.close();
  }
}

function closedError(cause?: unknown): GuardError {
  const message = 'the state on etcd was closed while a watch was being opened';
  return new GuardError('closed', message, cause === undefined ? {} : { cause });
}
