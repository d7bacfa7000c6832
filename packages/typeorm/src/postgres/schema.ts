/** Makes Guard's tables in a Postgres database. */
import { GuardError, systemClock, systemRandom } from '@guard/core';
import type { PostgresTarget } from '../dialect.js';
import { count, type Row } from '../row.js';
import { tablesPlace } from '../schema-missing.js';
import { StatementPool } from '../server/statement-pool.js';
import { WHAT_IS_THERE } from '../statements/postgres-schema.js';
import { createTables, ONE_AT_A_TIME } from '../statements/postgres-tables.js';
import type { TableNames } from '../tables.js';
import { PgConnections } from './connections.js';
import { isForbidden } from './faults.js';

/** How long a connection, and other processes that do the same, are waited for. */
const PATIENCE_MS = 30_000;

/**
 * Makes the tables that are not there yet, all or none: one message with many statements is one transaction. Where
 * nothing is missing nothing is done, which a user without the right to make tables may do too.
 *
 * @throws GuardError `unavailable`: the database cannot be reached, the schema is not there, or the user may not make
 * tables in it.
 */
export async function createOnPostgres(
  { driver, place }: PostgresTarget,
  names: TableNames,
  schema: string | undefined,
): Promise<void> {
  const statements = new StatementPool({
    connections: new PgConnections(driver, tablesPlace(place)),
    ...{ place, clock: systemClock, random: systemRandom },
  });
  const failed = `the tables of @guard/typeorm cannot be made in ${place}`;
  const texts = createTables(names, schema);
  const wanted = texts.map(madeBy);
  let problem: string | undefined;
  try {
    const [there] = await statements.rows(WHAT_IS_THERE, [schema ?? null, wanted], PATIENCE_MS);
    if (there !== undefined && count(there, 'count') === wanted.length) return;
    problem = there && problemIn(there);
    if (problem === undefined) await statements.script([ONE_AT_A_TIME, ...texts].join(';\n'), PATIENCE_MS);
  } catch (cause) {
    const reason = isForbidden(cause)
      ? ': the user of the data source does not own those that are there'
      : '';
    throw new GuardError('unavailable', failed + reason, { cause });
  }
  if (problem !== undefined) throw new GuardError('unavailable', `${failed}: ${problem}`);
}

/** What a statement that makes something calls it. */
function madeBy(text: string): string {
  return /IF NOT EXISTS\s+(?:"(?:[^"]|"")*"\.)?"([^"]+)"/.exec(text)![1]!;
}

/** Which right is missing where; `undefined`: none. */
function problemIn(there: Row): string | undefined {
  const [role, schema] = [String(there['role']), there['schema']];
  if (schema === null) {
    return `no schema of the search path is there that ${role} may use: grant it USAGE and CREATE on one, or name one with the option schema`;
  }
  const name = String(schema);
  if (there['there'] !== 't') return `the schema ${name} is not there: create it first`;
  const missing = [there['usable'] === 't' ? [] : ['USAGE'], there['open'] === 't' ? [] : ['CREATE']].flat();
  if (missing.length === 0) return undefined;
  return (
    `${role} has no ${missing.join(' and no ')} on the schema ${name}: grant it, or let a user who has it make the ` +
    `tables, and grant ${role} USAGE on the schema, SELECT, INSERT, UPDATE and DELETE on the tables, and USAGE on their sequences`
  );
}
