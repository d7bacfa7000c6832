/**
 * The common case of locks: keys that nobody else wants, taken, renewed and given back by statements that know no queue.
 * Each method answers for the keys that it could do; the others have to be settled.
 */
import type { Claim, ClaimAnswer, Release, ReleaseAnswer, Renewal, RenewAnswer } from '@guard/core';
import { integer, text, type Row } from '../row.js';
import type { LockStatements } from '../statements/postgres-locks.js';
import { holderText, microseconds } from './lock-wishes.js';
import type { Statements } from './statements.js';

/** A release that cancels nothing. */
export type PlainRelease = Extract<Release, { cancel?: false }>;

const RENEWED: RenewAnswer = { status: 'renewed' };
const RELEASED: ReleaseAnswer = { status: 'released' };
const LOST = { status: 'lost' } as const;

/** The plain statements: one for a single operation, one for a batch. */
export class PlainLocks {
  readonly #statements: Statements;
  readonly #sql: LockStatements;

  constructor(statements: Statements, sql: LockStatements) {
    this.#statements = statements;
    this.#sql = sql;
  }

  /** Grants free keys. */
  async takeFree(claims: readonly Claim[]): Promise<Map<string, ClaimAnswer>> {
    const [claim] = claims;
    if (claims.length === 1) {
      const [row] = await this.#statements.rows(this.#sql.takeFree, [
        ...[claim!.key, claim!.id, claim!.session, holderText(claim!.holder)],
        ...[String(claim!.floor ?? 0n), String(microseconds(claim!.ttlMs))],
      ]);
      const token = row === undefined ? 0n : integer(row, 'token');
      return token === 0n ? new Map() : new Map([[claim!.key, { status: 'granted', token }]]);
    }
    const rows = await this.#batch(this.#sql.takeFreeBatch, [
      claims.map(({ key }) => key),
      claims.map(({ id }) => id),
      claims.map(({ session }) => session),
      claims.map(({ holder }) => holderText(holder)),
      claims.map(({ floor = 0n }) => String(floor)),
      claims.map(({ ttlMs }) => String(microseconds(ttlMs))),
    ]);
    return new Map(
      rows.map((row) => [text(row, 'key'), { status: 'granted', token: integer(row, 'token') }]),
    );
  }

  /** Renews live leases. */
  async renewLive(renewals: readonly Renewal[]): Promise<Map<string, RenewAnswer>> {
    const ttls = renewals.map(({ ttlMs }) => String(microseconds(ttlMs)));
    if (renewals.length === 1) return this.#lone(this.#sql.renewLive, renewals[0]!, ttls, RENEWED);
    const rows = await this.#batch(this.#sql.renewLiveBatch, [...names(renewals), ttls]);
    return new Map(rows.map((row) => [text(row, 'key'), wasMade(row) ? LOST : RENEWED]));
  }

  /** Gives locks back that nobody waits for. */
  async releaseUnqueued(releases: readonly PlainRelease[]): Promise<Map<string, ReleaseAnswer>> {
    if (releases.length === 1) return this.#lone(this.#sql.releaseUnqueued, releases[0]!, [], RELEASED);
    const rows = await this.#batch(this.#sql.releaseUnqueuedBatch, names(releases));
    return new Map(rows.map((row) => [text(row, 'key'), wasMade(row) ? LOST : RELEASED]));
  }

  /** A statement for one lease of one's own; no row: it has to be settled. */
  async #lone<A>(
    statement: string,
    { key, claim, token }: Lease,
    more: readonly string[],
    done: A,
  ): Promise<Map<string, A>> {
    const rows = await this.#statements.rows(statement, [key, claim, String(token), ...more]);
    return rows.length === 0 ? new Map<string, A>() : new Map([[key, done]]);
  }

  /** Columns are the parameters of a batch. */
  async #batch(statement: string, columns: readonly (readonly string[])[]): Promise<readonly Row[]> {
    if (columns[0]?.length === 0) return [];
    const rows = await this.#statements.rows(statement, this.#statements.batch(columns));
    // A database may answer a row that it left as it was.
    return rows.filter((row) => row['untouched'] !== 't');
  }
}

/** What names a lease. */
interface Lease {
  readonly key: string;
  readonly claim: string;
  readonly token: bigint;
}

function names(leases: readonly Lease[]): readonly (readonly string[])[] {
  return [
    leases.map(({ key }) => key),
    leases.map(({ claim }) => claim),
    leases.map(({ token }) => String(token)),
  ];
}

/** Whether nobody had the key, so that the statement made a row for it. */
function wasMade(row: Row): boolean {
  return row['made'] === 't';
}
