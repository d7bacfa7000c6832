/**
 * Locks in `<file>-guard`: the lock port on SQLite.
 *
 * SQLite has one writer at a time, so what a waiter does while it waits must not write: a key that was not granted
 * the last time is looked at first, by a plain read, and only a look that shows something to do is followed by a
 * write. A key that nobody wants costs one statement to take and one to give back.
 */
import type {
  Claim,
  ClaimAnswer,
  Failed,
  LockBackend,
  LockInfo,
  LockQuery,
  LockTraits,
  Release,
  ReleaseAnswer,
  Renewal,
  RenewAnswer,
} from '@guard/core';
import type { Connection } from '../connection.js';
import type { GuardFileParts } from '../guard-file.js';
import type { Lifetimes } from '../lifetime.js';
import { integer, text } from '../row.js';
import * as sql from '../statements/sqlite-locks.js';
import { LockHousekeeping } from './lock-housekeeping.js';
import { LockQueue } from './lock-queue.js';
import { lockRow, lookRow, type LockRow } from './lock-rows.js';
import { endOfPrefix } from './prefix.js';

/** The longest time for which a busy file is asked again by one call; the runtime asks again by itself. */
const MAX_PATIENCE_MS = 5_000;
/** How often rows that nobody met are removed, a stretch at a time, by whoever writes. */
const HOUSEKEEPING_MS = 5_000;
/** Keys that are looked at before they are written; beyond it all are forgotten, which costs each one write. */
const MAX_CONTENDED = 10_000;

const CANCELLED: ClaimAnswer = { status: 'cancelled' };
const RENEWED: RenewAnswer = { status: 'renewed' };
const RELEASED: ReleaseAnswer = { status: 'released' };
const LOST = { status: 'lost' } as const;

/** A lock backend over one connection to a guard file. */
export class SqliteLocks implements LockBackend {
  readonly name: string;
  readonly traits: LockTraits = {
    fifo: true,
    push: false,
    floor: true,
    // The margin is never below 50 ms: half of the shortest lease is left to work in.
    minTtlMs: 100,
    ttlGranularityMs: 1,
    // A transaction is synchronous: a longer one would keep timers and other processes waiting.
    maxBatch: 64,
  };

  readonly #connection: Connection;
  readonly #lifetimes: Lifetimes;
  readonly #queue: LockQueue;
  readonly #housekeeping: LockHousekeeping;
  /** Keys whose last claim here was not granted. */
  readonly #contended = new Set<string>();
  #houseKeptMs: number;

  constructor({ name, connection, lifetimes, clock }: GuardFileParts) {
    this.name = name;
    this.#connection = connection;
    this.#lifetimes = lifetimes;
    this.#queue = new LockQueue(connection, lifetimes, clock);
    this.#housekeeping = new LockHousekeeping(connection, this.#queue);
    this.#houseKeptMs = lifetimes.nowMs();
  }

  acquire(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    const contended = this.#contended.size > 0 && claims.some(({ key }) => this.#contended.has(key));
    return contended ? this.#lookAndTake(claims) : this.#take(claims);
  }

  renew(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]> {
    return this.#answer(renewals, patienceMs(renewals), () => {
      if (renewals.length === 1 && this.#renewLive(renewals[0]!)) return [RENEWED];
      return this.#connection.immediate(() => renewals.map((renewal) => this.#renew(renewal)));
    });
  }

  release(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    return this.#answer(releases, MAX_PATIENCE_MS, () => {
      const [only] = releases;
      if (releases.length === 1 && !only!.cancel && this.#releaseUnqueued(only!)) return [RELEASED];
      return this.#connection.immediate(() =>
        releases.map((release) => (release.cancel ? this.#cancel(release) : this.#release(release))),
      );
    });
  }

  inspect(query: LockQuery): Promise<readonly LockInfo[]> {
    return this.#connection.read(MAX_PATIENCE_MS, () =>
      'keys' in query ? query.keys.map((key) => this.#inspect(key)) : this.#inspectBelow(query),
    );
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  /** Looks at the keys whose last claim was not granted, and takes what a look does not settle. */
  async #lookAndTake(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    const look = (claim: Claim): ClaimAnswer | undefined =>
      this.#contended.has(claim.key) ? this.#look(claim) : undefined;
    try {
      const looks = await this.#connection.read(patienceMs(claims), () => claims.map(look));
      const open = claims.filter((_, index) => looks[index] === undefined);
      const taken = open.length === 0 ? [] : [...(await this.#take(open))];
      return looks.map((answer) => answer ?? taken.shift()!);
    } catch (cause) {
      return claims.map(() => ({ status: 'failed', cause }));
    }
  }

  #take(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    return this.#answer(claims, patienceMs(claims), () => {
      const answers =
        claims.length === 1
          ? [this.#acquireOne(claims[0]!)]
          : this.#connection.immediate(() => claims.map((claim) => this.#acquire(claim)));
      for (const [index, { key }] of claims.entries()) this.#remember(key, answers[index]!);
      return answers;
    });
  }

  /** One statement where the key is free; a transaction otherwise. */
  #acquireOne(claim: Claim): ClaimAnswer {
    const token = this.#queue.takeFree(claim);
    if (token !== undefined) return { status: 'granted', token };
    return this.#connection.immediate(() => this.#acquire(claim));
  }

  /** An answer that needs no write, if one read is enough to give it. */
  #look(claim: Claim): ClaimAnswer | undefined {
    const nowMs = this.#lifetimes.nowMs();
    const raw = this.#connection.row(sql.LOOK, claim.id, nowMs, claim.id, claim.key);
    if (raw === undefined) return undefined;
    const { lock, ticket, ahead, givenUp } = lookRow(raw);
    if (givenUp || lock.claim === claim.id || this.#queue.leftMs(lock) <= 0) return undefined;
    if (!claim.wait) return ticket === undefined ? this.#busy(lock) : undefined;
    if (ticket === undefined || !this.#lifetimes.isNative(ticket)) return undefined;
    // A third of its life must be over before a ticket is written again: polls come far more often than that.
    const refreshAtMs = ticket.sessionDeadline - (ticket.ticketTtlMs * 2) / 3;
    if (nowMs >= Math.min(refreshAtMs, ticket.deadline)) return undefined;
    return { status: 'queued', ahead, minted: lock.token, fresh: false };
  }

  #acquire(claim: Claim): ClaimAnswer {
    const { id, key } = claim;
    let token = this.#queue.takeFree(claim);
    if (token !== undefined) return { status: 'granted', token };
    if (this.#queue.isGivenUp(id)) return CANCELLED;
    const lock = this.#queue.settle(key);
    if (lock === undefined) token = this.#queue.takeFree(claim)!;
    else if (lock.claim === id) token = this.#queue.takeAgain(claim);
    if (token !== undefined) return { status: 'granted', token };
    if (claim.wait) return { status: 'queued', minted: lock!.token, ...this.#queue.enqueue(claim) };
    this.#queue.leaveQueue(key, id);
    return this.#busy(lock!);
  }

  #busy(lock: LockRow): ClaimAnswer {
    return { status: 'busy', holder: lock.holder, expiresInMs: this.#queue.leftMs(lock) };
  }

  #renew(renewal: Renewal): RenewAnswer {
    if (this.#renewLive(renewal)) return RENEWED;
    this.#queue.settle(renewal.key);
    return LOST;
  }

  #renewLive({ key, claim, token, ttlMs }: Renewal): boolean {
    const { boot, since, deadline } = this.#lifetimes.lasting(ttlMs);
    return (
      this.#connection.run(sql.RENEW, deadline, since, key, claim, token, boot, this.#lifetimes.nowMs()) > 0
    );
  }

  #release(release: Extract<Release, { cancel?: false }>): ReleaseAnswer {
    if (this.#releaseUnqueued(release)) return RELEASED;
    const lock = this.#queue.settle(release.key);
    // A claim can be granted more than once (S5), so its token tells the grants apart.
    if (lock?.claim !== release.claim || lock.token !== release.token) return LOST;
    this.#queue.handOver(release.key);
    return RELEASED;
  }

  #cancel({ key, claim, tombstoneMs }: Extract<Release, { cancel: true }>): ReleaseAnswer {
    const lock = this.#queue.settle(key);
    if (tombstoneMs > 0) this.#queue.leaveTombstone(claim, tombstoneMs);
    if (lock?.claim === claim) {
      this.#queue.handOver(key);
      return RELEASED;
    }
    const hadTicket = this.#queue.leaveQueue(key, claim);
    return hadTicket || tombstoneMs > 0 ? RELEASED : LOST;
  }

  #releaseUnqueued({ key, claim, token }: Extract<Release, { cancel?: false }>): boolean {
    const { boot } = this.#lifetimes;
    return (
      this.#connection.run(sql.RELEASE_UNQUEUED, key, claim, token, boot, this.#lifetimes.nowMs(), key) > 0
    );
  }

  #inspect(key: string): LockInfo {
    const raw = this.#connection.row(sql.READ_LOCK, key);
    const lock = raw === undefined ? undefined : lockRow(raw);
    if (lock === undefined) return this.#free(key);
    if (this.#queue.leftMs(lock) > 0) return this.#held(lock);
    const next = this.#connection.immediate(() => this.#queue.settle(key));
    return next === undefined ? this.#free(key) : this.#held(next);
  }

  #free(key: string): LockInfo {
    const largest = this.#connection.row(sql.READ_LARGEST);
    return { key, held: false, token: largest === undefined ? 0n : integer(largest, 'token'), waiting: 0 };
  }

  #held(lock: LockRow): LockInfo {
    const { key, claim, token, session, holder } = lock;
    return {
      ...{ key, held: true, holder, token, expiresInMs: this.#queue.leftMs(lock) },
      waiting: this.#queue.waiting(key),
      lease: { key, claim, token, session },
    };
  }

  #inspectBelow({ prefix, after, limit }: Extract<LockQuery, { prefix: string }>): readonly LockInfo[] {
    const held: LockInfo[] = [];
    let last = after ?? '';
    for (;;) {
      const rows = this.#connection.rows(sql.READ_LOCKS_BELOW, prefix, endOfPrefix(prefix), last, limit);
      const live = rows.map(lockRow).filter((lock) => this.#queue.leftMs(lock) > 0);
      held.push(...live.map((lock) => this.#held(lock)));
      if (held.length >= limit || rows.length < limit) return held.slice(0, limit);
      last = text(rows.at(-1)!, 'key');
    }
  }

  /** Answers every operation: with what `work` says, or with `failed` and the cause. */
  async #answer<A>(
    operations: readonly unknown[],
    patience: number,
    work: () => readonly A[],
  ): Promise<readonly (A | Failed)[]> {
    try {
      return await this.#connection.write(patience, work);
    } catch (cause) {
      return operations.map(() => ({ status: 'failed', cause }));
    } finally {
      this.#keepHouse();
    }
  }

  #remember(key: string, { status }: ClaimAnswer): void {
    if (status === 'granted') this.#contended.delete(key);
    if (status !== 'queued' && status !== 'busy') return;
    if (this.#contended.size >= MAX_CONTENDED) this.#contended.clear();
    this.#contended.add(key);
  }

  #keepHouse(): void {
    const nowMs = this.#lifetimes.nowMs();
    if (nowMs - this.#houseKeptMs < HOUSEKEEPING_MS) return;
    this.#houseKeptMs = nowMs;
    const walk = (): void => this.#connection.immediate(() => this.#housekeeping.walk());
    // A busy file is left alone until the next time, and any other fault meets the next call too.
    this.#connection.write(0, walk).catch(() => undefined);
  }
}

/** As long as a flight of the runtime lasts: a third of the shortest lease, and never more than five seconds. */
function patienceMs(operations: readonly { readonly ttlMs: number }[]): number {
  return Math.min(MAX_PATIENCE_MS, ...operations.map(({ ttlMs }) => ttlMs / 3));
}
