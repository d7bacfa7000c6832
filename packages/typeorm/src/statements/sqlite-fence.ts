/** The statements of fences in the application's SQLite file. Parameters stand in the order of their question marks. */
import type { TableNames } from '../tables.js';

/** The statements for one set of table names. */
export function fenceStatements(tables: TableNames) {
  return {
    /** resource, token → token; no row: a larger token was here before */
    pass: `
      INSERT INTO "${tables.fence}" (resource, token) VALUES (?, ?)
      ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE excluded.token >= token
      RETURNING CAST(token AS TEXT) AS token`,

    /** resource → token */
    read: `SELECT CAST(token AS TEXT) AS token FROM "${tables.fence}" WHERE resource = ?`,
  };
}
