/** Rows of the lock tables, as the backend uses them. */
import type { Holder } from '@guard/core';
import type { Lifetime } from '../lifetime.js';
import { count, integer, text, textOrNull, type Row } from '../row.js';

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

/** The lock of a row. */
export function lockRow(row: Row): LockRow {
  const run = textOrNull(row, 'run');
  return {
    key: text(row, 'key'),
    claim: text(row, 'claim'),
    token: integer(row, 'token'),
    session: text(row, 'session'),
    holder: { label: text(row, 'label'), ...(run === null ? {} : { run }) },
    ...lifetime(row),
  };
}

/** The ticket of a row. */
export function ticketRow(row: Row): TicketRow {
  return {
    id: integer(row, 'id'),
    claim: text(row, 'claim'),
    session: text(row, 'session'),
    label: text(row, 'label'),
    run: textOrNull(row, 'run'),
    floor: integer(row, 'floor'),
    ticketTtlMs: count(row, 'ticket_ttl'),
    ...lifetime(row),
  };
}

/** What one look showed. */
export function lookRow(row: Row): Look {
  const lock = lockRow(row);
  const givenUp = integer(row, 'given_up') === 1n;
  if (row['ticket'] === null) return { lock, givenUp, ahead: 0 };
  return {
    lock,
    givenUp,
    ahead: count(row, 'ahead'),
    ticket: {
      boot: text(row, 'ticket_boot'),
      since: count(row, 'ticket_since'),
      deadline: count(row, 'ticket_deadline'),
      ticketTtlMs: count(row, 'ticket_ttl'),
      sessionDeadline: count(row, 'session_deadline'),
    },
  };
}

/** The columns of a limited life. */
export function lifetime(row: Row): Lifetime {
  return { boot: text(row, 'boot'), since: count(row, 'since'), deadline: count(row, 'deadline') };
}
