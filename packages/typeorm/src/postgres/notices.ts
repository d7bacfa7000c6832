/**
 * Messages of Postgres to the waiters of this process: one connection outside of the pool for all sessions, opened when
 * the first of them waits. One that breaks is made anew by a timer; until then waiters are told that nothing comes.
 *
 * Behind a pooler that keeps messages back, whoever asks first is refused, so that somebody hears of it. From then on a
 * stream opens and says that nothing comes, and the pooler is tried again after a while that grows.
 */
import { GuardError, type Notice, type Subscription, type Timer } from '@guard/core';
import { ALIVE, listening } from '../statements/postgres-notices.js';
import { channelOf } from './names.js';
import {
  hangUp,
  inTime,
  KeptBack,
  listen,
  type NoticeClient,
  type NoticeParts,
} from './notice-connection.js';

type Listener = (notice: Notice) => void;

/** How often the connection has to show that it is there. */
const ALIVE_EVERY_MS = 10_000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** How long a pooler that keeps messages back is left alone. */
const FIRST_SILENCE_MS = 30_000;
const MAX_SILENCE_MS = 600_000;

/** Streams of notices over one connection. */
export class Notices {
  readonly #parts: NoticeParts;
  readonly #listeners = new Map<string, Set<Listener>>();
  #client: NoticeClient | undefined;
  #opening: Promise<NoticeClient> | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  /** Listeners were told that nothing comes, and not yet that it does again. */
  #silent = false;
  /** How often in a row messages were kept back, and until when that is taken for granted. */
  #keptBack = 0;
  #silentUntilMs = -Infinity;
  #closed = false;

  constructor(parts: NoticeParts) {
    this.#parts = parts;
  }

  /** Opens a stream for a session; see `LockBackend.subscribe`. */
  async subscribe(session: string, listener: Listener): Promise<Subscription> {
    if (this.#closed) throw new GuardError('closed', 'the locks were closed');
    const channel = channelOf(session);
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    const subscription = { close: () => this.#leave(channel, listener) };
    if (this.#client === undefined && this.#parts.clock.now().monoMs < this.#silentUntilMs) {
      this.#staySilent(channel, listener);
      return subscription;
    }
    try {
      const client = this.#client ?? (await (this.#opening ??= this.#open()));
      await inTime(this.#parts.clock, client.query({ text: listening('LISTEN', channel) }));
    } catch (error) {
      await subscription.close();
      throw error;
    }
    return subscription;
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    await this.#opening?.catch(() => undefined);
    await this.#hangUp();
  }

  async #leave(channel: string, listener: Listener): Promise<void> {
    const listeners = this.#listeners.get(channel);
    if (listeners?.delete(listener) !== true || listeners.size > 0) return;
    this.#listeners.delete(channel);
    if (this.#listeners.size === 0) return this.#hangUp();
    const left = this.#client?.query({ text: listening('UNLISTEN', channel) });
    if (left !== undefined) await inTime(this.#parts.clock, left).catch(() => undefined);
  }

  async #hangUp(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#silent = false;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (client !== undefined) await hangUp(this.#parts.clock, client);
  }

  /** Told once whoever subscribed has its stream. */
  #staySilent(channel: string, listener: Listener): void {
    this.#silent = true;
    if (this.#timer === undefined) this.#reopenLater();
    this.#parts.clock.yield(() => {
      if (this.#client !== undefined || this.#listeners.get(channel)?.has(listener) !== true) return;
      listener({ type: 'gap', open: false });
    });
  }

  async #open(): Promise<NoticeClient> {
    try {
      const client = await listen(this.#parts, {
        lost: (lost) => this.#lost(lost),
        heard: (channel, payload) => this.#heard(channel, payload),
        channels: () => this.#listeners.keys(),
      });
      // Whoever wanted it may have left meanwhile.
      if (this.#closed || this.#listeners.size === 0) {
        await hangUp(this.#parts.clock, client);
        throw new GuardError('closed', 'the locks were closed');
      }
      this.#client = client;
      this.#failures = 0;
      this.#keptBack = 0;
      this.#timer?.cancel();
      this.#watch(client);
      if (this.#silent) this.#tellAll(true);
      return client;
    } catch (error) {
      if (error instanceof KeptBack) this.#leaveAlone();
      throw error;
    } finally {
      this.#opening = undefined;
    }
  }

  #leaveAlone(): void {
    const silenceMs = Math.min(MAX_SILENCE_MS, FIRST_SILENCE_MS * 2 ** this.#keptBack);
    this.#keptBack += 1;
    this.#silentUntilMs = this.#parts.clock.now().monoMs + silenceMs;
  }

  #heard(channel: string, payload: string): void {
    const notice = noticeOf(payload);
    if (notice === undefined) return;
    for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener(notice);
  }

  /** Asks for a sign of life from time to time: a connection can be gone without anybody saying so. */
  #watch(client: NoticeClient): void {
    const ask = async (): Promise<void> => {
      try {
        await inTime(this.#parts.clock, client.query({ text: ALIVE }));
        if (this.#client === client) this.#watch(client);
      } catch {
        this.#lost(client);
        void hangUp(this.#parts.clock, client);
      }
    };
    this.#timer = this.#parts.clock.setTimer(() => void ask(), ALIVE_EVERY_MS, { ref: false });
  }

  #lost(client: NoticeClient): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#timer?.cancel();
    this.#tellAll(false);
    this.#reopenLater();
  }

  #reopenLater(): void {
    if (this.#closed || this.#listeners.size === 0) return;
    const { clock, random } = this.#parts;
    const pauseMs = Math.max(
      Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures) * (0.5 + random.fraction() / 2),
      this.#silentUntilMs - clock.now().monoMs,
    );
    this.#failures += 1;
    this.#timer = clock.setTimer(() => void this.#reopen(), pauseMs, { ref: false });
  }

  async #reopen(): Promise<void> {
    this.#timer = undefined;
    if (this.#closed || this.#listeners.size === 0 || this.#client !== undefined) return;
    try {
      await (this.#opening ??= this.#open());
    } catch {
      this.#reopenLater();
    }
  }

  #tellAll(open: boolean): void {
    this.#silent = !open;
    for (const listeners of this.#listeners.values()) {
      for (const listener of [...listeners]) listener({ type: 'gap', open });
    }
  }
}

/** `{ k: key, c: claim, t: token }`. Whatever else comes on the channel is not ours. */
function noticeOf(payload: string): Notice | undefined {
  try {
    const { k, c, t } = JSON.parse(payload) as Partial<Record<string, unknown>>;
    if (typeof k !== 'string' || typeof c !== 'string' || typeof t !== 'string') return undefined;
    return { type: 'granted', key: k, claim: c, token: BigInt(t) };
  } catch {
    return undefined;
  }
}
