/**
 * Removes what nobody met: leases, tickets and tombstones that ended. It walks the tables a short stretch at a time,
 * inside a write transaction, so that it judges and removes in one step: a row that is alive, or became alive again,
 * stays (S3).
 */
import type { Connection } from '../connection.js';
import * as sql from '../statements/sqlite-locks.js';
import type { LockQueue } from './lock-queue.js';
import { lockRow, ticketRow, type RawRow } from './lock-rows.js';

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
    const rows = this.#connection.exact(sql.WALK_LOCKS).all(this.#afterLock, STRETCH) as RawRow[];
    for (const row of rows.map(lockRow)) if (this.#queue.leftMs(row) <= 0) this.#queue.handOver(row.key);
    this.#afterLock = rows.length < STRETCH ? '' : (rows.at(-1)!['key'] as string);
  }

  #walkTickets(): void {
    const rows = this.#connection.exact(sql.WALK_TICKETS).all(this.#afterTicket, STRETCH) as RawRow[];
    for (const ticket of rows.map(ticketRow)) {
      if (this.#queue.ticketLeftMs(ticket) <= 0) this.#connection.statement(sql.REMOVE_TICKET).run(ticket.id);
    }
    this.#afterTicket = rows.length < STRETCH ? 0n : (rows.at(-1)!['id'] as bigint);
  }

  #walkTombstones(): void {
    const rows = this.#connection.exact(sql.WALK_TOMBSTONES).all(this.#afterTombstone, STRETCH) as RawRow[];
    for (const row of rows) this.#queue.isGivenUp(row['claim'] as string);
    this.#afterTombstone = rows.length < STRETCH ? '' : (rows.at(-1)!['claim'] as string);
  }
}
