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
    const columns = [
      claims.map(({ key }) => key),
      claims.map(({ id }) => id),
      claims.map(({ session }) => session),
      claims.map(({ holder }) => holderText(holder)),
      claims.map(({ floor = 0n }) => String(floor)),
      claims.map(({ ttlMs }) => String(microseconds(ttlMs))),
    ];
    const rows = await this.#rows(columns, this.#sql.takeFree, this.#sql.takeFreeBatch);
    return new Map(
      rows.map((row) => [text(row, 'key'), { status: 'granted', token: integer(row, 'token') }]),
    );
  }

  /** Renews live leases. */
  async renewLive(renewals: readonly Renewal[]): Promise<Map<string, RenewAnswer>> {
    const columns = [...names(renewals), renewals.map(({ ttlMs }) => String(microseconds(ttlMs)))];
    const rows = await this.#rows(columns, this.#sql.renewLive, this.#sql.renewLiveBatch);
    return new Map(rows.map((row) => [text(row, 'key'), wasMade(row) ? LOST : RENEWED]));
  }

  /** Gives locks back that nobody waits for. */
  async releaseUnqueued(releases: readonly PlainRelease[]): Promise<Map<string, ReleaseAnswer>> {
    const rows = await this.#rows(names(releases), this.#sql.releaseUnqueued, this.#sql.releaseUnqueuedBatch);
    return new Map(rows.map((row) => [text(row, 'key'), wasMade(row) ? LOST : RELEASED]));
  }

  /** Columns are the parameters of a batch; a single operation has the same as plain values. */
  async #rows(
    columns: readonly (readonly string[])[],
    single: string,
    batch: string,
  ): Promise<readonly Row[]> {
    const count = columns[0]?.length ?? 0;
    if (count === 0) return [];
    const rows =
      count > 1
        ? await this.#statements.rows(batch, this.#statements.batch(columns))
        : await this.#statements.rows(
            single,
            columns.map(([value]) => value!),
          );
    // A database may answer a row that it left as it was.
    return rows.filter((row) => row['untouched'] !== 't');
  }
}

function names(
  leases: readonly { readonly key: string; readonly claim: string; readonly token: bigint }[],
): readonly (readonly string[])[] {
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
