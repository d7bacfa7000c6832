/** Makes Guard's tables in a Postgres database. */
import { GuardError, systemClock, systemRandom } from '@guard/core';
import type { PostgresTarget } from '../dialect.js';
import { createTables, ONE_AT_A_TIME } from '../statements/postgres-tables.js';
import type { TableNames } from '../tables.js';
import { StatementPool } from '../server/statement-pool.js';
import { PgConnections } from './connections.js';

/** How long other processes that do the same are waited for. */
const PATIENCE_MS = 30_000;

/**
 * Makes the tables that are not there yet, all or none: one message with many statements is one transaction.
 *
 * @throws GuardError `unavailable`: the database cannot be reached, or the user may not make tables in it.
 */
export async function createOnPostgres(
  { driver, place }: PostgresTarget,
  names: TableNames,
  schema: string | undefined,
): Promise<void> {
  const statements = new StatementPool({
    connections: new PgConnections(driver, place),
    ...{ place, clock: systemClock, random: systemRandom },
  });
  const all = [ONE_AT_A_TIME, ...createTables(names, schema)].join(';\n');
  try {
    await statements.script(all, PATIENCE_MS);
  } catch (cause) {
    throw new GuardError('unavailable', `the tables of @guard/typeorm cannot be made in ${place}`, { cause });
  }
}
