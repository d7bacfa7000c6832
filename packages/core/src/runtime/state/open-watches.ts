/** The watches that a guard opened, which end with it: also those that are just opening. */
import type { Subscription } from '../../port/lock-backend.js';
import { closedError } from '../lock/lock-errors.js';

/** Watches of one guard. */
export class OpenWatches {
  private readonly opening = new Set<Promise<unknown>>();
  private readonly open = new Set<Subscription>();

  /**
   * Keeps a watch until it is closed.
   *
   * @throws GuardError `closed`: the guard ended while it was opening, and it was closed again.
   */
  async add(opening: Promise<Subscription>, isOver: () => boolean): Promise<Subscription> {
    const opened = this.kept(opening, isOver);
    this.opening.add(opened);
    try {
      return await opened;
    } finally {
      this.opening.delete(opened);
    }
  }

  /** Resolves once all are closed; one that cannot be closed is left to its store. */
  async close(): Promise<void> {
    const closes = [...this.open].map((watch) => watch.close());
    await Promise.allSettled([...closes, ...this.opening]);
  }

  private async kept(opening: Promise<Subscription>, isOver: () => boolean): Promise<Subscription> {
    const inner = await opening;
    if (isOver()) {
      await inner.close().catch(() => undefined);
      throw closedError();
    }
    let closing: Promise<void> | undefined;
    const watch: Subscription = {
      close: () => {
        this.open.delete(watch);
        return (closing ??= inner.close());
      },
    };
    this.open.add(watch);
    return watch;
  }
}
