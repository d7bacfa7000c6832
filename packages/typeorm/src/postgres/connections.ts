/**
 * The application's pool of Postgres connections. Results are read by Guard's own parsers: whatever the application set
 * for its own, a token arrives exact to the last digit.
 */
import { createHash } from 'node:crypto';
import { GuardError, type Clock } from '@guard/core';
import type { Connections, Taken } from '../server/statement-pool.js';
import type { TablesPlace } from '../schema-missing.js';
import type { Value } from '../server/statements.js';
import { Endings } from './endings.js';
import { contradicts, endsConnection, explained, isTransient, isUnprepared } from './faults.js';
import type { PgClient, PgDriver, PgPool, PgQuery } from './pg.js';

const ENDINGS = new WeakMap<PgPool, Endings>();
const INT8 = 20;
const INT4 = 23;
const TYPES = {
  getTypeParser: (oid: number): ((text: string) => unknown) =>
    oid === INT8 || oid === INT4 ? BigInt : (text) => text,
};

/** Connections to Postgres. */
export class PgConnections implements Connections {
  readonly #driver: PgDriver;
  readonly #where: TablesPlace;
  readonly #clock: Clock;
  readonly #names = new Map<string, string>();
  /** Whether the server keeps prepared statements for a connection; a pooler in front of it may not. */
  #prepares = true;

  constructor(driver: PgDriver, where: TablesPlace, clock: Clock) {
    this.#driver = driver;
    this.#where = where;
    this.#clock = clock;
  }

  isOpen(): boolean {
    return this.#driver.master !== undefined;
  }

  async take(): Promise<Taken> {
    const [client, release] = await this.#driver.obtainMasterConnection();
    if (client.binary === true) {
      release();
      throw new GuardError(
        'invalid-argument',
        `dataSource: the connections to ${this.#where.place} answer in binary, and Guard reads text only: do not set pg.defaults.binary`,
      );
    }
    // Without a listener, a connection that breaks would end the process.
    const ignore = (): void => undefined;
    client.on('error', ignore);
    const giveBack = (broken: boolean): void => {
      client.removeListener('error', ignore);
      release(broken ? new Error('the connection is of no use any more') : undefined);
    };
    let answer: Promise<unknown> | undefined;
    return {
      send: async (text, values) => {
        const coming = client.query(this.#query(text, values));
        answer = coming;
        try {
          return (await coming).rows;
        } finally {
          answer = undefined;
        }
      },
      giveBack: (broken) => {
        if (!broken || answer === undefined) giveBack(broken);
        else void this.#end(client, answer).then(() => giveBack(broken));
      },
    };
  }

  /** Arrays. Nothing is an empty text: what NULL means in an array is a setting of the session (`array_nulls`). */
  batch(columns: readonly (readonly (string | null)[])[]): readonly Value[] {
    return columns.map((column) => (column.includes(null) ? column.map((value) => value ?? '') : column));
  }

  isTransient(error: unknown): boolean {
    if (!isUnprepared(error)) return isTransient(error);
    // Said before anything was carried out, and the next sending has no name. Others may be under way with theirs.
    this.#prepares = false;
    return true;
  }

  breaks(error: unknown): boolean {
    return endsConnection(error) || contradicts(error);
  }

  explained(error: unknown): unknown {
    return explained(error, this.#where);
  }

  /** What this pool left running is known to all that use it. */
  async #end(client: PgClient, answer: Promise<unknown>): Promise<void> {
    const pool = this.#driver.master;
    if (pool === undefined) return;
    let endings = ENDINGS.get(pool);
    if (endings === undefined) ENDINGS.set(pool, (endings = new Endings(pool, this.#clock)));
    await endings.end(client, answer);
  }

  /** Without parameters it is sent as one plain message, which may hold several statements. */
  #query(text: string, values: readonly Value[] | undefined): PgQuery {
    if (values === undefined) return { text, types: TYPES };
    return this.#prepares
      ? { text, values, types: TYPES, name: this.#nameOf(text) }
      : { text, values, types: TYPES };
  }

  /** One name for one text, also in another process and another version: behind a pooler they may share a server. */
  #nameOf(text: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      name = `guard_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
      this.#names.set(text, name);
    }
    return name;
  }
}
