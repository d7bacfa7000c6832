/**
 * The statements of state on Postgres. A batch of writes is one statement, each row judged when it is written; a write
 * that was not made is judged by a second statement, because within one the snapshot can be older than the row.
 *
 * An entry that is deleted, or whose time is over, stays for a while as a row without a meaning of its own: it holds the
 * fence that refuses an older holder, and the write id by which a re-sent delete recognises itself.
 */
import { FENCE_KEPT_MS } from '@guard/core';
import type { PostgresTables } from '../postgres/names.js';

/** The statements for one set of tables. */
export function stateStatements(tables: PostgresTables) {
  return { write: write(tables), ...reads(tables), ...changes(tables), keepHouse: keepHouse(tables) };
}

/** The statements for one set of tables. */
export type StateStatements = Readonly<Record<keyof ReturnType<typeof stateStatements>, string>>;

/** Pieces of the texts below; how long a fence is kept in microseconds. */
const columns = pieces({ kept: String(FENCE_KEPT_MS * 1_000) });

function pieces(columns: { readonly kept: string }) {
  return {
    ...columns,
    now: `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`,
    /** Whether readers see an entry in row l at moment m. */
    present: `(l.value IS NOT NULL AND coalesce(l.until > m.n, true))`,
    /** Whether row l means nothing any more at moment m, not even to a late write. */
    forgotten: `coalesce(l.until + CASE WHEN l.value IS NULL THEN 0 ELSE ${columns.kept} END <= m.n, false)`,
  };
}

/**
 * keys, values, write ids, locks and tokens of fences, what is expected, ttls → key, version of what was written. An empty
 * value, which no JSON is, deletes; an empty lock and token are no fence. What is expected: `any`, `absent` or a version. A ttl: `keep`,
 * `none` or microseconds.
 */
function write(tables: PostgresTables): string {
  return `
    INSERT INTO ${tables.entry} AS l (
      key, value, version, write_id, fence_lock, fence_token, until, written_by, wish
    )
    SELECT
      w.key, nullif(w.value, ''), nextval('${tables.versionName}'), w.write_id, nullif(w.fence_lock, ''),
      nullif(w.fence_token, '')::bigint,
      CASE WHEN w.value = '' THEN m.n + ${columns.kept} WHEN w.ttl ~ '^[0-9]' THEN m.n + w.ttl::bigint END,
      txid_current(), w.expect || ' ' || w.ttl
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
        AS w (key, value, write_id, fence_lock, fence_token, expect, ttl)
      CROSS JOIN (SELECT ${columns.now} AS n) AS m
    WHERE w.expect IN ('any', 'absent')
      OR EXISTS (SELECT 1 FROM ${tables.entry} AS e WHERE e.key = w.key AND e.version::text = w.expect)
    ORDER BY w.key COLLATE "C"
    ON CONFLICT (key) DO UPDATE SET (
      value, version, write_id, fence_lock, fence_token, until, written_by, wish
    ) = (
      SELECT
        excluded.value, excluded.version, excluded.write_id,
        CASE WHEN excluded.fence_lock IS NOT NULL THEN excluded.fence_lock
          WHEN NOT ${columns.forgotten} THEN l.fence_lock END,
        CASE WHEN excluded.fence_lock IS NOT NULL THEN excluded.fence_token
          WHEN NOT ${columns.forgotten} THEN l.fence_token END,
        CASE
          WHEN excluded.value IS NULL THEN m.n + ${columns.kept}
          WHEN excluded.wish ~ ' [0-9]+$' THEN m.n + split_part(excluded.wish, ' ', 2)::bigint
          -- An entry that was there when it was judged keeps its end, even if that has come by now.
          WHEN excluded.wish ~ '^[0-9]+ keep$' THEN l.until
          WHEN excluded.wish = 'any keep' AND ${columns.present} THEN l.until
        END,
        excluded.written_by, excluded.wish
      FROM (SELECT ${columns.now} AS n) AS m
    )
    WHERE (
      SELECT
        (${columns.forgotten} OR l.write_id <> excluded.write_id AND NOT coalesce(
          l.fence_lock = excluded.fence_lock AND l.fence_token > excluded.fence_token, false
        ))
        AND CASE split_part(excluded.wish, ' ', 1)
          WHEN 'any' THEN true
          WHEN 'absent' THEN NOT ${columns.present}
          ELSE ${columns.present} AND l.version::text = split_part(excluded.wish, ' ', 1)
        END
      FROM (SELECT ${columns.now} AS n) AS m
    )
    RETURNING l.key, l.version`;
}

function reads(tables: PostgresTables) {
  return {
    /** keys → in their order: key, value (none: nothing there), version, what is left of its time */
    read: `
      SELECT r.key, l.value, l.version, l.until - m.n AS left_us
      FROM unnest($1::text[]) WITH ORDINALITY AS r (key, i)
        CROSS JOIN (SELECT ${columns.now} AS n) AS m
        LEFT JOIN ${tables.entry} AS l ON l.key = r.key AND ${columns.present}
      ORDER BY r.i`,

    /** keys → rows that mean something: key, version, write id, fence, whether readers see an entry */
    judge: `
      SELECT l.key, l.version, l.write_id, l.fence_lock, l.fence_token, ${columns.present} AS present
      FROM ${tables.entry} AS l CROSS JOIN (SELECT ${columns.now} AS n) AS m
      WHERE l.key = ANY ($1::text[]) AND NOT ${columns.forgotten}`,

    /**
     * from, after, end of prefix or null, limit, most bytes → entries in the order of their bytes, and how many there
     * were before the page was full
     */
    scan: `
      SELECT p.key, p.value, p.version, p.left_us, p.found FROM (
        SELECT e.*, count(*) OVER () AS found,
          sum(octet_length(e.value)) OVER (ORDER BY e.key) - octet_length(e.value) AS bytes_before
        FROM (
          SELECT l.key, l.value, l.version, l.until - m.n AS left_us
          FROM ${tables.entry} AS l CROSS JOIN (SELECT ${columns.now} AS n) AS m
          WHERE l.key >= $1 AND l.key > $2 AND ($3::text IS NULL OR l.key < $3) AND ${columns.present}
          ORDER BY l.key LIMIT $4
        ) AS e
      ) AS p
      WHERE p.bytes_before < $5 ORDER BY p.key`,

    /** → milliseconds since the epoch */
    now: `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now`,
  };
}

/**
 * Changes are found by the transaction that wrote them. Transactions commit in another order than they begin, so what is
 * looked at begins with the oldest one that was open at the last look: `low`. What bears a number of the future comes
 * from another server, by a restored dump.
 */
function changes(tables: PostgresTables) {
  return {
    /** → low, the newest transaction that wrote, both as numbers */
    newest: `
      SELECT txid_snapshot_xmin(s.now) AS low, coalesce((
        SELECT max(written_by) FROM ${tables.entry} WHERE written_by < txid_snapshot_xmax(s.now)
      ), 0) AS newest
      FROM (SELECT txid_current_snapshot() AS now) AS s`,

    /** low, transaction and key of the last row, limit → rows in the order of transactions */
    changed: `
      SELECT l.key, CASE WHEN ${columns.present} THEN l.value END AS value, l.version, l.until - m.n AS left_us,
        l.written_by
      FROM ${tables.entry} AS l CROSS JOIN (SELECT ${columns.now} AS n) AS m
      WHERE l.written_by >= $1 AND l.written_by < txid_snapshot_xmax(txid_current_snapshot())
        AND (l.written_by > $2 OR (l.written_by = $2 AND l.key > $3))
      ORDER BY l.written_by, l.key LIMIT $4`,
  };
}

/** after, how many to look at → the last key that was looked at, how many were. Removes what is forgotten. */
function keepHouse(tables: PostgresTables): string {
  return `
    WITH seen AS (SELECT key FROM ${tables.entry} WHERE key > $1 ORDER BY key LIMIT $2),
    idle AS (
      SELECT l.key FROM ${tables.entry} AS l CROSS JOIN (SELECT ${columns.now} AS n) AS m
      WHERE l.key IN (SELECT key FROM seen) AND ${columns.forgotten}
      ORDER BY l.key FOR UPDATE OF l SKIP LOCKED
    ),
    gone AS (DELETE FROM ${tables.entry} WHERE key IN (SELECT key FROM idle))
    SELECT max(key) AS last, count(*) AS looked FROM seen`;
}
