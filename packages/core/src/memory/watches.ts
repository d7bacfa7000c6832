/**
 * Who hears of changed entries. Level-triggered: what is kept of a change is that there was one, and the newest value
 * is read when it is delivered, so any number of writes between two turns is one delivery.
 */
import type { Subscription } from '../port/lock-backend.js';
import type { StateChange, StoredEntry } from '../port/state-store.js';

interface Watcher {
  readonly prefix: string;
  readonly listener: (change: StateChange) => void;
  /** Keys whose delivery is under way. */
  readonly due: Set<string>;
}

/** Open watches of one store. */
export class Watches {
  readonly #watchers = new Set<Watcher>();
  readonly #newest: (key: string) => StoredEntry | null;

  constructor(newest: (key: string) => StoredEntry | null) {
    this.#newest = newest;
  }

  /** Opens a watch; it hears of what changes from now on. */
  open(prefix: string, listener: (change: StateChange) => void): Subscription {
    const watcher: Watcher = { prefix, listener, due: new Set() };
    this.#watchers.add(watcher);
    return { close: async () => void this.#watchers.delete(watcher) };
  }

  /** Tells of a write, each key in a turn of its own: a listener that throws reaches nobody else. */
  changed(key: string): void {
    for (const watcher of this.#watchers) {
      if (!key.startsWith(watcher.prefix) || watcher.due.has(key)) continue;
      watcher.due.add(key);
      queueMicrotask(() => this.#deliver(watcher, key));
    }
  }

  #deliver(watcher: Watcher, key: string): void {
    watcher.due.delete(key);
    if (this.#watchers.has(watcher)) watcher.listener({ key, entry: this.#newest(key) });
  }
}
