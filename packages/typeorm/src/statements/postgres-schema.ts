/** What there is of Guard's tables in a Postgres database before they are made. */

/**
 * schema or null for that of the search path, names → the user, the schema, what the user may do in it, and how many of
 * the names it has. No schema: none of the search path is there, or the user may use none.
 */
export const WHAT_IS_THERE = `
  SELECT current_user AS role, place.name AS schema, found.oid IS NOT NULL AS there,
    has_schema_privilege(found.oid, 'USAGE') AS usable, has_schema_privilege(found.oid, 'CREATE') AS open,
    (
      SELECT count(*) FROM pg_catalog.pg_class AS c WHERE c.relnamespace = found.oid AND c.relname = ANY ($2::text[])
    ) AS count
  FROM (SELECT COALESCE($1::text, current_schema()) AS name) AS place
    LEFT JOIN pg_catalog.pg_namespace AS found ON found.nspname = place.name`;
