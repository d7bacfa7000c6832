/**
 * Removes what nobody met: leases, tickets and tombstones that ended. It walks the tables a short stretch at a time,
 * inside a write transaction, so that it judges and removes in one step: a row that is alive, or became alive again,
 * stays (S3).
 */
import type { Connection } from '../connection.js';
import { integer, text } from '../row.js';
import * as sql from '../statements/sqlite-locks.js';
import type { LockQueue } from './lock-queue.js';
import { lockRow, ticketRow } from './lock-rows.js';

/** Rows of each table that one stretch looks at. */
const STRETCH = 64;

/** A walk through the tables of locks. */
export class LockHousekeeping {
  readonly #connection: Connection;
  readonly #queue: LockQueue;
  #afterLock = '';
  #afterTicket = 0n;
  #afterTombstone = '';

  constructor(connection: Connection, queue: LockQueue) {
    this.#connection = connection;
    this.#queue = queue;
  }

  /** Walks one stretch. Runs inside the caller's write transaction. */
  walk(): void {
    this.#walkTickets();
    this.#walkLocks();
    this.#walkTombstones();
  }

  #walkLocks(): void {
    const rows = this.#connection.rows(sql.WALK_LOCKS, this.#afterLock, STRETCH);
    for (const row of rows.map(lockRow)) if (this.#queue.leftMs(row) <= 0) this.#queue.handOver(row.key);
    this.#afterLock = rows.length < STRETCH ? '' : text(rows.at(-1)!, 'key');
  }

  #walkTickets(): void {
    const rows = this.#connection.rows(sql.WALK_TICKETS, this.#afterTicket, STRETCH);
    for (const ticket of rows.map(ticketRow)) {
      if (this.#queue.ticketLeftMs(ticket) <= 0) this.#connection.run(sql.REMOVE_TICKET, ticket.id);
    }
    this.#afterTicket = rows.length < STRETCH ? 0n : integer(rows.at(-1)!, 'id');
  }

  #walkTombstones(): void {
    const rows = this.#connection.rows(sql.WALK_TOMBSTONES, this.#afterTombstone, STRETCH);
    for (const row of rows) this.#queue.isGivenUp(text(row, 'claim'));
    this.#afterTombstone = rows.length < STRETCH ? '' : text(rows.at(-1)!, 'claim');
  }
}
