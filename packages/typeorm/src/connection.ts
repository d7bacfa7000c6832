/**
 * Guard's own connections to SQLite files. TypeORM has one connection per data source, and whatever runs on it joins
 * the application's open transaction; so Guard never touches it and opens its own (S9).
 *
 * Two decisions shaped this file. SQLite's busy timeout sleeps inside the call and would stop the whole process, so it
 * is 0, and a busy file is asked again by a timer. And every use of the file is one synchronous
 * function without an await, so no transaction of Guard is ever open while other code of the process runs.
 */
import { statSync } from 'node:fs';
import { GuardError, type Clock, type Random } from '@guard/core';
import type { Row } from './row.js';

/** What a statement of better-sqlite3 can do, as far as Guard uses it. */
export interface SqliteStatement {
  run(...parameters: readonly SqliteValue[]): { readonly changes: number };
  get(...parameters: readonly SqliteValue[]): unknown;
  all(...parameters: readonly SqliteValue[]): unknown[];
  safeIntegers(on: boolean): SqliteStatement;
}

/** What Guard binds to a parameter. */
export type SqliteValue = string | number | bigint | null | Uint8Array;

/** What a database of better-sqlite3 can do, as far as Guard uses it. */
export interface SqliteDatabase {
  readonly inTransaction: boolean;
  prepare(statement: string): SqliteStatement;
  exec(statements: string): unknown;
  pragma(pragma: string, options?: { readonly simple?: boolean }): unknown;
  close(): unknown;
}

/** The constructor that better-sqlite3 exports. */
export type SqliteDriver = new (
  file: string,
  options: { readonly timeout: number; readonly fileMustExist: boolean; readonly nativeBinding?: string },
) => SqliteDatabase;

/** How to open a file. */
export interface ConnectionOptions {
  readonly driver: SqliteDriver;
  readonly file: string;
  /** Whether a missing file is made, or is an error. */
  readonly create: boolean;
  /** When a commit is on the disk: `FULL` at once; `NORMAL` a power cut can lose the last ones. */
  readonly synchronous: 'NORMAL' | 'FULL';
  /** Prepares a file that was just opened; runs again when it met a busy file. */
  readonly prepare?: (database: SqliteDatabase) => void;
  /** Whether a write would disturb somebody in this process just now. */
  readonly avoid?: () => boolean;
  readonly nativeBinding?: string | undefined;
  readonly key?: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/** The longest pause before a busy file is asked again: long enough for others to finish, short enough to be fair. */
const MAX_PAUSE_MS = 2;
/** The same for a file that has been busy for longer than any short write takes: somebody holds a transaction open. */
const MAX_LONG_PAUSE_MS = 20;
const LONG_MS = 100;
/** How long `avoid` is heeded: whoever is in the way for longer has to live with what happens. */
const MAX_COURTESY_MS = 500;
/** How often it is checked that the path still leads to the file that is open. */
const CHECK_FILE_MS = 1_000;
/** How long calls may follow each other in microtasks before timers and I/O get their turn. */
const MAX_TURN_MS = 10;

const DISTURBS = new GuardError('unavailable', 'a write would disturb a transaction of the application');

/** A connection that is opened on first use, again after a fault, and never waits inside a call. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #statements = new Map<string, SqliteStatement>();
  #database: SqliteDatabase | undefined;
  #inode: number | undefined;
  #checkedMs = 0;
  #turnStartMs: number | undefined;
  #waiters = 0;
  /** Whether a write that would disturb somebody is put off. */
  #courteous = false;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` against the open file, again and again while the file is busy.
   *
   * @param patienceMs how long a busy file is asked again.
   * @throws the driver's error: still busy after that time, or any other fault.
   */
  use<T>(patienceMs: number, work: (connection: Connection) => T): Promise<T> {
    const nowMs = this.#options.clock.now().monoMs;
    if (this.#mustBreathe(nowMs)) return this.#breathe().then(() => this.use(patienceMs, work));
    // Whoever comes while others wait for the file waits too: a stream of newcomers must not pass them for ever.
    if (this.#waiters > 0) return this.#insist(patienceMs, work);
    try {
      this.#checkFile(nowMs);
      const first = this.#try(work, patienceMs > 0);
      if (!('busy' in first)) return Promise.resolve(first.value);
      return patienceMs > 0 ? this.#insist(patienceMs, work) : rejected(first.busy);
    } catch (error) {
      return rejected(error);
    }
  }

  /** Runs `work` in a write transaction; whatever goes wrong, none stays open. */
  immediate<T>(work: () => T): T {
    const database = this.#open();
    if (this.#courteous && this.#options.avoid?.() === true) throw DISTURBS;
    this.run('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.run('COMMIT');
      return result;
    } catch (error) {
      // A commit that met a reader leaves the transaction open, and later writes would vanish with it.
      if (database.inTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }

  /** Runs a statement; how many rows it changed. */
  run(statement: string, ...parameters: readonly SqliteValue[]): number {
    return this.#statement(statement).run(...parameters).changes;
  }

  /** The first row that a statement answers. */
  row(statement: string, ...parameters: readonly SqliteValue[]): Row | undefined {
    return this.#statement(statement).get(...parameters) as Row | undefined;
  }

  /** All rows that a statement answers. */
  rows(statement: string, ...parameters: readonly SqliteValue[]): Row[] {
    return [...this.#statement(statement).all(...parameters)] as Row[];
  }

  /** Closes the file for good. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  async #insist<T>(patienceMs: number, work: (connection: Connection) => T): Promise<T> {
    const { clock, random } = this.#options;
    const startMs = clock.now().monoMs;
    let waitedMs = 0;
    this.#waiters += 1;
    try {
      for (;;) {
        const pauseMs = random.fraction() * (waitedMs < LONG_MS ? MAX_PAUSE_MS : MAX_LONG_PAUSE_MS);
        await new Promise<void>((wake) => void clock.setTimer(wake, pauseMs));
        waitedMs = clock.now().monoMs - startMs;
        const next = this.#try(work, waitedMs < Math.min(MAX_COURTESY_MS, patienceMs / 2));
        if (!('busy' in next)) return next.value;
        if (waitedMs >= patienceMs) throw next.busy;
      }
    } finally {
      this.#waiters -= 1;
    }
  }

  #try<T>(
    work: (connection: Connection) => T,
    courteous: boolean,
  ): { readonly value: T } | { readonly busy: unknown } {
    if (this.#closed) throw new GuardError('closed', `the connection to ${this.#options.file} was closed`);
    this.#courteous = courteous;
    try {
      this.#open();
      return { value: work(this) };
    } catch (error) {
      if (error === DISTURBS || isBusy(error)) return { busy: error };
      // After any other fault of the file a new connection tells what is really there, also after a repair.
      if (sqliteCode(error) !== undefined) this.#drop();
      throw error;
    }
  }

  /** A prepared statement, kept for the next time. */
  #statement(text: string): SqliteStatement {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#open().prepare(text).safeIntegers(true);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  #open(): SqliteDatabase {
    if (this.#database !== undefined) return this.#database;
    const { driver, file, create, nativeBinding, key, synchronous, prepare } = this.#options;
    const database = new driver(file, {
      timeout: 0,
      fileMustExist: !create,
      ...(nativeBinding === undefined ? {} : { nativeBinding }),
    });
    try {
      if (key !== undefined) database.pragma(`key = ${JSON.stringify(key)}`);
      prepare?.(database);
      database.pragma(`synchronous = ${synchronous}`);
    } catch (error) {
      database.close();
      throw error;
    }
    this.#database = database;
    this.#inode = inodeOf(file);
    this.#checkedMs = this.#options.clock.now().monoMs;
    return database;
  }

  /** A file that was moved away stays open under no name: two processes would lock two different files. */
  #checkFile(nowMs: number): void {
    if (this.#database === undefined) return;
    if (nowMs - this.#checkedMs < CHECK_FILE_MS) return;
    this.#checkedMs = nowMs;
    if (inodeOf(this.#options.file) !== this.#inode) this.#drop();
  }

  #drop(): void {
    const database = this.#database;
    this.#database = undefined;
    this.#statements.clear();
    database?.close();
  }

  /** Whether calls have followed each other in microtasks for so long that timers and I/O need a turn. */
  #mustBreathe(nowMs: number): boolean {
    if (this.#turnStartMs !== undefined) return nowMs - this.#turnStartMs > MAX_TURN_MS;
    this.#turnStartMs = nowMs;
    this.#options.clock.yield(() => (this.#turnStartMs = undefined));
    return false;
  }

  #breathe(): Promise<void> {
    return new Promise((resume) => this.#options.clock.yield(resume));
  }
}

async function rejected(error: unknown): Promise<never> {
  throw error;
}

/** The code of an error of SQLite, such as `SQLITE_BUSY`; `undefined` for any other error. */
export function sqliteCode(error: unknown): string | undefined {
  // Not by its class: under a test runner the driver is loaded more than once, and then so is the class.
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : undefined;
}

/** Whether somebody else uses the file, so that asking again helps. */
function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code);
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}
