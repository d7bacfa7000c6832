/** What Guard writes inside a transaction of the application, as statements of its database. */
import type { RunEvent, RunRecord } from '@guard/core';
import type { Target } from './dialect.js';
import { explained } from './postgres/faults.js';
import { postgresTables } from './postgres/names.js';
import { moveValues } from './postgres/run-values.js';
import { explainMissing } from './schema-missing.js';
import { runColumns, type RowVersion } from './sqlite/run-rows.js';
import * as postgresFence from './statements/postgres-fence.js';
import * as postgresRuns from './statements/postgres-runs.js';
import * as sqliteFence from './statements/sqlite-fence.js';
import * as sqliteRuns from './statements/sqlite-runs.js';
import { tableNames, type TableOptions } from './tables.js';

/** A statement with its parameters. */
export interface Sent {
  readonly statement: string;
  readonly parameters: readonly unknown[];
  /** It follows one that has settled the matter, and answers no row. */
  readonly isSure?: boolean;
}

/** The statements for one database. */
export interface TransactionWrites {
  /** A row: nobody with a larger token was here before. */
  passFence(resource: string, token: bigint): Sent;
  readFence(resource: string): Sent;
  /** One after the other. No row from one that is not sure: the record has moved on. */
  move(namespace: string, version: RowVersion, next: RunRecord, event: RunEvent): readonly Sent[];
  /** The error itself, or one that says what to do about it. */
  explained(cause: unknown): unknown;
}

/** The statements for a database. */
export function writesFor(target: Target, options: TableOptions): TransactionWrites {
  switch (target.type) {
    case 'postgres':
      return onPostgres(options.schema ?? target.schema, target.place, options);
    case 'sqlite':
      return onSqlite(target.file, options);
  }
}

function onPostgres(schema: string | undefined, place: string, options: TableOptions): TransactionWrites {
  const tables = postgresTables(tableNames(options), schema);
  const fences = postgresFence.fenceStatements(tables);
  const runs = postgresRuns.runStatements(tables);
  return {
    passFence: (resource, token) => ({ statement: fences.pass, parameters: [resource, String(token)] }),
    readFence: (resource) => ({ statement: fences.read, parameters: [resource] }),
    move: (namespace, version, next, event) => [
      { statement: runs.move, parameters: moveValues(namespace, version, next, event) },
    ],
    explained: (cause) => explained(cause, place),
  };
}

function onSqlite(file: string, options: TableOptions): TransactionWrites {
  const tables = tableNames(options);
  const fences = sqliteFence.fenceStatements(tables);
  const runs = sqliteRuns.runStatements(tables);
  return {
    passFence: (resource, token) => ({ statement: fences.pass, parameters: [resource, token] }),
    readFence: (resource) => ({ statement: fences.read, parameters: [resource] }),
    move: (namespace, { seq, version }, next, event) => {
      const { writeId, atMs, what, from, to } = event;
      const place = [namespace, next.task, next.key, seq, version];
      return [
        { statement: runs.move, parameters: [...runColumns(next), ...place] },
        {
          statement: runs.addEvent,
          parameters: [seq, writeId, atMs, what, from, to, JSON.stringify(event)],
          isSure: true,
        },
      ];
    },
    explained: (cause) => explainMissing(cause, file),
  };
}
