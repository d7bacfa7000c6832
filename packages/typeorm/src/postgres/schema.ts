/** Makes Guard's tables in a Postgres database. */
import { GuardError, systemClock, systemRandom } from '@guard/core';
import type { PostgresTarget } from '../dialect.js';
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
 * nothing is missing nothing is done, which a user without the right to make tables may do too. Without a named schema
 * they are looked for as statements find them: a second set, nearer on the search path, would free every lock.
 *
 * @throws GuardError `unavailable`: the database cannot be reached, the schema is not there, or the user may not make
 * tables in it; `invalid-argument`: it is not in UTF8.
 */
export async function createOnPostgres(
  { driver, place }: PostgresTarget,
  names: TableNames,
  schema: string | undefined,
): Promise<void> {
  const statements = new StatementPool({
    connections: new PgConnections(driver, tablesPlace(place), systemClock),
    ...{ place, clock: systemClock, random: systemRandom },
  });
  const failed = `the tables of @guard/typeorm cannot be made in ${place}`;
  let problem: string | undefined;
  try {
    const { statement, parameters } = whatIsThere(names, schema);
    const [there] = await statements.rows(statement, parameters, PATIENCE_MS);
    checkEncoding(there!, place);
    const missing = missingTables(there!, names);
    if (missing === undefined) return;
    problem = missing.problem;
    if (problem === undefined) await statements.script(missing.script, PATIENCE_MS);
  } catch (cause) {
    if (cause instanceof GuardError && cause.code === 'invalid-argument') throw cause;
    const reason = isForbidden(cause)
      ? ': the user of the data source does not own those that are there'
      : '';
    throw new GuardError('unavailable', failed + reason, { cause });
  }
  if (problem !== undefined) throw new GuardError('unavailable', `${failed}: ${problem}`);
}

/**
 * The same inside a migration of the application, over its connection and by its own rule for transactions. Whoever
 * makes the tables at the same moment is waited for.
 */
export async function migrateOnPostgres(
  query: (statement: string, parameters?: unknown[]) => Promise<unknown>,
  { place }: Pick<PostgresTarget, 'place'>,
  names: TableNames,
  schema: string | undefined,
): Promise<void> {
  // Before the look: what another one makes is seen once it is there.
  await query(ONE_AT_A_TIME);
  const { statement, parameters } = whatIsThere(names, schema);
  const [there] = (await query(statement, parameters)) as readonly There[];
  checkEncoding(there!, place);
  const missing = missingTables(there!, names);
  if (missing === undefined) return;
  if (missing.problem !== undefined) {
    const failed = `the tables of @guard/typeorm cannot be made in ${place}`;
    throw new GuardError('unavailable', `${failed}: ${missing.problem}`);
  }
  await query(missing.script);
}

/** The row that `WHAT_IS_THERE` answers: all is text, so nobody's parsers change it. */
type There = Readonly<Record<string, unknown>>;

/** Keys and values may have any character, and other encodings lack some. */
function checkEncoding(there: There, place: string): void {
  const encoding = String(there['encoding']);
  if (encoding === 'UTF8') return;
  throw new GuardError(
    'invalid-argument',
    `dataSource: ${place} is encoded in ${encoding}: @guard/typeorm needs a database in UTF8`,
  );
}

function whatIsThere(names: TableNames, schema: string | undefined) {
  const wanted = createTables(names, schema).map(madeBy);
  return { statement: WHAT_IS_THERE, parameters: [schema ?? null, wanted] };
}

/** What makes the missing ones, as one message, or what is in the way of it. `undefined`: nothing is missing. */
function missingTables(
  there: There,
  names: TableNames,
): { readonly script: string; readonly problem: string | undefined } | undefined {
  // The schema is named from here on: one that was made since must not take them in.
  const texts = createTables(names, textOf(there['schema']));
  if (Number(there['count']) === texts.length) return undefined;
  return { script: [ONE_AT_A_TIME, ...texts].join(';\n'), problem: problemIn(there) };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** What a statement that makes something calls it. */
function madeBy(text: string): string {
  return /IF NOT EXISTS\s+(?:"(?:[^"]|"")*"\.)?"([^"]+)"/.exec(text)![1]!;
}

/** Which right is missing where; `undefined`: none. */
function problemIn(there: There): string | undefined {
  const [role, name, schemas] = [String(there['role']), textOf(there['schema']), textOf(there['schemas'])];
  if (schemas !== undefined) {
    return (
      `some are missing, and those that the search path leads to are in several schemas (${schemas}): ` +
      `name the one to use with the option schema, for every node`
    );
  }
  if (name === undefined) {
    return `no schema of the search path is there that ${role} may use: grant it USAGE and CREATE on one, or name one with the option schema`;
  }
  if (there['there'] !== 'true') return `the schema ${name} is not there: create it first`;
  const missing = [
    there['usable'] === 'true' ? [] : ['USAGE'],
    there['open'] === 'true' ? [] : ['CREATE'],
  ].flat();
  if (missing.length === 0) return undefined;
  return (
    `${role} has no ${missing.join(' and no ')} on the schema ${name}: grant it, or let a user who has it make the ` +
    `tables, and grant ${role} USAGE on the schema, SELECT, INSERT, UPDATE and DELETE on the tables, and USAGE on their sequences`
  );
}
