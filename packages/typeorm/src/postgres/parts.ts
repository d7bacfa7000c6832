/** What locks, state and runs on Postgres have in common: the pool, the tables, a name and a clock. */
import { systemClock, systemRandom, type Clock, type Random } from '@guard/core';
import type { PostgresTarget } from '../dialect.js';
import type { TypeormTableOptions } from '../options.js';
import { tableNames } from '../tables.js';
import { postgresTables, type PostgresTables } from './names.js';
import { StatementPool } from './pool.js';

/** Parts of a backend on Postgres. */
export interface PostgresParts {
  readonly name: string;
  readonly statements: StatementPool;
  readonly tables: PostgresTables;
  readonly clock: Clock;
  readonly random: Random;
}

/** The parts for a database. Nothing is asked of the server for it. */
export function postgresParts(target: PostgresTarget, options: TypeormTableOptions): PostgresParts {
  const { place, driver, schema } = target;
  const { name = place, clock = systemClock, random = systemRandom } = options;
  return {
    ...{ name, clock, random },
    statements: new StatementPool({ driver, place, clock, random }),
    tables: postgresTables(tableNames(options), options.schema ?? schema),
  };
}
