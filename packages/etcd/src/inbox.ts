/**
 * The inbox of a process: whoever hands a lock over to one of its claims writes a notice there, and its leases have
 * their markers there. One long-lived watch reads it. What was missed while the watch was down is told by a gap notice,
 * and asked for again.
 */
import type { Notice, Subscription } from '@guard/core';
import type { IWatchResponse } from 'etcd3';
import { ChangeWatch, type WatchCarrier } from './change-watch.js';
import type { Place } from './claims.js';
import type { Names } from './names.js';

/** A notice as it travels. */
export interface Message {
  readonly key: string;
  readonly claim: string;
  readonly token: string;
  /** Who comes after the new holder, as far as the releaser knew. */
  readonly queue: readonly Place[];
}

/** Who makes something of what is read. */
export interface InboxReader {
  message(message: Message): void;
  /** A key of the inbox is gone. */
  deleted(name: Buffer): void;
  /** Changes may have been missed, and are seen again from now on. */
  reopened(): void;
  /** Nobody listens any more. */
  unheard(): void;
}

/** The notices of one adapter, for all sessions that listen. */
export class Inbox {
  private readonly listeners = new Map<string, Set<(notice: Notice) => void>>();
  private watch: ChangeWatch | undefined;
  private opening: Promise<void> | undefined;
  private missed = false;

  constructor(
    private readonly stream: WatchCarrier,
    private readonly names: Names,
    private readonly process: string,
    private readonly reader: InboxReader,
  ) {}

  async subscribe(session: string, onNotice: (notice: Notice) => void): Promise<Subscription> {
    const heard = (notice: Notice): void => onNotice(notice);
    const ofSession = this.listeners.get(session) ?? new Set();
    this.listeners.set(session, ofSession.add(heard));
    const leave = (): void => {
      ofSession.delete(heard);
      if (ofSession.size === 0 && this.listeners.get(session) === ofSession) this.listeners.delete(session);
      if (this.listeners.size === 0) this.close();
    };
    try {
      await this.opened();
    } catch (error) {
      leave();
      throw error;
    }
    return { close: async () => leave() };
  }

  /** Somebody listens. */
  get isHeard(): boolean {
    return this.listeners.size > 0;
  }

  /** Tells a session of this process. */
  deliver(session: string, notice: Notice): void {
    for (const heard of this.listeners.get(session) ?? []) heard(notice);
  }

  /** Every claim that waits asks again. */
  wake(): void {
    this.tellAll({ type: 'gap', open: this.watch?.isOpen === true });
  }

  close(): void {
    this.watch?.close();
    this.watch = undefined;
    this.opening = undefined;
    this.reader.unheard();
  }

  private opened(): Promise<void> {
    this.opening ??= this.open();
    return this.opening;
  }

  private async open(): Promise<void> {
    const range = this.names.inbox(this.process);
    const watch = new ChangeWatch(
      this.stream,
      range,
      (changes) => this.read(changes),
      (open) => this.changed(open),
    );
    this.watch = watch;
    try {
      await watch.open();
      this.seesAgain();
    } catch (error) {
      this.missed = true;
      if (this.watch === watch) this.close();
      throw error;
    }
  }

  private changed(open: boolean): void {
    if (open) this.seesAgain();
    else this.missed = true;
    this.tellAll({ type: 'gap', open });
  }

  private seesAgain(): void {
    if (this.missed) this.reader.reopened();
    this.missed = false;
  }

  private read({ events }: IWatchResponse): void {
    for (const { type, kv } of events) {
      if (type === 'Delete') {
        this.reader.deleted(kv.key);
        continue;
      }
      const message = readMessage(kv.value);
      if (message !== undefined) this.reader.message(message);
    }
  }

  private tellAll(notice: Notice): void {
    for (const session of [...this.listeners.keys()]) this.deliver(session, notice);
  }
}

export function writeMessage(message: Message): Buffer {
  return Buffer.from(JSON.stringify(message));
}

/** `undefined`: it was not written by Guard. */
function readMessage(value: Buffer): Message | undefined {
  try {
    const { key, claim, token, queue } = JSON.parse(value.toString()) as Partial<Message>;
    if (key === undefined || claim === undefined || !/^\d+$/.test(token ?? '')) return undefined;
    return { key, claim, token: token!, queue: queue ?? [] };
  } catch {
    return undefined;
  }
}
