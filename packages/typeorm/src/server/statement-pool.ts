/**
 * Guard's statements on the application's pool of connections to a server. A connection is taken for one statement and
 * given back at once: nothing of Guard is ever open between two statements, so no lock and no run can starve a small
 * pool, and nothing joins a transaction of the application (S9).
 */
import { GuardError, type Clock, type Random } from '@guard/core';
import type { Row } from '../row.js';
import type { Statements, Value } from './statements.js';

/** A connection that was taken from the pool. */
export interface Taken {
  /** The rows of a statement; without values it may be several. */
  send(text: string, values: readonly Value[] | undefined): Promise<readonly Row[]>;
  /** Gives it back; one that broke is thrown away. */
  giveBack(broken: boolean): void;
}

/** The pool of the application, and what its errors mean. */
export interface Connections {
  /** Whether the data source is initialized. */
  isOpen(): boolean;
  take(): Promise<Taken>;
  batch: Statements['batch'];
  /** Whether nothing was carried out, and sending it again helps. */
  isTransient(error: unknown): boolean;
  /** Whether the connection is of no use any more. */
  breaks(error: unknown): boolean;
  /** The error itself, or one that says what to do about it. */
  explained(error: unknown): unknown;
}

/** What a pool works with. */
export interface PoolParts {
  readonly connections: Connections;
  /** Names the database in errors. */
  readonly place: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** How long one statement may take, its wait for a connection and its repetitions included. */
const PATIENCE_MS = 5_000;
/** The longest pause before a statement that met another transaction is sent again. */
const MAX_PAUSE_MS = 20;

/** Statements, one connection each. */
export class StatementPool implements Statements {
  readonly #parts: PoolParts;
  #closed = false;

  constructor(parts: PoolParts) {
    this.#parts = parts;
  }

  rows(text: string, values: readonly Value[], patienceMs = PATIENCE_MS): Promise<readonly Row[]> {
    return this.#repeated(text, values, patienceMs);
  }

  batch(columns: readonly (readonly (string | null)[])[]): readonly Value[] {
    return this.#parts.connections.batch(columns);
  }

  /** Carries out several statements as one transaction, where the server takes them in one message. */
  async script(text: string, patienceMs: number): Promise<void> {
    await this.#repeated(text, undefined, patienceMs);
  }

  close(): void {
    this.#closed = true;
  }

  async #repeated(
    text: string,
    values: readonly Value[] | undefined,
    patienceMs: number,
  ): Promise<readonly Row[]> {
    const { clock, random, connections } = this.#parts;
    const endMs = clock.now().monoMs + patienceMs;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#once(text, values, endMs);
      } catch (error) {
        if (!connections.isTransient(error)) throw connections.explained(error);
        const pauseMs = random.fraction() * Math.min(MAX_PAUSE_MS, tries * 2);
        if (clock.now().monoMs + pauseMs >= endMs) throw error;
        await new Promise<void>((wake) => void clock.setTimer(wake, pauseMs));
      }
    }
  }

  async #once(text: string, values: readonly Value[] | undefined, endMs: number): Promise<readonly Row[]> {
    const { connections, place } = this.#parts;
    if (this.#closed) throw new GuardError('closed', `the locks, state or runs in ${place} were closed`);
    if (!connections.isOpen()) {
      throw new GuardError('unavailable', `the data source of ${place} is not initialized`);
    }
    const taken = await this.#take(endMs);
    let broken = false;
    try {
      // One that is not answered in time is given up with its connection.
      return await this.#inTime(taken.send(text, values), endMs, () => {
        broken = true;
        return `${place} did not answer in time`;
      });
    } catch (error) {
      broken ||= connections.breaks(error);
      throw error;
    } finally {
      taken.giveBack(broken);
    }
  }

  /**
   * A connection that comes too late goes back at once. Whoever waits may be in the way of it: a transaction of the
   * application that holds the last one of the pool.
   */
  async #take(endMs: number): Promise<Taken> {
    const { connections, clock, place } = this.#parts;
    const late = `the pool of ${place} had no connection in time`;
    const coming = connections.take();
    const taken = await this.#inTime(coming, endMs, () => {
      void coming.then(
        (one) => one.giveBack(false),
        () => undefined,
      );
      return late;
    });
    if (clock.now().monoMs < endMs) return taken;
    taken.giveBack(false);
    throw new GuardError('unavailable', late);
  }

  /** `onLate` says what is told where nothing came in time. */
  #inTime<T>(answer: Promise<T>, endMs: number, onLate: () => string): Promise<T> {
    const { clock } = this.#parts;
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(
        () => reject(new GuardError('unavailable', onLate())),
        endMs - clock.now().monoMs,
      );
      answer.then(
        (value) => {
          timer.cancel();
          resolve(value);
        },
        (error: Error) => {
          timer.cancel();
          reject(error);
        },
      );
    });
  }
}
