/**
 * Guard's statements on the application's pool of Postgres connections. Two decisions shaped this file.
 *
 * A connection is taken for one statement and given back at once: nothing of Guard is ever open between two statements,
 * so no lock and no run can starve a small pool, and nothing joins a transaction of the application (S9). And results
 * are read by Guard's own parsers: whatever the application set for its own, a token arrives exact to the last digit.
 */
import { createHash } from 'node:crypto';
import { GuardError, type Clock, type Random, type Timer } from '@guard/core';
import type { Row } from '../row.js';
import { contradicts, endsConnection, explained, isTransient, isUnprepared } from './faults.js';

/** What a connection of `pg` can do, as far as Guard uses it. */
export interface PgClient {
  query(config: PgQuery): Promise<{ readonly rows: readonly Row[] }>;
  on(event: string, listener: (...all: never[]) => void): unknown;
  removeListener(event: string, listener: (...all: never[]) => void): unknown;
}

/** A statement with its parameters, as `pg` takes it. */
export interface PgQuery {
  readonly text: string;
  readonly values?: readonly PgValue[];
  readonly name?: string;
  readonly types?: { getTypeParser(oid: number): (text: string) => unknown };
}

/** What Guard binds to a parameter. */
export type PgValue = string | number | bigint | null | readonly (string | null)[];

/** The data source's driver, as far as Guard uses it. */
export interface PgDriver {
  /** The pool of the server that takes writes; absent before the data source is initialized. */
  readonly master?: PgPool;
  obtainMasterConnection(): Promise<[PgClient, (error?: unknown) => void]>;
}

/** The pool of `pg`: what a further connection outside of it is made from. */
export interface PgPool {
  readonly options: object;
  readonly Client: new (options: object) => PgClient & {
    connect(): Promise<unknown>;
    end(): Promise<void>;
    unref?(): void;
  };
}

/** What a pool works with. */
export interface PoolParts {
  readonly driver: PgDriver;
  /** Names the database in errors. */
  readonly place: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** How long one statement may take, its wait for a connection and its repetitions included. */
const PATIENCE_MS = 5_000;
/** The longest pause before a statement that met another transaction is sent again. */
const MAX_PAUSE_MS = 20;

const INT8 = 20;
const INT4 = 23;
const TYPES = {
  getTypeParser: (oid: number): ((text: string) => unknown) =>
    oid === INT8 || oid === INT4 ? BigInt : (text) => text,
};

/** Statements, one connection each. */
export class StatementPool {
  readonly #parts: PoolParts;
  readonly #names = new Map<string, string>();
  /** Whether the server keeps prepared statements for a connection; a pooler in front of it may not. */
  #prepares = true;
  #closed = false;

  constructor(parts: PoolParts) {
    this.#parts = parts;
  }

  /** The pool of the application; `undefined` before the data source is initialized, and after it was destroyed. */
  get pool(): PgPool | undefined {
    return this.#parts.driver.master;
  }

  /**
   * The rows that a statement answers. A statement that was rolled back because of somebody else's is sent again.
   *
   * @param patienceMs how long all of it may take.
   * @throws GuardError `schema-missing`, `unavailable`, `closed`; or the error of the server or the connection.
   */
  rows(text: string, values: readonly PgValue[], patienceMs = PATIENCE_MS): Promise<readonly Row[]> {
    return this.#repeated(text, values, patienceMs);
  }

  /** Carries out several statements as one transaction. */
  async script(text: string, patienceMs: number): Promise<void> {
    await this.#repeated(text, undefined, patienceMs);
  }

  /** No statement is sent any more. The pool stays open: it is the application's. */
  close(): void {
    this.#closed = true;
  }

  async #repeated(
    text: string,
    values: readonly PgValue[] | undefined,
    patienceMs: number,
  ): Promise<readonly Row[]> {
    const { clock, random, place } = this.#parts;
    const endMs = clock.now().monoMs + patienceMs;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#once(text, values, endMs);
      } catch (error) {
        // Both are said before anything was carried out, and the next sending has no name.
        if (this.#prepares && isUnprepared(error)) this.#prepares = false;
        else if (!isTransient(error)) throw explained(error, place);
        const pauseMs = random.fraction() * Math.min(MAX_PAUSE_MS, tries * 2);
        if (clock.now().monoMs + pauseMs >= endMs) throw error;
        await new Promise<void>((wake) => void clock.setTimer(wake, pauseMs));
      }
    }
  }

  async #once(text: string, values: readonly PgValue[] | undefined, endMs: number): Promise<readonly Row[]> {
    const { driver, clock, place } = this.#parts;
    if (this.#closed) throw new GuardError('closed', `the locks, state or runs in ${place} were closed`);
    if (driver.master === undefined) {
      throw new GuardError('unavailable', `the data source of ${place} is not initialized`);
    }
    const [client, release] = await driver.obtainMasterConnection();
    if (clock.now().monoMs >= endMs) {
      release();
      throw new GuardError('unavailable', `the pool of ${place} had no connection in time`);
    }
    return this.#on(client, release, { text, values, endMs });
  }

  /** Carries a statement out and gives the connection back; one that is not answered in time is given up with it. */
  async #on(
    client: PgClient,
    release: (error?: unknown) => void,
    { text, values, endMs }: { text: string; values: readonly PgValue[] | undefined; endMs: number },
  ): Promise<readonly Row[]> {
    const { clock, place } = this.#parts;
    let timer: Timer | undefined;
    // Without a listener, a connection that breaks would end the process.
    const ignore = (): void => undefined;
    client.on('error', ignore);
    const late = new Promise<never>((_, reject) => {
      const error = new GuardError('unavailable', `${place} did not answer in time`);
      timer = clock.setTimer(() => reject(error), endMs - clock.now().monoMs);
    });
    let broken: unknown;
    try {
      const { rows } = await Promise.race([client.query(this.#query(text, values)), late]);
      return rows;
    } catch (error) {
      if (endsConnection(error) || contradicts(error)) broken = error;
      throw error;
    } finally {
      timer?.cancel();
      client.removeListener('error', ignore);
      release(broken);
    }
  }

  /** Without parameters it is sent as one plain message, which may hold several statements. */
  #query(text: string, values: readonly PgValue[] | undefined): PgQuery {
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
