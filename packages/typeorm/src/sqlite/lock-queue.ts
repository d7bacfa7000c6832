/**
 * What happens to one key inside a write transaction: who holds it, who stands in its queue, and whom it goes to
 * next. Every method runs between `BEGIN IMMEDIATE` and `COMMIT` of the caller, so nothing changes in between.
 */
import { nextToken, type Claim, type Clock } from '@guard/core';
import type { Connection } from '../connection.js';
import type { Lifetimes } from '../lifetime.js';
import { count, integer, text, type Row } from '../row.js';
import * as sql from '../statements/sqlite-locks.js';
import { lifetime, lockRow, ticketRow, type LockRow, type TicketRow } from './lock-rows.js';

/** Where a claim stands after it was queued. */
export interface Place {
  readonly ahead: number;
  /** The ticket was made in this step. */
  readonly fresh: boolean;
}

/** One key at a time, inside a write transaction. */
export class LockQueue {
  readonly #connection: Connection;
  readonly #lifetimes: Lifetimes;
  readonly #clock: Clock;

  constructor(connection: Connection, lifetimes: Lifetimes, clock: Clock) {
    this.#connection = connection;
    this.#lifetimes = lifetimes;
    this.#clock = clock;
  }

  /** Grants a key that has no row; the token, or `undefined`: it has one, or the claim was given up. */
  takeFree(claim: Claim): bigint | undefined {
    const { boot, since, deadline } = this.#lifetimes.lasting(claim.ttlMs);
    const { key, id, session, holder } = claim;
    const row = this.#connection.row(
      sql.TAKE_FREE,
      key,
      id,
      id,
      this.#leastToken(claim.floor),
      session,
      holder.label,
      holder.run ?? null,
      boot,
      since,
      deadline,
    );
    return row === undefined ? undefined : integer(row, 'token');
  }

  /** The key's row with a live lease. Whoever meets an expired lease hands the lock on before anything else. */
  settle(key: string): LockRow | undefined {
    const raw = this.#connection.row(sql.READ_LOCK, key);
    if (raw === undefined) return undefined;
    const row = lockRow(raw);
    return this.leftMs(row) > 0 ? row : this.handOver(key);
  }

  /** Makes the first live ticket the holder, for as long as a ticket lives; or removes the row. */
  handOver(key: string): LockRow | undefined {
    this.#lifetimes.forget(key);
    for (let ticket = this.#firstTicket(key); ticket !== undefined; ticket = this.#firstTicket(key)) {
      this.#connection.run(sql.REMOVE_TICKET, ticket.id);
      if (this.ticketLeftMs(ticket) > 0) return this.#give(key, ticket);
      this.#lifetimes.forget(ticketName(ticket.claim));
    }
    this.#connection.run(sql.REMOVE_LOCK, key);
    return undefined;
  }

  /** Starts the holder's lease anew; a longer one that it has stays (S5). */
  takeAgain(claim: Claim): bigint {
    const { since, deadline } = this.#lifetimes.lasting(claim.ttlMs);
    const { key, id, floor = 0n } = claim;
    return integer(this.#connection.row(sql.TAKE_AGAIN, deadline, since, floor, key, id)!, 'token');
  }

  /** Refreshes the claim's ticket, or makes one. A ticket that died is not revived: it starts again at the end. */
  enqueue(claim: Claim): Place {
    const raw = this.#connection.row(sql.READ_TICKET, claim.key, claim.id);
    const ticket = raw === undefined ? undefined : ticketRow(raw);
    const now = this.#lifetimes.nowMs();
    if (ticket === undefined || this.ticketLeftMs(ticket) <= 0) {
      if (ticket !== undefined) this.#connection.run(sql.REMOVE_TICKET, ticket.id);
      this.#addTicket(claim);
      return { ahead: this.waiting(claim.key) - 1, fresh: true };
    }
    const { boot, since, deadline } = this.#lifetimes.lasting(0);
    this.#connection.run(sql.REFRESH_TICKETS, since, deadline, claim.key, claim.session, boot, now);
    const row = this.#connection.row(sql.COUNT_AHEAD, claim.key, now, ticket.id)!;
    return { ahead: count(row, 'ahead'), fresh: false };
  }

  /** Takes the claim out of the queue; whether it was there. */
  leaveQueue(key: string, claim: string): boolean {
    this.#lifetimes.forget(ticketName(claim));
    return this.#connection.run(sql.REMOVE_TICKET_OF, key, claim) > 0;
  }

  /** Whether the claim was given up. A tombstone that has ended is removed. */
  isGivenUp(claim: string): boolean {
    const raw = this.#connection.row(sql.READ_TOMBSTONE, claim);
    if (raw === undefined) return false;
    if (this.tombstoneLeftMs(raw) > 0) return true;
    this.#connection.run(sql.REMOVE_TOMBSTONE, claim);
    return false;
  }

  /** Refuses the claim's acquires for `ms`; leaving a tombstone again never shortens that. */
  leaveTombstone(claim: string, ms: number): void {
    const { boot, since, deadline } = this.#lifetimes.lasting(ms);
    this.#connection.run(sql.LEAVE_TOMBSTONE, claim, boot, since, deadline);
  }

  /** How many live tickets a key has. */
  waiting(key: string): number {
    const { boot } = this.#lifetimes;
    return count(this.#connection.row(sql.COUNT_TICKETS, key, boot, this.#lifetimes.nowMs())!, 'waiting');
  }

  /** How long the lease lasts; 0 or less: it is over. */
  leftMs(row: LockRow): number {
    return this.#lifetimes.leftMs(row.key, `${row.boot} ${row.token} ${row.since}`, row);
  }

  /** How long the ticket lives; 0 or less: it is dead. */
  ticketLeftMs(ticket: TicketRow): number {
    return this.#lifetimes.leftMs(ticketName(ticket.claim), String(ticket.since), ticket);
  }

  /** How long the tombstone stands. */
  tombstoneLeftMs(row: Row): number {
    return this.#lifetimes.leftMs(`tombstone ${text(row, 'claim')}`, String(row['since']), lifetime(row));
  }

  #firstTicket(key: string): TicketRow | undefined {
    const raw = this.#connection.row(sql.FIRST_TICKET, key);
    return raw === undefined ? undefined : ticketRow(raw);
  }

  #give(key: string, ticket: TicketRow): LockRow {
    const { claim, session, label, run } = ticket;
    const life = this.#lifetimes.lasting(ticket.ticketTtlMs);
    const row = this.#connection.row(
      sql.HAND_OVER,
      claim,
      this.#leastToken(ticket.floor),
      session,
      label,
      run,
      life.boot,
      life.since,
      life.deadline,
      key,
    );
    const token = integer(row!, 'token');
    return { key, claim, token, session, holder: { label, ...(run === null ? {} : { run }) }, ...life };
  }

  #addTicket(claim: Claim): void {
    const { boot, since, deadline } = this.#lifetimes.lasting(claim.ticketTtlMs);
    const { key, id, session, holder, floor, ticketTtlMs } = claim;
    this.#connection.run(
      sql.ADD_TICKET,
      key,
      session,
      holder.label,
      holder.run ?? null,
      id,
      floor ?? 0n,
      ticketTtlMs,
      boot,
      since,
      deadline,
    );
  }

  /** Tokens grow by the statements; the wall clock keeps them growing where the file was lost (S2). */
  #leastToken(floor: bigint | undefined): bigint {
    return nextToken(0n, this.#clock.now().wallMs, floor);
  }
}

function ticketName(claim: string): string {
  return `ticket ${claim}`;
}
