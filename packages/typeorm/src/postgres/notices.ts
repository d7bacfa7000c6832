/**
 * Messages of Postgres to the waiters of this process: one connection outside of the pool for all sessions, opened when
 * the first of them waits.
 *
 * A pooler in transaction mode accepts LISTEN and never delivers. So a stream counts as open only after a message that
 * was sent through the pool came in by it; otherwise there is no stream, and waiters poll. A connection that breaks is
 * made anew by a timer; until then waiters are told that nothing comes.
 */
import { GuardError, type Clock, type Notice, type Random, type Subscription, type Timer } from '@guard/core';
import { ALIVE, listening, SEND } from '../statements/postgres-notices.js';
import { channelOf } from './names.js';
import type { Statements } from '../server/statements.js';
import type { PgPool } from './connections.js';

type Listener = (notice: Notice) => void;
type Client = InstanceType<PgPool['Client']>;

/** What notices work with. */
export interface NoticeParts {
  readonly statements: Statements;
  /** The pool of the application; `undefined` before the data source is initialized, and after it was destroyed. */
  readonly pool: () => PgPool | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/** How long the connection, the probe and a sign of life may take. */
const PATIENCE_MS = 3_000;
/** How long a connection may take to end: a server that stands still does not say goodbye. */
const GOODBYE_MS = 1_000;
/** How often the connection has to show that it is there. */
const ALIVE_EVERY_MS = 10_000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

/** Streams of notices over one connection. */
export class Notices {
  readonly #parts: NoticeParts;
  readonly #listeners = new Map<string, Set<Listener>>();
  #client: Client | undefined;
  #opening: Promise<Client> | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  /** Listeners were told that nothing comes, and not yet that it does again. */
  #silent = false;
  #closed = false;
  /** Called with the payload of a message that is no notice. */
  #probed: ((payload: string) => void) | undefined;

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
    try {
      const client = this.#client ?? (await (this.#opening ??= this.#open()));
      await this.#inTime(client.query({ text: listening('LISTEN', channel) }));
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
    if (left !== undefined) await this.#inTime(left).catch(() => undefined);
  }

  async #hangUp(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#silent = false;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (client !== undefined) await this.#end(client);
  }

  /** Without an answer in time the connection is cut: it would keep whoever closes, and the process. */
  #end(client: Client): Promise<void> {
    return new Promise((resolve) => {
      const cut = this.#parts.clock.setTimer(() => {
        client.connection?.stream?.destroy();
        resolve();
      }, GOODBYE_MS);
      const done = (): void => {
        cut.cancel();
        resolve();
      };
      client.end().then(done, done);
    });
  }

  async #open(): Promise<Client> {
    try {
      const client = await this.#connected();
      // Whoever wanted it may have left meanwhile.
      if (this.#closed || this.#listeners.size === 0) {
        await this.#end(client);
        throw new GuardError('closed', 'the locks were closed');
      }
      this.#client = client;
      this.#failures = 0;
      this.#watch(client);
      if (this.#silent) this.#tellAll(true);
      return client;
    } finally {
      this.#opening = undefined;
    }
  }

  /** A connection that messages really come in by, listening to every channel that somebody has. */
  async #connected(): Promise<Client> {
    const pool = this.#parts.pool();
    if (pool === undefined) throw new GuardError('unavailable', 'the data source is not initialized');
    const client = new pool.Client(pool.options);
    client.on('error', () => this.#lost(client));
    client.on('end', () => this.#lost(client));
    client.on('notification', ({ channel, payload = '' }: { channel: string; payload?: string }) =>
      this.#heard(channel, payload),
    );
    try {
      await this.#inTime(client.connect());
      client.unref?.();
      const probe = channelOf(this.#parts.random.id());
      for (const channel of [probe, ...this.#listeners.keys()]) {
        await this.#inTime(client.query({ text: listening('LISTEN', channel) }));
      }
      await this.#probe(probe);
      await this.#inTime(client.query({ text: listening('UNLISTEN', probe) }));
      return client;
    } catch (error) {
      void this.#end(client);
      throw error;
    }
  }

  /** Sends a message through the pool and waits for it to come in here. */
  async #probe(channel: string): Promise<void> {
    const payload = this.#parts.random.id();
    const came = new Promise<void>((resolve) => {
      this.#probed = (heard) => heard === payload && resolve();
    });
    await this.#parts.statements.rows(SEND, [channel, payload], PATIENCE_MS);
    await this.#inTime(came).finally(() => (this.#probed = undefined));
  }

  #heard(channel: string, payload: string): void {
    const listeners = this.#listeners.get(channel);
    if (listeners === undefined) return this.#probed?.(payload);
    const notice = noticeOf(payload);
    if (notice !== undefined) for (const listener of [...listeners]) listener(notice);
  }

  /** Asks for a sign of life from time to time: a connection can be gone without anybody saying so. */
  #watch(client: Client): void {
    const ask = async (): Promise<void> => {
      try {
        await this.#inTime(client.query({ text: ALIVE }));
        if (this.#client === client) this.#watch(client);
      } catch {
        this.#lost(client);
        void this.#end(client);
      }
    };
    this.#timer = this.#parts.clock.setTimer(() => void ask(), ALIVE_EVERY_MS, { ref: false });
  }

  #lost(client: Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#timer?.cancel();
    this.#tellAll(false);
    this.#reopenLater();
  }

  #reopenLater(): void {
    if (this.#closed || this.#listeners.size === 0) return;
    const { clock, random } = this.#parts;
    const pauseMs =
      Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures) * (0.5 + random.fraction() / 2);
    this.#failures += 1;
    this.#timer = clock.setTimer(() => void this.#reopen(), pauseMs, { ref: false });
  }

  async #reopen(): Promise<void> {
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

  #inTime<T>(work: Promise<T>): Promise<T> {
    let timer: Timer | undefined;
    const late = new Promise<never>((_, reject) => {
      const error = new GuardError('unavailable', 'notices of Postgres do not come in');
      timer = this.#parts.clock.setTimer(() => reject(error), PATIENCE_MS);
    });
    return Promise.race([work, late]).finally(() => timer?.cancel());
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
