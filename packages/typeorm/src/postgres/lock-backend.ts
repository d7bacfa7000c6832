/**
 * Locks in a Postgres table: the lock port in one statement for each verb.
 *
 * A key that nobody else wants is taken and given back by statements that know no queue. Whatever they do not settle
 * goes to the one statement that does, and a key whose last claim had to wait goes there at once. The queue is in the
 * row of the lock, so whoever changes the one holds the other, at any isolation level.
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
import { lockStatements, type LockStatements } from '../statements/postgres-locks.js';
import { afterPrefix } from './prefix.js';
import * as wishes from './lock-wishes.js';
import { Notices } from './notices.js';
import { PlainLocks, type PlainRelease } from './plain-locks.js';
import type { PostgresParts } from './parts.js';
import type { StatementPool } from './pool.js';

/** How often rows that mean nothing any more are removed, a stretch at a time, by whoever writes. */
const HOUSEKEEPING_MS = 5_000;
/** Rows that one stretch looks at. */
const STRETCH = 256;
/** How long a row is kept after its last use: taking a key that has one writes less. */
const KEPT_MS = 600_000;
/** Keys that are settled at once; beyond it all are forgotten, which costs each one statement. */
const MAX_CONTENDED = 10_000;

/** A lock backend on the pool of a data source. */
export class PostgresLocks implements LockBackend {
  readonly name: string;
  readonly traits: LockTraits = {
    fifo: true,
    push: true,
    floor: true,
    minTtlMs: 200,
    ttlGranularityMs: 1,
    maxBatch: 256,
    maxRenew: 1_024,
  };

  readonly #statements: StatementPool;
  readonly #sql: LockStatements;
  readonly #clock: Clock;
  readonly #plain: PlainLocks;
  readonly #notices: Notices;
  /** Keys whose last claim here was not granted. */
  readonly #contended = new Set<string>();
  #houseKeptMs: number;
  #walkedTo = '';

  constructor({ name, statements, tables, clock, random }: PostgresParts) {
    this.name = name;
    this.#statements = statements;
    this.#sql = lockStatements(tables);
    this.#clock = clock;
    this.#plain = new PlainLocks(statements, this.#sql);
    this.#notices = new Notices({ statements, clock, random });
    this.#houseKeptMs = clock.now().monoMs;
  }

  acquire(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    return this.#answer(claims, async () => {
      const plain = claims.filter(({ key }) => !this.#contended.has(key));
      const taken = await this.#plain.takeFree(plain);
      const answers = await this.#finish(claims, taken, wishes.acquireWish, wishes.claimAnswer);
      for (const [index, { key }] of claims.entries()) this.#remember(key, answers[index]!);
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

  subscribe(session: string, onNotice: (notice: Notice) => void): Promise<Subscription> {
    return this.#notices.subscribe(session, onNotice);
  }

  async close(): Promise<void> {
    this.#statements.close();
    await this.#notices.close();
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

  #remember(key: string, { status }: ClaimAnswer): void {
    if (status === 'granted') return;
    if (this.#contended.size >= MAX_CONTENDED) this.#contended.clear();
    this.#contended.add(key);
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
