/** Makes Guard's tables in a MariaDB database. */
import { GuardError, systemClock, systemRandom } from '@guard/core';
import type { MariadbTarget } from '../dialect.js';
import { count, type Row } from '../row.js';
import { tablesPlace } from '../schema-missing.js';
import { StatementPool } from '../server/statement-pool.js';
import type { Value } from '../server/statements.js';
import { WHAT_IS_THERE } from '../statements/mariadb-schema.js';
import { createTables } from '../statements/mariadb-tables.js';
import type { TableNames } from '../tables.js';
import { MysqlConnections } from './connections.js';
import { isForbidden } from './faults.js';

/** How long a connection, and other processes that do the same, are waited for. */
const PATIENCE_MS = 30_000;

/**
 * Makes the tables that are not there yet, one by one: no transaction of the server spans two. Each has its indexes from
 * the start, so whoever comes second has nothing to add. Where nothing is missing nothing is done, which a user without
 * the right to make tables may do too.
 *
 * @throws GuardError `unavailable`: the database cannot be reached, or the user may not make tables in it.
 */
export async function createOnMariadb({ driver, place }: MariadbTarget, names: TableNames): Promise<void> {
  const statements = new StatementPool({
    connections: new MysqlConnections(driver, tablesPlace(place)),
    ...{ place, clock: systemClock, random: systemRandom },
  });
  const endMs = systemClock.now().monoMs + PATIENCE_MS;
  const rows = (text: string, values: readonly Value[] = []): Promise<readonly Row[]> =>
    statements.rows(text, values, endMs - systemClock.now().monoMs);
  const texts = createTables(names);
  let role = 'the user of the data source';
  try {
    const [there] = await rows(WHAT_IS_THERE, [texts.map(madeBy).join()]);
    if (there !== undefined && count(there, 'count') === texts.length) return;
    role = String(there?.['role'] ?? role);
    for (const text of texts) await rows(text);
  } catch (cause) {
    const failed = `the tables of @guard/typeorm cannot be made in ${place}`;
    const reason = isForbidden(cause)
      ? `: ${role} has no CREATE on the database: grant it, or let a user who has it make the tables, and grant ` +
        `${role} SELECT, INSERT, UPDATE and DELETE on them`
      : '';
    throw new GuardError('unavailable', failed + reason, { cause });
  }
}

/** What a statement that makes a table calls it. */
function madeBy(text: string): string {
  return /IF NOT EXISTS `([^`]+)`/.exec(text)![1]!;
}
