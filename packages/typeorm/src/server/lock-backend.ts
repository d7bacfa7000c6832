/**
 * Locks in a table of a server: the lock port in one statement for each verb.
 *
 * A key that nobody else wants is taken and given back by statements that know no queue. Whatever they do not settle
 * goes to the one statement that does, and a key whose last claim had to wait goes there at once. The queue is in the
 * row of the lock, so whoever changes the one holds the other, at any isolation level.
 *
 * Where no message tells waiters of a hand-over they ask again and again. They are answered by a plain read as long as
 * there is nothing to write: a row that is written by every question keeps its releases waiting.
 */
import type {
  Claim,
  ClaimAnswer,
  Clock,
  Failed,
  LockBackend,
  LockInfo,
  LockQuery,
  LockTraits,
  Notice,
  Release,
  ReleaseAnswer,
  Renewal,
  RenewAnswer,
  Subscription,
} from '@guard/core';
import { integer, text, type Row } from '../row.js';
import type { LockStatements } from '../statements/postgres-locks.js';
import { afterPrefix } from './prefix.js';
import * as wishes from './lock-wishes.js';
import { PlainLocks, type PlainRelease } from './plain-locks.js';
import type { Statements } from './statements.js';

/** How often rows that mean nothing any more are removed, a stretch at a time, by whoever writes. */
const HOUSEKEEPING_MS = 5_000;
/** Rows that one stretch looks at. */
const STRETCH = 256;
/** How long a row is kept after its last use: taking a key that has one writes less. */
const KEPT_MS = 600_000;
/** Keys that are settled at once; beyond it all are forgotten, which costs each one statement. */
const MAX_CONTENDED = 10_000;

/** Messages to waiters, where the server has them. */
export interface Messages {
  subscribe(session: string, onNotice: (notice: Notice) => void): Promise<Subscription>;
  close(): Promise<void>;
}

/** What a lock backend works with. */
export interface ServerLocksParts {
  readonly name: string;
  readonly statements: Statements;
  readonly sql: LockStatements;
  readonly clock: Clock;
  /** Without them waiters poll. */
  readonly messages?: Messages;
}

/** A lock backend on the pool of a data source. */
export class ServerLocks implements LockBackend {
  readonly name: string;
  readonly traits: LockTraits;
  readonly subscribe?: Messages['subscribe'];

  readonly #statements: Statements;
  readonly #sql: LockStatements;
  readonly #clock: Clock;
  readonly #plain: PlainLocks;
  readonly #messages: Messages | undefined;
  /** Keys whose last claim here was not granted. */
  readonly #contended = new Set<string>();
  /** Claims whose last answer here was that they wait. */
  readonly #waiting = new Set<string>();
  #houseKeptMs: number;
  #walkedTo = '';

  constructor({ name, statements, sql, clock, messages }: ServerLocksParts) {
    this.name = name;
    this.traits = {
      ...{ fifo: true, push: messages !== undefined, floor: true },
      ...{ minTtlMs: 200, ttlGranularityMs: 1, maxBatch: 256, maxRenew: 1_024 },
    };
    this.#statements = statements;
    this.#sql = sql;
    this.#clock = clock;
    this.#plain = new PlainLocks(statements, sql);
    this.#messages = messages;
    if (messages !== undefined) this.subscribe = (...all) => messages.subscribe(...all);
    this.#houseKeptMs = clock.now().monoMs;
  }

  acquire(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    return this.#answer(claims, async () => {
      const plain = claims.filter(({ key }) => !this.#contended.has(key));
      const done = await this.#plain.takeFree(plain);
      for (const [key, answer] of await this.#look(claims)) done.set(key, answer);
      const answers = await this.#finish(claims, done, wishes.acquireWish, wishes.claimAnswer);
      for (const [index, claim] of claims.entries()) this.#remember(claim, answers[index]!);
      return answers;
    });
  }

  renew(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]> {
    return this.#answer(renewals, async () => {
      const renewed = await this.#plain.renewLive(renewals);
      return this.#finish(renewals, renewed, wishes.renewWish, wishes.renewAnswer);
    });
  }

  release(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    return this.#answer(releases, async () => {
      const plain = releases.filter((release): release is PlainRelease => {
        return !release.cancel && !this.#contended.has(release.key);
      });
      const released = await this.#plain.releaseUnqueued(plain);
      return this.#finish(releases, released, wishes.releaseWish, wishes.releaseAnswer);
    });
  }

  async inspect(query: LockQuery): Promise<readonly LockInfo[]> {
    if (!('keys' in query)) return this.#inspectBelow(query);
    if (query.keys.length === 0) return [];
    let rows = await this.#statements.rows(this.#sql.readKeys, [query.keys]);
    const open = rows.filter(wishes.isToBeSettled).map((row) => text(row, 'key'));
    if (open.length > 0) {
      await this.#settle(open.map(wishes.lookWish));
      rows = await this.#statements.rows(this.#sql.readKeys, [query.keys]);
    }
    return rows.map(wishes.lockInfo);
  }

  async close(): Promise<void> {
    this.#statements.close();
    await this.#messages?.close();
  }

  /** Answers claims that have to go on waiting, or are refused again, where they ask again and again. */
  async #look(claims: readonly Claim[]): Promise<ReadonlyMap<string, ClaimAnswer>> {
    const { look } = this.#sql;
    const again = claims.filter(({ id, key, wait }) =>
      wait ? this.#waiting.has(id) : this.#contended.has(key),
    );
    if (look === undefined || again.length === 0) return new Map();
    const columns = [
      again.map(({ key }) => key),
      again.map(({ id }) => id),
      again.map(({ wait }) => (wait ? '1' : '0')),
    ];
    const rows = await this.#statements.rows(look, this.#statements.batch(columns));
    return new Map(rows.map((row) => [text(row, 'key'), wishes.claimAnswer(row)]));
  }

  /** Settles in one statement, one step for each key, what the plain statements have left. */
  async #finish<O extends { readonly key: string }, A>(
    operations: readonly O[],
    done: ReadonlyMap<string, A>,
    wishOf: (operation: O) => wishes.Wish,
    answerOf: (row: Row) => A,
  ): Promise<readonly A[]> {
    const left = done.size === operations.length ? [] : operations.filter(({ key }) => !done.has(key));
    const rows = left.length === 0 ? [] : await this.#settle(left.map(wishOf));
    const settled = new Map(rows.map((row) => [text(row, 'key'), answerOf(row)]));
    return operations.map(({ key }) => done.get(key) ?? settled.get(key)!);
  }

  #settle(all: readonly wishes.Wish[]): Promise<readonly Row[]> {
    return this.#statements.rows(this.#sql.settle, [JSON.stringify(all)]);
  }

  async #inspectBelow(query: Extract<LockQuery, { prefix: string }>): Promise<readonly LockInfo[]> {
    const { prefix, after = '', limit } = query;
    const rows = await this.#statements.rows(this.#sql.readBelow, [
      prefix,
      after,
      afterPrefix(prefix),
      limit,
    ]);
    return rows.map(wishes.lockInfo);
  }

  /** Answers every operation: with what `work` says, or with `failed` and the cause. */
  async #answer<A>(
    operations: readonly unknown[],
    work: () => Promise<readonly A[]>,
  ): Promise<readonly (A | Failed)[]> {
    try {
      return await work();
    } catch (cause) {
      return operations.map(() => ({ status: 'failed', cause }));
    } finally {
      this.#keepHouse();
    }
  }

  #remember({ key, id }: Claim, { status }: ClaimAnswer): void {
    if (status !== 'queued') this.#waiting.delete(id);
    if (status === 'granted') return;
    if (this.#contended.size >= MAX_CONTENDED) this.#contended.clear();
    this.#contended.add(key);
    if (status !== 'queued') return;
    if (this.#waiting.size >= MAX_CONTENDED) this.#waiting.clear();
    this.#waiting.add(id);
  }

  #keepHouse(): void {
    const nowMs = this.#clock.now().monoMs;
    if (nowMs - this.#houseKeptMs < HOUSEKEEPING_MS) return;
    this.#houseKeptMs = nowMs;
    // Keys that nobody waits for any more get their short way back.
    this.#contended.clear();
    // Any fault meets the next call too.
    this.#walk().catch(() => undefined);
  }

  async #walk(): Promise<void> {
    const values = [this.#walkedTo, STRETCH, wishes.microseconds(KEPT_MS)];
    const [row] = await this.#statements.rows(this.#sql.keepHouse, values);
    this.#walkedTo = row === undefined || integer(row, 'looked') < STRETCH ? '' : text(row, 'last');
  }
}
