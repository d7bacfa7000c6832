/**
 * The statements of state on MariaDB: the same verbs, parameters and answers as on Postgres (see `postgres-state.ts`). A
 * batch is a JSON array with an array for each write.
 *
 * A version is larger than the last one of its key and not below the time of its write, so none comes back after its row
 * was removed; a row ahead of the time stays. `written_by` is that time. A write becomes visible later than that, by as
 * long as its statement takes, which `settings` bounds: a look begins again that far back.
 */
import { FENCE_KEPT_MS } from '@guard/core';
import type { MariadbTables } from '../mariadb/names.js';
import { PIECES } from './mariadb-pieces.js';
import type { StateStatements } from './postgres-state.js';

/** The statements for one set of tables. */
export function stateStatements(tables: MariadbTables): StateStatements {
  return { write: write(tables), ...reads(tables), ...changes(tables), keepHouse: keepHouse(tables) };
}

/** Pieces of the texts below; times are microseconds. */
const columns = pieces({ ...PIECES, kept: String(FENCE_KEPT_MS * 1_000) });

function pieces(columns: typeof PIECES & { readonly kept: string }) {
  return {
    ...columns,
    /** Longer than a statement of Guard's may take. */
    visibleAfter: `6000000`,
    /** Whether readers see an entry in row l at moment m. */
    present: `(l.value IS NOT NULL AND COALESCE(l.until > m.n, 1))`,
    /** Whether row l means nothing any more at moment m, not even to a late write. */
    forgotten: `COALESCE(l.until + IF(l.value IS NULL, 0, ${columns.kept}) <= m.n, 0)`,
    /** The same of the row that is being written, at its moment. */
    presentNow: `(value IS NOT NULL AND COALESCE(until > moment, 1))`,
    forgottenNow: `COALESCE(until + IF(value IS NULL, 0, ${columns.kept}) <= moment, 0)`,
    expect: `SUBSTRING_INDEX(VALUES(wish), ' ', 1)`,
    ttl: `SUBSTRING_INDEX(VALUES(wish), ' ', -1)`,
  };
}

/**
 * `done`: the write was made. A row that is made for a version that nobody can have is forgotten from the start, and was
 * written by nobody.
 */
function write(tables: MariadbTables): string {
  return `
    ${columns.settings} INSERT INTO ${tables.entry} (
      \`key\`, value, version, write_id, fence_lock, fence_token, until, written_by, wish, moment, done
    )
    SELECT
      w.k, w.val, IF(${columns.writable}, m.n, NULL), w.id, w.guard, w.guard_token,
      CASE
        WHEN w.expects NOT IN ('any', 'absent') THEN m.n - ${columns.kept} - 1
        WHEN w.val IS NULL THEN m.n + ${columns.kept}
        WHEN w.lasts NOT IN ('keep', 'none') THEN m.n + CAST(w.lasts AS SIGNED)
      END,
      IF(w.expects IN ('any', 'absent'), m.n, 0),
      CONCAT(w.expects, ' ', w.lasts),
      m.n,
      w.expects IN ('any', 'absent')
    FROM JSON_TABLE($1, '$[*]' COLUMNS (
        k VARBINARY(1280) PATH '$[0]',
        val LONGTEXT CHARACTER SET utf8mb4 PATH '$[1]',
        id VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[2]',
        guard TEXT CHARACTER SET utf8mb4 PATH '$[3]',
        guard_token BIGINT PATH '$[4]',
        expects VARCHAR(40) CHARACTER SET utf8mb4 PATH '$[5]',
        lasts VARCHAR(40) CHARACTER SET utf8mb4 PATH '$[6]'
      )) AS w CROSS JOIN (SELECT ${columns.now} AS n) AS m
    ORDER BY w.k
    ON DUPLICATE KEY UPDATE
      moment = ${columns.now},
      done = (
        ${columns.forgottenNow} OR write_id <> VALUES(write_id)
          AND NOT COALESCE(fence_lock = VALUES(fence_lock) AND fence_token > VALUES(fence_token), 0)
      ) AND CASE ${columns.expect}
        WHEN 'any' THEN 1
        WHEN 'absent' THEN NOT ${columns.presentNow}
        ELSE ${columns.presentNow} AND CAST(version AS CHAR) = ${columns.expect}
      END,
      version = IF(done, GREATEST(version + 1, moment), version),
      fence_token = CASE
        WHEN NOT done THEN fence_token
        WHEN VALUES(fence_lock) IS NOT NULL THEN VALUES(fence_token)
        WHEN NOT ${columns.forgottenNow} THEN fence_token
      END,
      fence_lock = CASE
        WHEN NOT done THEN fence_lock
        WHEN VALUES(fence_lock) IS NOT NULL THEN VALUES(fence_lock)
        WHEN NOT ${columns.forgottenNow} THEN fence_lock
      END,
      -- An entry that was there when it was judged keeps its end, even if that has come by now.
      until = CASE
        WHEN NOT done THEN until
        WHEN VALUES(value) IS NULL THEN moment + ${columns.kept}
        WHEN ${columns.ttl} NOT IN ('keep', 'none') THEN moment + CAST(${columns.ttl} AS SIGNED)
        WHEN ${columns.ttl} = 'keep' AND ${columns.expect} <> 'absent' AND ${columns.presentNow} THEN until
      END,
      value = IF(done, VALUES(value), value),
      write_id = IF(done, VALUES(write_id), write_id),
      written_by = IF(done, moment, written_by)
    RETURNING \`key\`, version, IF(done, 'f', 't') AS untouched`;
}

function reads(tables: MariadbTables) {
  return {
    read: `
      ${columns.settings} SELECT r.k AS \`key\`, l.value, l.version, l.until - m.n AS left_us
      FROM JSON_TABLE($1, '$[*]' COLUMNS (i FOR ORDINALITY, k VARBINARY(1280) PATH '$')) AS r
        CROSS JOIN (SELECT ${columns.now} AS n) AS m
        LEFT JOIN ${tables.entry} AS l ON l.\`key\` = r.k AND ${columns.present}
      ORDER BY r.i`,

    judge: `
      ${columns.settings} SELECT l.\`key\`, l.version, l.write_id, l.fence_lock, l.fence_token,
        IF(${columns.present}, 't', 'f') AS present
      FROM JSON_TABLE($1, '$[*]' COLUMNS (k VARBINARY(1280) PATH '$')) AS r
        CROSS JOIN (SELECT ${columns.now} AS n) AS m
        JOIN ${tables.entry} AS l ON l.\`key\` = r.k
      WHERE NOT ${columns.forgotten}`,

    scan: `
      ${columns.settings} SELECT p.\`key\`, p.value, p.version, p.left_us, p.found FROM (
        SELECT e.*, COUNT(*) OVER () AS found,
          SUM(OCTET_LENGTH(e.value)) OVER (ORDER BY e.\`key\` ROWS UNBOUNDED PRECEDING) - OCTET_LENGTH(e.value)
            AS bytes_before
        FROM (
          SELECT l.\`key\`, l.value, l.version, l.until - m.n AS left_us
          FROM ${tables.entry} AS l CROSS JOIN (SELECT ${columns.now} AS n) AS m
          WHERE l.\`key\` >= $1 AND l.\`key\` > $2 AND ($3 IS NULL OR l.\`key\` < $3) AND ${columns.present}
          ORDER BY l.\`key\` LIMIT $4
        ) AS e
      ) AS p
      WHERE p.bytes_before < CAST($5 AS SIGNED) ORDER BY p.\`key\``,

    now: `${columns.settings} SELECT ${columns.now} DIV 1000 AS now`,
  };
}

/** What was written is found by its time. What is ahead of the time was written before the clock was set back. */
function changes(tables: MariadbTables) {
  return {
    newest: `
      ${columns.settings} SELECT m.n - ${columns.visibleAfter} AS low, COALESCE((
        SELECT MAX(written_by) FROM ${tables.entry} WHERE written_by <= m.n
      ), 0) AS newest
      FROM (SELECT ${columns.now} AS n) AS m`,

    changed: `
      ${columns.settings} SELECT l.\`key\`, IF(${columns.present}, l.value, NULL) AS value, l.version, l.until - m.n AS left_us,
        l.written_by
      FROM ${tables.entry} AS l CROSS JOIN (SELECT ${columns.now} AS n) AS m
      WHERE l.written_by >= CAST($1 AS SIGNED) AND l.written_by <= m.n
        AND (l.written_by > CAST($2 AS SIGNED) OR (l.written_by = CAST($2 AS SIGNED) AND l.\`key\` > $3))
      ORDER BY l.written_by, l.\`key\` LIMIT $4`,
  };
}

/** Rows are removed one by one: a statement for all of them would keep the keys between them from being written. */
function keepHouse(tables: MariadbTables): string {
  return `
    ${columns.settings} BEGIN NOT ATOMIC
      SELECT MAX(k) AS last, COUNT(*) AS looked
      FROM (SELECT \`key\` AS k FROM ${tables.entry} WHERE \`key\` > $1 ORDER BY \`key\` LIMIT $2) AS seen;
      FOR old IN (
        SELECT l.k FROM (
          SELECT \`key\` AS k, value, version, until FROM ${tables.entry} WHERE \`key\` > $1 ORDER BY \`key\` LIMIT $2
        ) AS l CROSS JOIN (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS n) AS m
        WHERE ${columns.forgotten} AND l.version < m.n
      ) DO
        DELETE FROM ${tables.entry} WHERE \`key\` = old.k AND version < ${columns.now}
          AND until + IF(value IS NULL, 0, ${columns.kept}) <= ${columns.now};
      END FOR;
    END`;
}
