/** Locks, state and runs on Postgres: the parts of a server's backends, with the statements of this dialect. */
import { systemClock, systemRandom, type LockBackend, type RunStore, type StateStore } from '@guard/core';
import type { PostgresTarget } from '../dialect.js';
import type { TypeormTableOptions } from '../options.js';
import { placeName } from '../place-name.js';
import { tablesPlace } from '../schema-missing.js';
import { ServerLocks } from '../server/lock-backend.js';
import { ServerRuns } from '../server/run-store.js';
import { ServerState } from '../server/state-store.js';
import { StatementPool } from '../server/statement-pool.js';
import { lockStatements } from '../statements/postgres-locks.js';
import { runStatements } from '../statements/postgres-runs.js';
import { stateStatements } from '../statements/postgres-state.js';
import { tableNames } from '../tables.js';
import { postgresTables } from './names.js';
import { PgConnections } from './connections.js';
import { Notices } from './notices.js';

/** Locks with messages to those who wait. Nothing is asked of the server for it. */
export function postgresLocks(target: PostgresTarget, options: TypeormTableOptions): LockBackend {
  const { name, statements, tables, clock, random } = parts(target, options);
  const messages = new Notices({ statements, pool: () => target.driver.master, clock, random });
  return new ServerLocks({ name, statements, sql: lockStatements(tables), clock, messages });
}

/** State. Nothing is asked of the server for it. */
export function postgresState(target: PostgresTarget, options: TypeormTableOptions): StateStore {
  const { name, statements, tables, clock } = parts(target, options);
  return new ServerState({ name, statements, sql: stateStatements(tables), clock });
}

/** Runs. Nothing is asked of the server for it. */
export function postgresRuns(target: PostgresTarget, options: TypeormTableOptions): RunStore {
  const { name, statements, tables } = parts(target, options);
  return new ServerRuns({ name, statements, sql: runStatements(tables) });
}

function parts(target: PostgresTarget, options: TypeormTableOptions) {
  const { place, driver } = target;
  const {
    name = place,
    schema = target.schema,
    prefix,
    clock = systemClock,
    random = systemRandom,
  } = options;
  return {
    ...{ name: placeName(name, { schema, prefix }), clock, random },
    statements: new StatementPool({
      connections: new PgConnections(driver, tablesPlace(place, options, target.schema), clock),
      ...{ place, clock, random },
    }),
    tables: postgresTables(tableNames(options), schema),
  };
}
