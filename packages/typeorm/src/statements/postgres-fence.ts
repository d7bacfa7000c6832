/** The statements of fences on Postgres. */
import type { PostgresTables } from '../postgres/names.js';

/** The statements for one set of tables. */
export function fenceStatements(tables: PostgresTables) {
  return {
    /** resource, token → token; no row: a larger token was here before */
    pass: `
      INSERT INTO ${tables.fence} AS f (resource, token) VALUES ($1, $2::bigint)
      ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE excluded.token >= f.token
      RETURNING token::text AS token`,

    /** resource → token */
    read: `SELECT token::text AS token FROM ${tables.fence} WHERE resource = $1`,
  };
}
