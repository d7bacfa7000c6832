/** What Guard writes inside a transaction of the application, as statements of its database. */
import type { PostgresTarget, Target } from './dialect.js';
import { onMariadb } from './mariadb/transaction-writes.js';
import { explainedInTransaction } from './postgres/faults.js';
import { postgresTables } from './postgres/names.js';
import { createValues, moveValues } from './server/run-values.js';
import { explainMissing, tablesPlace } from './schema-missing.js';
import { runColumns } from './run-rows.js';
import * as postgresFence from './statements/postgres-fence.js';
import * as postgresRuns from './statements/postgres-runs.js';
import * as sqliteFence from './statements/sqlite-fence.js';
import * as sqliteRuns from './statements/sqlite-runs.js';
import { tableNames, type TableOptions } from './tables.js';
import type { TransactionWrites } from './transaction-port.js';

/** The statements for a database. */
export function writesFor(target: Target, options: TableOptions): TransactionWrites {
  switch (target.type) {
    case 'postgres':
      return onPostgres(target, options);
    case 'mariadb':
      return onMariadb(target, options);
    case 'sqlite':
      return onSqlite(target.file, options);
  }
}

function onPostgres({ place, schema }: PostgresTarget, options: TableOptions): TransactionWrites {
  const where = tablesPlace(place, options, schema);
  const tables = postgresTables(tableNames(options), options.schema ?? schema);
  const fences = postgresFence.fenceStatements(tables);
  const runs = postgresRuns.runStatements(tables);
  return {
    askTime: { statement: runs.now, parameters: [] },
    passFence: (resource, token) => ({ statement: fences.pass, parameters: [resource, String(token)] }),
    readFence: (resource) => ({ statement: fences.read, parameters: [resource] }),
    create: (namespace, run, event) => ({
      statement: runs.create,
      parameters: createValues(namespace, run, event),
    }),
    move: (namespace, version, next, event) => ({
      statement: runs.move,
      parameters: moveValues(namespace, version, next, event),
    }),
    line: () => undefined,
    read: (namespace, { task, key }) => ({ statement: runs.read, parameters: [namespace, task, key] }),
    explained: (cause) => explainedInTransaction(cause, where),
  };
}

function onSqlite(file: string, options: TableOptions): TransactionWrites {
  const where = tablesPlace(file, { prefix: options.prefix });
  const tables = tableNames(options);
  const fences = sqliteFence.fenceStatements(tables);
  const runs = sqliteRuns.runStatements(tables);
  return {
    passFence: (resource, token) => ({ statement: fences.pass, parameters: [resource, token] }),
    readFence: (resource) => ({ statement: fences.read, parameters: [resource] }),
    create: (namespace, run) => ({
      statement: runs.create,
      parameters: [namespace, run.task, run.key, run.id, ...runColumns(run)],
    }),
    move: (namespace, { seq, version }, next) => ({
      statement: runs.move,
      parameters: [...runColumns(next), namespace, next.task, next.key, seq, version],
    }),
    line: (seq, event) => {
      const { writeId, atMs, what, from, to } = event;
      return {
        statement: runs.addEvent,
        parameters: [seq, writeId, atMs, what, from, to, JSON.stringify(event)],
      };
    },
    read: (namespace, { task, key }) => ({ statement: runs.read, parameters: [namespace, task, key] }),
    explained: (cause) => explainMissing(cause, where),
  };
}
