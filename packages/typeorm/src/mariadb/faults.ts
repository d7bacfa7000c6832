/** What errors of MariaDB mean, by their number: what is worth sending again, and what says what to do. */
import { GuardError } from '@guard/core';
import { schemaMissing, type TablesPlace } from '../schema-missing.js';

/** The number of an error that the server answered; `undefined` for any other error. */
export function errorNumber(error: unknown): number | undefined {
  const { errno, sqlState } = (error ?? {}) as { readonly errno?: unknown; readonly sqlState?: unknown };
  return typeof errno === 'number' && errno > 0 && typeof sqlState === 'string' ? errno : undefined;
}

/** The connection came back to its pool within a transaction: the answer to the zone that statements have then. */
const WITHIN = 1298;
/**
 * Rolled back for the sake of another transaction (deadlock, a lock not to be had in time, a row that changed), or not
 * begun: the prepared statement is not there, or does not fit its tables any more, or this is no connection for it.
 */
const TRANSIENT: readonly (number | undefined)[] = [1213, 1205, 1020, 1243, 1615, WITHIN];
/** The server ends the connection. */
const ENDS: readonly (number | undefined)[] = [1053, 1184, 1927];
/** The server, or the session, takes no writes. The first is the answer to what the statements' `writable` leaves empty. */
const READ_ONLY: readonly (number | undefined)[] = [1048, 1290, 1792, 1836];
const MISSING: readonly (number | undefined)[] = [1054, 1146];
const FORBIDDEN: readonly (number | undefined)[] = [1044, 1142, 1143, 1227];

/** Whether a server does not know a setting that every MariaDB has. */
export function isForeign(error: unknown): boolean {
  return errorNumber(error) === 1193;
}

/** Whether nothing was carried out, and sending it again helps. */
export function isTransient(error: unknown): boolean {
  return TRANSIENT.includes(errorNumber(error));
}

/**
 * Whether a connection is of no use any more: it broke, the server ends it, it reaches one that only reads, or it has a
 * transaction open that somebody forgot.
 */
export function breaks(error: unknown): boolean {
  const number = errorNumber(error);
  return number === undefined || number === WITHIN || ENDS.includes(number) || READ_ONLY.includes(number);
}

/** Whether the server says that the user may not do it. */
export function isForbidden(error: unknown): boolean {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  return [error, cause].some((one) => FORBIDDEN.includes(errorNumber(one)));
}

/** The error itself, or one that says what to do about it. */
export function explained(error: unknown, where: TablesPlace): unknown {
  const { place } = where;
  const number = errorNumber(error);
  if (number === undefined) return error;
  if (MISSING.includes(number)) return schemaMissing(error, where);
  if (READ_ONLY.includes(number)) return readOnly(place, error);
  if (!FORBIDDEN.includes(number)) return error;
  return new GuardError(
    'unavailable',
    `the user of the data source may not use the tables of @guard/typeorm in ${place}: grant it ` +
      `SELECT, INSERT, UPDATE and DELETE on them (${error instanceof Error ? error.message : String(error)})`,
    { cause: error },
  );
}

/** Says that a server takes no writes. */
export function readOnly(place: string, cause?: unknown): GuardError {
  return new GuardError(
    'unavailable',
    `${place} takes no writes: it is a replica, or the session is read-only; Guard needs the primary server`,
    cause === undefined ? {} : { cause },
  );
}
