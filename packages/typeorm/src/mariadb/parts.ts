/** Locks, state and runs on MariaDB: the parts of a server's backends, with the statements of this dialect. */
import { systemClock, systemRandom, type LockBackend, type RunStore, type StateStore } from '@guard/core';
import type { MariadbTarget } from '../dialect.js';
import type { TypeormTableOptions } from '../options.js';
import { placeName } from '../place-name.js';
import { tablesPlace } from '../schema-missing.js';
import { ServerLocks } from '../server/lock-backend.js';
import { ServerRuns } from '../server/run-store.js';
import { ServerState } from '../server/state-store.js';
import { StatementPool } from '../server/statement-pool.js';
import { lockStatements } from '../statements/mariadb-locks.js';
import { runStatements } from '../statements/mariadb-runs.js';
import { stateStatements } from '../statements/mariadb-state.js';
import { tableNames } from '../tables.js';
import { MysqlConnections } from './connections.js';
import { mariadbTables } from './names.js';

/** Locks; waiters poll. Nothing is asked of the server for it. */
export function mariadbLocks(target: MariadbTarget, options: TypeormTableOptions): LockBackend {
  const { name, statements, tables, clock } = parts(target, options);
  return new ServerLocks({ name, statements, sql: lockStatements(tables), clock });
}

/** State. Nothing is asked of the server for it. */
export function mariadbState(target: MariadbTarget, options: TypeormTableOptions): StateStore {
  const { name, statements, tables, clock } = parts(target, options);
  return new ServerState({ name, statements, sql: stateStatements(tables), clock });
}

/** Runs. Nothing is asked of the server for it. */
export function mariadbRuns(target: MariadbTarget, options: TypeormTableOptions): RunStore {
  const { name, statements, tables } = parts(target, options);
  return new ServerRuns({ name, statements, sql: runStatements(tables) });
}

function parts(target: MariadbTarget, options: TypeormTableOptions) {
  const { place, driver } = target;
  const { name = place, prefix, clock = systemClock, random = systemRandom } = options;
  return {
    ...{ name: placeName(name, { prefix }), clock },
    statements: new StatementPool({
      connections: new MysqlConnections(driver, tablesPlace(place, { prefix })),
      ...{ place, clock, random },
    }),
    tables: mariadbTables(tableNames(options)),
  };
}
