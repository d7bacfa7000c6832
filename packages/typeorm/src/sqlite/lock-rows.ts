/** Rows of the lock tables as statements answer them, with every integer as `bigint`, and as the backend uses them. */
import type { Holder } from '@guard/core';
import type { Lifetime } from '../lifetime.js';

/** A held key, or one whose lease ran out unmet. */
export interface LockRow extends Lifetime {
  readonly key: string;
  readonly claim: string;
  readonly token: bigint;
  readonly session: string;
  readonly holder: Holder;
}

/** A claim that waits. */
export interface TicketRow extends Lifetime {
  readonly id: bigint;
  readonly claim: string;
  readonly session: string;
  readonly label: string;
  readonly run: string | null;
  readonly floor: bigint;
  readonly ticketTtlMs: number;
}

/** What `LOOK` answers. */
export interface Look {
  readonly lock: LockRow;
  readonly givenUp: boolean;
  /** The claim's own ticket, if it has one. */
  readonly ticket?: Lifetime & { readonly ticketTtlMs: number; readonly sessionDeadline: number };
  readonly ahead: number;
}

/** A row as it comes from the driver. */
export type RawRow = Readonly<Record<string, string | bigint | null>>;

/** The lock of a row. */
export function lockRow(raw: RawRow): LockRow {
  const run = raw['run'];
  return {
    key: raw['key'] as string,
    claim: raw['claim'] as string,
    token: raw['token'] as bigint,
    session: raw['session'] as string,
    holder: { label: raw['label'] as string, ...(typeof run === 'string' ? { run } : {}) },
    ...lifetime(raw),
  };
}

/** The ticket of a row. */
export function ticketRow(raw: RawRow): TicketRow {
  return {
    id: raw['id'] as bigint,
    claim: raw['claim'] as string,
    session: raw['session'] as string,
    label: raw['label'] as string,
    run: raw['run'] as string | null,
    floor: raw['floor'] as bigint,
    ticketTtlMs: Number(raw['ticket_ttl']),
    ...lifetime(raw),
  };
}

/** What one look showed. */
export function lookRow(raw: RawRow): Look {
  const lock = lockRow(raw);
  const givenUp = raw['given_up'] === 1n;
  if (raw['ticket'] === null) return { lock, givenUp, ahead: 0 };
  return {
    lock,
    givenUp,
    ahead: Number(raw['ahead']),
    ticket: {
      boot: raw['ticket_boot'] as string,
      since: Number(raw['ticket_since']),
      deadline: Number(raw['ticket_deadline']),
      ticketTtlMs: Number(raw['ticket_ttl']),
      sessionDeadline: Number(raw['session_deadline']),
    },
  };
}

/** The columns of a limited life. */
export function lifetime(raw: RawRow): Lifetime {
  return { boot: raw['boot'] as string, since: Number(raw['since']), deadline: Number(raw['deadline']) };
}
