/** What there is of Guard's tables in a Postgres database before they are made. */

/**
 * schema or null for whatever the search path leads to, names → the user; the encoding of the database; how many of the names there are, and in which
 * schemas; the schema that the others belong in, and what the user may do there. Without a named one they belong beside
 * those that statements find; where there are none, in the first schema of the path. No schema: none of the path is
 * there, or the user may use none.
 */
export const WHAT_IS_THERE = `
  SELECT current_user AS role, getdatabaseencoding()::text AS encoding, seen.count::text AS count, seen.schemas, place.name AS schema,
    (found.oid IS NOT NULL)::text AS there, has_schema_privilege(found.oid, 'USAGE')::text AS usable,
    has_schema_privilege(found.oid, 'CREATE')::text AS open
  FROM (
      SELECT count(*) AS count, min(n.nspname::text) AS first,
        CASE WHEN count(DISTINCT n.oid) > 1 THEN string_agg(DISTINCT n.nspname::text, ', ') END AS schemas
      FROM unnest($2::text[]) AS w (name)
        JOIN pg_catalog.pg_class AS c ON c.relname = w.name
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = $1::text OR ($1::text IS NULL AND c.oid = to_regclass(quote_ident(w.name)))
    ) AS seen
    CROSS JOIN LATERAL (SELECT coalesce($1::text, seen.first, current_schema()::text) AS name) AS place
    LEFT JOIN pg_catalog.pg_namespace AS found ON found.nspname = place.name`;
