/** Names as they stand in statements of MariaDB. */
import type { TableNames } from '../tables.js';

/** Quoted names. */
export interface MariadbTables {
  readonly lock: string;
  readonly entry: string;
  readonly run: string;
  /** The unique index of runs by what names them. */
  readonly runKey: string;
  readonly runEvent: string;
  readonly task: string;
  readonly node: string;
  readonly fence: string;
}

/** The names as they stand in statements. They are plain identifiers: `tableNames` let no other pass. */
export function mariadbTables(names: TableNames): MariadbTables {
  const quoted = (name: string): string => `\`${name}\``;
  return {
    lock: quoted(names.lock),
    entry: quoted(names.entry),
    run: quoted(names.run),
    runKey: quoted(`${names.run}_key`),
    runEvent: quoted(names.runEvent),
    task: quoted(names.task),
    node: quoted(names.node),
    fence: quoted(names.fence),
  };
}
