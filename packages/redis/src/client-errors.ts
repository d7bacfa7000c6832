/** What a client says where no repetition helps, or where its words do not tell what to do. */
import { GuardError } from '@guard/core';
import { namingRights } from './rights.js';

const SLOT_MOVES =
  'a slot of the cluster is being moved (TRYAGAIN), and its locks and entries wait until the move is over; ' +
  'one that was interrupted is ended by: redis-cli --cluster fix';
const SUBSCRIBER = 'the client is in subscriber mode: give Guard a client that nobody subscribes by';
const MONITOR = 'the client is in monitor mode: give Guard a client that nobody monitors by';

/** For a node-redis client that was not connected yet when it was first used, or that was ended before. */
export const NOT_CONNECTED =
  'the client is not connected: await client.connect() before the first call that Guard makes with it';

/**
 * The error in words that tell what to do. While a slot moves, members answer only where they have all keys of a script,
 * and of a lock most do not exist; libraries follow them to and fro for a while. A client of another mode is a mistake
 * of the application, and waiting does not mend it.
 */
export function inWords(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const said = [error, error.cause].map((one) => (one instanceof Error ? one.message : '')).join('\n');
  if (/\bTRYAGAIN\b|(^|: )(ASK|MOVED) \d/m.test(said)) {
    return new GuardError('unavailable', SLOT_MOVES, { cause: error });
  }
  if (/only \(P\|S\)SUBSCRIBE|in subscriber mode/.test(said)) return refused(SUBSCRIBER, error);
  if (/Replica can't interact with the keyspace/.test(said)) return refused(MONITOR, error);
  return namingRights(error);
}

/** @throws GuardError `invalid-argument`: a client that says of itself that it can carry out no script. */
export function checkMode(mode: string | undefined): void {
  if (mode === 'subscriber') throw refused(SUBSCRIBER);
  if (mode === 'monitor') throw refused(MONITOR);
}

function refused(message: string, cause?: Error): GuardError {
  return new GuardError('invalid-argument', message, cause === undefined ? {} : { cause });
}
