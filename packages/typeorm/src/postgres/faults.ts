/** What errors of Postgres mean, by their SQLSTATE: what is worth sending again, and what says what to do. */
import { GuardError } from '@guard/core';
import { schemaMissing, type TablesPlace } from '../schema-missing.js';

/** The SQLSTATE of an error that the server answered; `undefined` for any other error. */
export function sqlState(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  const answered = typeof code === 'string' && typeof severity === 'string';
  return answered && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Rolled back for the sake of another transaction: serialization failure, deadlock, a lock not to be had in time. */
export function isTransient(error: unknown): boolean {
  return ['40001', '40P01', '55P03'].includes(sqlState(error) ?? '');
}

/** Not carried out: the prepared statement is not there, is there already, or does not fit its tables any more. */
export function isUnprepared(error: unknown): boolean {
  const state = sqlState(error) ?? '';
  if (state === '0A000') return /cached plan/.test(String(error));
  return state === '26000' || state === '42P05';
}

/** Whether a connection is of no use any more: it broke, or the server ends it. */
export function endsConnection(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || state.startsWith('57P') || state.startsWith('08');
}

/** Whether a connection of the pool says what the server as a whole does not: a role or a session that only reads. */
export function contradicts(error: unknown): boolean {
  // A server that takes over, or that lost its place, is told apart by a new connection.
  return sqlState(error) === '25006';
}

/** Whether the server says that the user may not do it. */
export function isForbidden(error: unknown): boolean {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  return [error, cause].some((one) => sqlState(one) === '42501');
}

/** The error itself, or one that says what to do about it. */
export function explained(error: unknown, where: TablesPlace): unknown {
  const { place } = where;
  switch (sqlState(error)) {
    case '22P05':
      return isUntranslatable(error) ? otherEncoding(error, place) : error;
    case '42P01':
    case '42703':
    case '3F000':
      return schemaMissing(error, where, 'its user has no USAGE on their schema');
    case '42501':
      return forbidden(error, place);
    case '25006':
      return new GuardError(
        'unavailable',
        `${place} takes no writes: it is a replica, or the session is read-only; Guard needs the primary server`,
        { cause: error },
      );
    default:
      return error;
  }
}

/** The same for a transaction of the application, which may be on another server than the place names. */
export function explainedInTransaction(error: unknown, where: TablesPlace): unknown {
  if (sqlState(error) !== '25006') return explained(error, where);
  return new GuardError(
    'unavailable',
    `this transaction takes no writes: it is on a replica, as that of a queryRunner with mode 'slave', or read-only; ` +
      `Guard needs one that writes to ${where.place}`,
    { cause: error },
  );
}

/** Whether the encoding of the database lacks a character. In which language the server says it is a setting of its own. */
function isUntranslatable(error: unknown): boolean {
  return (error as { readonly routine?: unknown }).routine === 'report_untranslatable_char';
}

function otherEncoding(error: unknown, place: string): GuardError {
  const said = error instanceof Error ? error.message : String(error);
  return new GuardError(
    'invalid-argument',
    `dataSource: ${place} is not encoded in UTF8, and lacks a character: @guard/typeorm needs a database in UTF8 (${said})`,
    { cause: error },
  );
}

/** Says which right is missing. In which language the server says it is a setting of its own. */
function forbidden(error: unknown, place: string): GuardError {
  const said = error instanceof Error ? error.message : String(error);
  const [, kind, name] = /permission denied for (schema|sequence) (.+)$/.exec(said) ?? [];
  const message =
    kind === undefined
      ? `the user of the data source may not use the tables of @guard/typeorm in ${place}: grant it ` +
        `SELECT, INSERT, UPDATE and DELETE on them, and USAGE on their sequences and their schema (${said})`
      : `the user of the data source may not use the ${kind} ${name} in ${place}: grant it USAGE on the ${kind} ${name}`;
  return new GuardError('unavailable', message, { cause: error });
}
