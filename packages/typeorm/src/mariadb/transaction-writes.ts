/** What Guard writes inside a transaction of the application on MariaDB. */
import { createHash } from 'node:crypto';
import type { RunRecord } from '@guard/core';
import type { MariadbTarget } from '../dialect.js';
import { runColumns } from '../run-rows.js';
import { tablesPlace } from '../schema-missing.js';
import { plain } from '../server/run-values.js';
import type { Value } from '../server/statements.js';
import { ASK_TIME_WITHIN } from '../statements/mariadb-runs.js';
import { transactionStatements } from '../statements/mariadb-transaction.js';
import { tableNames, type TableOptions } from '../tables.js';
import type { TransactionWrites } from '../transaction-port.js';
import { explained } from './faults.js';
import { mariadbTables } from './names.js';

/** The statements for a database. */
export function onMariadb({ place }: MariadbTarget, options: TableOptions): TransactionWrites {
  const where = tablesPlace(place, { prefix: options.prefix });
  const sql = transactionStatements(mariadbTables(tableNames(options)));
  return {
    askTime: { statement: ASK_TIME_WITHIN, parameters: [] },
    passFence: (resource, token) => ({ statement: sql.pass, parameters: [bytes(resource), String(token)] }),
    find: (namespace, run) => ({
      open: { statement: sql.open, parameters: [] },
      look: { statement: sql.look, parameters: [identityOf(namespace, run)] },
      close: { statement: sql.close, parameters: [] },
    }),
    create: (namespace, run) => ({
      statement: sql.create,
      parameters: [
        ...[identityOf(namespace, run), namespace, run.task, run.key, run.id].map(bytes),
        ...[...runColumns(run).map(plain), run.id].map(bytes),
      ],
    }),
    move: (namespace, { seq, version }, next) => ({
      statement: sql.move,
      parameters: [
        ...runColumns(next).map(plain).map(bytes),
        ...[identityOf(namespace, next), String(seq), String(version)],
      ],
    }),
    line: (seq, { writeId, atMs, what, from, to, ...rest }) => ({
      statement: sql.addEvent,
      parameters: [
        String(seq),
        ...[writeId, Math.floor(atMs), plain(what), from, to].map(bytes),
        bytes(JSON.stringify({ writeId, atMs, what, from, to, ...rest })),
      ],
    }),
    read: (namespace, run) => ({ statement: sql.read, parameters: [identityOf(namespace, run)] }),
    readRow: (seq) => ({ statement: sql.readRow, parameters: [String(seq)] }),
    explained: (cause) => explained(cause, where),
  };
}

/** What the column `identity` holds: the same as the statements in `mariadb-runs.ts` compute. */
function identityOf(namespace: string, { task, key }: Pick<RunRecord, 'task' | 'key'>): Buffer {
  return createHash('sha256').update([namespace, task, key].join('\0')).digest();
}

/** A text as its bytes: the driver writes them in hex, which neither a mode nor a character set changes. */
function bytes(value: Value | Buffer): unknown {
  return typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
}
