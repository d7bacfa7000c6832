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
import { isBusy, sqliteCode, type SqliteDatabase, type SqliteDriver } from './driver.js';
import type { SqliteStatement, SqliteValue } from './driver.js';
import type { Row } from './row.js';
import { MAX_TURN_MS, Turns } from './turns.js';

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

const DISTURBS = new GuardError('unavailable', 'a write would disturb a transaction of the application');

/** What became of a piece of work that was not in anybody's way. */
type Done<T> = { readonly value: T } | { readonly error: unknown };
type Tried<T> = Done<T> | { readonly busy: unknown };

/** Somebody who waits to write. */
interface Writer {
  readonly startMs: number;
  readonly patienceMs: number;
  /** Answers what it met if the file is still busy; otherwise it is done. */
  readonly attempt: (courteous: boolean) => unknown;
  readonly fail: (error: unknown) => void;
}

/** A connection that is opened on first use, again after a fault, and never waits inside a call. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #statements = new Map<string, SqliteStatement>();
  #database: SqliteDatabase | undefined;
  #inode: number | undefined;
  #checkedMs = 0;
  readonly #turns: Turns;
  readonly #writers: Writer[] = [];
  /** Whether a write that would disturb somebody is put off. */
  #courteous = false;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#turns = new Turns(options.clock);
  }

  /**
   * Runs `work`, which only reads, again and again while the file is busy. Readers pass writers that wait.
   *
   * @param patienceMs how long a busy file is asked again.
   * @throws the driver's error: still busy after that time, or any other fault.
   */
  read<T>(patienceMs: number, work: () => T): Promise<T> {
    return this.#turns.take(() => this.#readNow(patienceMs, work));
  }

  /**
   * Runs `work`, which may write, again and again while the file is busy. Writers are served in their order, and only
   * the first of them asks a busy file: the others would make it busier.
   *
   * @param patienceMs how long a busy file is asked again.
   * @throws the driver's error: still busy after that time, or any other fault.
   */
  write<T>(patienceMs: number, work: () => T): Promise<T> {
    return this.#turns.take(() => this.#writeNow(patienceMs, work));
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

  /**
   * The first row that a statement answers. All are fetched: the driver's `get` commits a statement that writes when
   * it has read one row, and says nothing where that commit fails, as on a full disk.
   */
  row(statement: string, ...parameters: readonly SqliteValue[]): Row | undefined {
    return this.#statement(statement).all(...parameters)[0] as Row | undefined;
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

  #readNow<T>(patienceMs: number, work: () => T): Promise<T> {
    const nowMs = this.#options.clock.now().monoMs;
    this.#checkFile(nowMs);
    const tried = this.#try(work, true);
    return 'busy' in tried ? this.#readLater(nowMs, patienceMs, work) : settled(tried);
  }

  #writeNow<T>(patienceMs: number, work: () => T): Promise<T> {
    const nowMs = this.#options.clock.now().monoMs;
    this.#checkFile(nowMs);
    // Whoever comes while others wait waits too: a stream of newcomers must not pass them for ever.
    if (this.#writers.length > 0) return this.#writeLater(nowMs, patienceMs, work);
    const tried = this.#try(work, true);
    return 'busy' in tried ? this.#writeLater(nowMs, patienceMs, work) : settled(tried);
  }

  async #readLater<T>(startMs: number, patienceMs: number, work: () => T): Promise<T> {
    for (let waitedMs = 0; ;) {
      await this.#pause(waitedMs, patienceMs);
      waitedMs = this.#options.clock.now().monoMs - startMs;
      const tried = this.#try(work, isCourteous(waitedMs, patienceMs));
      if (!('busy' in tried)) return settled(tried);
      if (waitedMs >= patienceMs) throw tried.busy;
    }
  }

  #writeLater<T>(startMs: number, patienceMs: number, work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const attempt = (courteous: boolean): unknown => {
        const tried = this.#try(work, courteous);
        if ('busy' in tried) return tried.busy;
        settled(tried).then(resolve, reject);
        return undefined;
      };
      this.#writers.push({ startMs, patienceMs, attempt, fail: reject });
      if (this.#writers.length === 1) void this.#serveWriters();
    });
  }

  async #serveWriters(): Promise<void> {
    const { clock } = this.#options;
    for (let first = this.#writers[0]; first !== undefined; first = this.#writers[0]) {
      await this.#pause(clock.now().monoMs - first.startMs, first.patienceMs);
      this.#serve(clock.now().monoMs);
    }
  }

  /** Carries out what waits until the file is busy or the turn is long. */
  #serve(nowMs: number): void {
    for (let first = this.#writers[0]; first !== undefined; first = this.#writers[0]) {
      const busy = first.attempt(isCourteous(nowMs - first.startMs, first.patienceMs));
      if (busy !== undefined) return this.#giveUp(nowMs, busy);
      this.#writers.shift();
      if (this.#options.clock.now().monoMs - nowMs > MAX_TURN_MS) return;
    }
  }

  /** A file that is busy for the first is busy for all: whoever has waited long enough is told so. */
  #giveUp(nowMs: number, busy: unknown): void {
    const left = this.#writers.splice(0);
    for (const writer of left) {
      if (nowMs - writer.startMs >= writer.patienceMs) writer.fail(busy);
      else this.#writers.push(writer);
    }
  }

  #pause(waitedMs: number, patienceMs: number): Promise<void> {
    const { clock, random } = this.#options;
    const pauseMs = random.fraction() * (waitedMs < LONG_MS ? MAX_PAUSE_MS : MAX_LONG_PAUSE_MS);
    const leftMs = Math.max(patienceMs - waitedMs, 0);
    return new Promise((wake) => void clock.setTimer(wake, Math.min(pauseMs, leftMs)));
  }

  #try<T>(work: () => T, courteous: boolean): Tried<T> {
    if (this.#closed) {
      return { error: new GuardError('closed', `the connection to ${this.#options.file} was closed`) };
    }
    this.#courteous = courteous;
    try {
      this.#open();
      return { value: work() };
    } catch (error) {
      if (error === DISTURBS || isBusy(error)) return { busy: error };
      // After any other fault of the file a new connection tells what is really there, also after a repair.
      if (sqliteCode(error) !== undefined) this.#drop();
      return { error };
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
}

/** Whether a write is still put off for somebody whom it would disturb. */
function isCourteous(waitedMs: number, patienceMs: number): boolean {
  return waitedMs < Math.min(MAX_COURTESY_MS, patienceMs / 2);
}

async function settled<T>(tried: Done<T>): Promise<T> {
  if ('error' in tried) throw tried.error;
  return tried.value;
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}
