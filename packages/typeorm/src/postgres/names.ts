/** Names as they stand in statements of Postgres: quoted, because a schema and a prefix may be anybody's words. */
import { createHash } from 'node:crypto';
import type { TableNames } from '../tables.js';

/** Quoted names, with the schema where one was named. */
export interface PostgresTables {
  readonly lock: string;
  readonly entry: string;
  readonly version: string;
  /** The sequence once more, as a text inside quotes. */
  readonly versionName: string;
  readonly run: string;
  readonly runEvent: string;
  readonly task: string;
  readonly node: string;
  readonly fence: string;
}

/** The names as they stand in statements. */
export function postgresTables(names: TableNames, schema: string | undefined): PostgresTables {
  const place = schema === undefined ? '' : `"${schema.replaceAll('"', '""')}".`;
  const quoted = (name: string): string => `${place}"${name}"`;
  return {
    lock: quoted(names.lock),
    entry: quoted(names.entry),
    version: quoted(names.version),
    versionName: quoted(names.version).replaceAll("'", "''"),
    run: quoted(names.run),
    runEvent: quoted(names.runEvent),
    task: quoted(names.task),
    node: quoted(names.node),
    fence: quoted(names.fence),
  };
}

/** The channel of a session: what `settle` in `statements/postgres-locks.ts` sends to. */
export function channelOf(session: string): string {
  return `guard_${createHash('sha256').update(session).digest('hex').slice(0, 32)}`;
}
