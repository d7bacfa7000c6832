/**
 * One watch over a prefix. A message only says that a key was written; what the listener is told is what the store
 * holds by then, so doubled messages merge and none can be out of order. After a gap everything is listed again.
 */
import { systemClock, type StateChange, type StateStore, type StoredEntry } from '@guard/core';
import type { Channel, RedisConnection } from './connection.js';

const PAGE = 200;
/** A store that could not be asked is asked again after so long. */
const AGAIN_AFTER_MS = 500;

/** A watch that is open. */
export class StateWatch {
  private channel: Channel | undefined;
  private readonly dirty = new Set<string>();
  /** Versions that the listener knows of; what is missing after a gap was deleted. */
  private readonly known = new Map<string, string>();
  private working: Promise<void> | undefined;
  private missed = false;
  private closed = false;

  constructor(
    private readonly store: Pick<StateStore, 'read' | 'scan'>,
    private readonly connection: RedisConnection,
    private readonly channelName: string,
    private readonly prefix: string,
    private readonly listener: (change: StateChange) => void,
  ) {}

  async open(): Promise<void> {
    this.channel = await this.connection.subscribe(
      this.channelName,
      (key) => this.wrote(key),
      (open) => open && this.lost(),
    );
    await this.list((entry) => this.known.set(entry.key, entry.version));
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.channel?.close();
  }

  private wrote(key: string): void {
    if (!key.startsWith(this.prefix)) return;
    this.dirty.add(key);
    this.work();
  }

  private lost(): void {
    this.missed = true;
    this.work();
  }

  private work(): void {
    if (this.working !== undefined || this.closed) return;
    this.working = this.drain().then(
      () => this.rest(),
      // The store could not be asked: whatever was to be told is listed when it can be.
      () => {
        this.missed = true;
        systemClock.setTimer(() => this.rest(), AGAIN_AFTER_MS, { ref: false });
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
    const entries = await this.store.read(keys);
    keys.forEach((key, index) => this.tell(key, entries[index] ?? null));
  }

  private async relist(): Promise<void> {
    this.missed = false;
    const gone = new Set(this.known.keys());
    await this.list((entry) => {
      gone.delete(entry.key);
      if (this.known.get(entry.key) !== entry.version) this.tell(entry.key, entry);
    });
    for (const key of gone) this.tell(key, null);
  }

  private tell(key: string, entry: StoredEntry | null): void {
    if (this.closed) return;
    if (entry === null) this.known.delete(key);
    else this.known.set(key, entry.version);
    this.listener({ key, entry });
  }

  private async list(each: (entry: StoredEntry) => void): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await this.store.scan(this.prefix, cursor, PAGE);
      page.entries.forEach(each);
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
}
