/**
 * Ends statements that nobody waits for any more. A server that keeps one waiting, for a lock or for a standby, does not
 * notice that its client is gone: cutting the connection alone would leave one such session behind for every statement
 * that came late, and the pool would open another each time.
 *
 * So the server is asked to cancel it, on a connection that is only for that, and the pool gets its place back once the
 * statement has ended. What neither ends nor can be told from a connection that was cut is given up: no more of them
 * than the pool has connections, in the time that they are remembered.
 */
import type { Clock } from '@guard/core';
import type { PgClient, PgPool } from './pg.js';

/** How long a request to cancel may take, and after it the end of the statement. */
const CANCEL_MS = 2_000;
/** How long a statement counts that was given up. */
const REMEMBERED_MS = 300_000;
/** What `pg` makes of a pool that was told nothing. */
const DEFAULT_MAX = 10;

/** The endings of one pool. */
export class Endings {
  readonly #pool: PgPool;
  readonly #clock: Clock;
  readonly #givenUpMs: number[] = [];

  constructor(pool: PgPool, clock: Clock) {
    this.#pool = pool;
    this.#clock = clock;
  }

  /** Resolves once the connection of the statement whose answer this is can be thrown away. */
  async end(client: PgClient, answer: Promise<unknown>): Promise<void> {
    let open = true;
    const ended = answer.catch(() => undefined).then(() => void (open = false));
    while (open) {
      // A server that cannot be reached opens no further session either.
      if (!(await this.#cancel(client))) return;
      await this.#within(ended);
      if (open && (this.#pool.ending === true || this.#mayGiveUp())) return;
    }
  }

  #mayGiveUp(): boolean {
    const nowMs = this.#clock.now().monoMs;
    while (this.#givenUpMs[0]! <= nowMs - REMEMBERED_MS) this.#givenUpMs.shift();
    if (this.#givenUpMs.length >= (this.#pool.options.max ?? DEFAULT_MAX)) return false;
    this.#givenUpMs.push(nowMs);
    return true;
  }

  /** Whether the server took the request, or none can be made: a native client does not tell its key. */
  #cancel({ processID, secretKey }: PgClient): Promise<boolean> {
    const { host, port, ssl, sslNegotiation, connection } = new this.#pool.Client(this.#pool.options);
    if (typeof processID !== 'number' || connection?.cancel === undefined) return Promise.resolve(true);
    return new Promise((resolve) => {
      let sent = false;
      const done = (taken: boolean): void => {
        timer.cancel();
        connection.stream.destroy();
        resolve(taken);
      };
      const timer = this.#clock.setTimer(() => done(false), CANCEL_MS);
      const send = (): void => {
        sent = true;
        connection.cancel(processID, secretKey);
      };
      connection.on('connect', () => {
        if (!ssl) send();
        else if (sslNegotiation !== 'direct') connection.requestSsl();
      });
      connection.on('sslconnect', send);
      // The server hangs up once it has passed the request on.
      connection.on('end', () => done(sent));
      connection.on('error', () => done(sent));
      if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`);
      else connection.connect(port, host);
    });
  }

  #within(ended: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(resolve, CANCEL_MS);
      void ended.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}
