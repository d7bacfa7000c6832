/** What a user of the server has to be allowed. */

/** The rules of a user who can do all that Guard does; `docs/backend/redis.md` gives the same. */
export const RIGHTS =
  'resetchannels ~guard:* &guard:* +@connection +@scripting +@read +@write +@pubsub +time +wait -@dangerous +info';

/** Some versions say it without a code where a script meets it. */
const NOT_ALLOWED = /NOPERM|The user executing the script can't/;

/** What a script failed by; where the user lacks a right it says which are needed, as the server names one at most. */
export function namingRights(error: unknown): unknown {
  if (!(error instanceof Error) || !NOT_ALLOWED.test(error.message)) return error;
  const needed = `${RIGHTS} (with a key prefix, ~prefix:guard:*; in a cluster also +cluster)`;
  return new Error(`${error.message} - the user of the client needs ${needed}`, { cause: error });
}
