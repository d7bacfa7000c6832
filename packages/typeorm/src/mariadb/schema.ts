/** Makes Guard's tables in a MariaDB database. */
import { GuardError, systemClock, systemRandom } from '@guard/core';
import type { MariadbTarget } from '../dialect.js';
import { StatementPool } from '../server/statement-pool.js';
import { createTables } from '../statements/mariadb-tables.js';
import type { TableNames } from '../tables.js';
import { MysqlConnections } from './connections.js';

/** How long other processes that do the same are waited for. */
const PATIENCE_MS = 30_000;

/**
 * Makes the tables that are not there yet, one by one: no transaction of the server spans two. Each has its indexes from
 * the start, so whoever comes second has nothing to add.
 *
 * @throws GuardError `unavailable`: the database cannot be reached, or the user may not make tables in it.
 */
export async function createOnMariadb({ driver, place }: MariadbTarget, names: TableNames): Promise<void> {
  const statements = new StatementPool({
    connections: new MysqlConnections(driver, place),
    ...{ place, clock: systemClock, random: systemRandom },
  });
  try {
    for (const statement of createTables(names)) await statements.rows(statement, [], PATIENCE_MS);
  } catch (cause) {
    throw new GuardError('unavailable', `the tables of @guard/typeorm cannot be made in ${place}`, { cause });
  }
}
