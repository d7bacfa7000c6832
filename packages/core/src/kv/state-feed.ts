/**
 * What a watch tells where a store's messages only say that a key was written. The listener is told what the store
 * holds by then, so messages that are doubled or quick merge, and none can be out of order. Whatever may have been
 * missed is listed again, after a gap of the messages and where the store could not be asked.
 *
 * For adapters: the messages are theirs, everything between a message and the listener is here.
 */
import type { Clock } from '../port/clock.js';
import type { StateChange, StateStore, StoredEntry } from '../port/state-store.js';

const PAGE = 200;
/** A store that could not be asked is asked again after so long. */
const AGAIN_AFTER_MS = 500;

/** What a feed works with. */
export interface StateFeedParts {
  readonly store: Pick<StateStore, 'read' | 'scan'>;
  readonly clock: Clock;
  /** Keys without it are nobody's news here. */
  readonly prefix: string;
  readonly listener: (change: StateChange) => void;
}

/** The changes below one prefix, from the messages of a store to one listener. */
export class StateFeed {
  private readonly dirty = new Set<string>();
  /** Versions that the listener knows of; what is missing after a gap was deleted. */
  private readonly known = new Map<string, string>();
  private working: Promise<void> | undefined;
  private missed = false;
  private closed = false;

  constructor(private readonly parts: StateFeedParts) {}

  /** Learns what is there, which is no news. Call it once messages come, so that nothing falls between. */
  async start(): Promise<void> {
    await this.list((entry) => this.known.set(entry.key, entry.version));
  }

  /** A message said that these keys were written, or deleted, or are over. */
  wrote(keys: readonly string[]): void {
    for (const key of keys) if (key.startsWith(this.parts.prefix)) this.dirty.add(key);
    if (this.dirty.size > 0) this.work();
  }

  /** Messages come again after a gap: anything may have happened in it. */
  gap(): void {
    this.missed = true;
    this.work();
  }

  /** The listener hears nothing any more. */
  close(): void {
    this.closed = true;
  }

  private work(): void {
    if (this.working !== undefined || this.closed) return;
    this.working = this.drain().then(
      () => this.rest(),
      // The store could not be asked: whatever was to be told is listed when it can be.
      () => {
        this.missed = true;
        this.parts.clock.setTimer(() => this.rest(), AGAIN_AFTER_MS, { ref: false });
      },
    );
  }

  private rest(): void {
    this.working = undefined;
    if (this.dirty.size > 0 || this.missed) this.work();
  }

  private async drain(): Promise<void> {
    if (this.missed) await this.relist();
    const keys = [...this.dirty];
    this.dirty.clear();
    const entries = await this.parts.store.read(keys);
    keys.forEach((key, index) => this.tell(key, entries[index] ?? null));
  }

  private async relist(): Promise<void> {
    this.missed = false;
    const gone = new Set(this.known.keys());
    await this.list((entry) => {
      gone.delete(entry.key);
      this.tell(entry.key, entry);
    });
    for (const key of gone) this.tell(key, null);
  }

  private tell(key: string, entry: StoredEntry | null): void {
    if (this.closed || (entry !== null && this.known.get(key) === entry.version)) return;
    if (entry === null) this.known.delete(key);
    else this.known.set(key, entry.version);
    this.parts.listener({ key, entry });
  }

  private async list(each: (entry: StoredEntry) => void): Promise<void> {
    const { store, prefix } = this.parts;
    let cursor: string | undefined;
    do {
      const page = await store.scan(prefix, cursor, PAGE);
      page.entries.forEach(each);
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
}
