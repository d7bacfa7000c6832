/**
 * The statements of locks on MariaDB: the same verbs, parameters and answers as on Postgres (see `postgres-locks.ts`,
 * also for what a wish is). A batch is a JSON array with an array for each row.
 *
 * Rules that a trial on the server taught. Assignments of an upsert run from left to right, and each sees what the ones
 * before it left. An upsert answers every row, also one that it left as it was: `untouched`. Text in arithmetic becomes
 * a DOUBLE, hence the casts. Rows are taken in the order of their keys, so that overlapping batches cannot deadlock.
 */
import type { MariadbTables } from '../mariadb/names.js';
import { PIECES } from './mariadb-pieces.js';
import { settle } from './mariadb-settle.js';
import type { LockStatements } from './postgres-locks.js';

/** The statements for one set of tables. */
export function lockStatements(tables: MariadbTables): LockStatements {
  return {
    ...plain(tables),
    ...plainBatches(tables),
    settle: settle(tables),
    ...looks(tables),
    keepHouse: keepHouse(tables),
  };
}

/** `free`: nobody has the key, waits for it or gave it up. */
const columns = pieces({ ...PIECES, free: 'claim IS NULL AND queue IS NULL AND tombs IS NULL' });

/** What the plain batches do to a row that is there. Without a moment they leave it as it was. */
function pieces(columns: typeof PIECES & { readonly free: string }) {
  return {
    ...columns,
    /** The lease is alive and the claim's own: `$1` key, `$2` claim, `$3` token. */
    own: `\`key\` = $1 AND claim = $2 AND token = CAST($3 AS SIGNED) AND until > ${columns.now} AND ${columns.writable}`,
    /** `wish`: ttl */
    take: `
    moment = IF(${columns.free}, ${columns.now}, NULL),
    token = IF(moment IS NULL, token, GREATEST(token + 1, VALUES(token), moment)),
    claim = IF(moment IS NULL, claim, VALUES(claim)),
    session = IF(moment IS NULL, session, VALUES(session)),
    holder = IF(moment IS NULL, holder, VALUES(holder)),
    until = IF(moment IS NULL, until, moment + CAST(VALUES(wish) AS SIGNED)),
    wish = NULL`,
    /** `wish`: claim, ttl */
    renew: `
    moment = IF(
      claim = JSON_VALUE(VALUES(wish), '$[0]') AND token = VALUES(token) AND until > ${columns.now}, ${columns.now}, NULL
    ),
    until = IF(moment IS NULL, until, GREATEST(until, moment + CAST(JSON_VALUE(VALUES(wish), '$[1]') AS SIGNED))),
    wish = NULL`,
    /** `wish`: claim */
    release: `
    moment = IF(
      claim = JSON_VALUE(VALUES(wish), '$[0]') AND token = VALUES(token) AND until > ${columns.now} AND queue IS NULL,
      ${columns.now}, NULL
    ),
    claim = IF(moment IS NULL, claim, NULL),
    session = IF(moment IS NULL, session, NULL),
    holder = IF(moment IS NULL, holder, NULL),
    until = IF(moment IS NULL, until, NULL),
    wish = NULL`,
    /** A row that still has its wish was made in this step, so nobody had the key. */
    left: `\`key\`, IF(wish IS NULL, 'f', 't') AS made, IF(wish IS NULL AND moment IS NULL, 't', 'f') AS untouched`,
  };
}

/**
 * What a single operation costs beyond its two commits is the reading of its text and of its answer, so these have no
 * subquery and answer no rows: the driver tells what was written, and LAST_INSERT_ID brings the token along.
 */
function plain(tables: MariadbTables) {
  return {
    takeFree: `
      ${columns.limits} INSERT INTO ${tables.lock} (moment, \`key\`, claim, session, holder, token, until)
      VALUES (
        ${columns.now}, $1, $2, $3, $4,
        IF(${columns.writable}, LAST_INSERT_ID(GREATEST(CAST($5 AS SIGNED), moment)), NULL), moment + CAST($6 AS SIGNED)
      )
      ON DUPLICATE KEY UPDATE
        moment = IF(${columns.free}, ${columns.now}, NULL),
        token = IF(
          moment IS NULL, token + LAST_INSERT_ID(0), LAST_INSERT_ID(GREATEST(token + 1, VALUES(token), moment))
        ),
        claim = IF(moment IS NULL, claim, VALUES(claim)),
        session = IF(moment IS NULL, session, VALUES(session)),
        holder = IF(moment IS NULL, holder, VALUES(holder)),
        until = IF(moment IS NULL, until, moment + (VALUES(until) - VALUES(moment)))`,

    renewLive: `
      ${columns.limits} UPDATE ${tables.lock} SET until = GREATEST(until, ${columns.now} + CAST($4 AS SIGNED)) WHERE ${columns.own}`,

    releaseUnqueued: `
      ${columns.limits} UPDATE ${tables.lock} SET claim = NULL, session = NULL, holder = NULL, until = NULL
      WHERE ${columns.own} AND queue IS NULL`,
  };
}

function plainBatches(tables: MariadbTables) {
  return {
    takeFreeBatch: `
      ${columns.settings} INSERT INTO ${tables.lock} (\`key\`, token, claim, session, holder, until, moment, wish)
      SELECT r.k, IF(${columns.writable}, GREATEST(r.f, m.n), NULL), r.c, r.s, r.h, m.n + r.t, m.n, r.t
      FROM JSON_TABLE($1, '$[*]' COLUMNS (
          k VARBINARY(1280) PATH '$[0]',
          c VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[1]',
          s VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[2]',
          h LONGTEXT CHARACTER SET utf8mb4 PATH '$[3]',
          f BIGINT PATH '$[4]',
          t BIGINT PATH '$[5]'
        )) AS r CROSS JOIN (SELECT ${columns.now} AS n) AS m
      ORDER BY r.k
      ON DUPLICATE KEY UPDATE ${columns.take}
      RETURNING \`key\`, token, IF(moment IS NULL, 't', 'f') AS untouched`,

    renewLiveBatch: `
      ${columns.settings} INSERT INTO ${tables.lock} (\`key\`, token, wish)
      SELECT r.k, IF(${columns.writable}, r.x, NULL), JSON_ARRAY(r.c, r.t)
      FROM JSON_TABLE($1, '$[*]' COLUMNS (
          k VARBINARY(1280) PATH '$[0]',
          c VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[1]',
          x BIGINT PATH '$[2]',
          t BIGINT PATH '$[3]'
        )) AS r
      ORDER BY r.k
      ON DUPLICATE KEY UPDATE ${columns.renew}
      RETURNING ${columns.left}`,

    releaseUnqueuedBatch: `
      ${columns.settings} INSERT INTO ${tables.lock} (\`key\`, token, wish)
      SELECT r.k, IF(${columns.writable}, r.x, NULL), JSON_ARRAY(r.c)
      FROM JSON_TABLE($1, '$[*]' COLUMNS (
          k VARBINARY(1280) PATH '$[0]',
          c VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[1]',
          x BIGINT PATH '$[2]'
        )) AS r
      ORDER BY r.k
      ON DUPLICATE KEY UPDATE ${columns.release}
      RETURNING ${columns.left}`,
  };
}

function looks(tables: MariadbTables) {
  return {
    readKeys: `
      ${columns.settings} SELECT r.k AS \`key\`, l.token, l.claim, l.session, l.holder, l.until - m.n AS left_us,
        IF(l.queue IS NULL, 'f', 't') AS queued,
        (SELECT COUNT(*) FROM JSON_TABLE(l.queue, '$[*]' ${columns.tickets}) AS t WHERE t.u > m.n) AS waiting
      FROM JSON_TABLE($1, '$[*]' COLUMNS (i FOR ORDINALITY, k VARBINARY(1280) PATH '$')) AS r
        CROSS JOIN (SELECT ${columns.now} AS n) AS m
        LEFT JOIN ${tables.lock} AS l ON l.\`key\` = r.k
      ORDER BY r.i`,

    readBelow: `
      ${columns.settings} SELECT l.\`key\`, l.token, l.claim, l.session, l.holder, l.until - m.n AS left_us,
        IF(l.queue IS NULL, 'f', 't') AS queued,
        (SELECT COUNT(*) FROM JSON_TABLE(l.queue, '$[*]' ${columns.tickets}) AS t WHERE t.u > m.n) AS waiting
      FROM ${tables.lock} AS l CROSS JOIN (SELECT ${columns.now} AS n) AS m
      WHERE l.\`key\` >= $1 AND l.\`key\` > $2 AND ($3 IS NULL OR l.\`key\` < $3) AND l.until > m.n
      ORDER BY l.\`key\` LIMIT $4`,

    /** A third of their life must be over before tickets are written again: polls come far more often than that. */
    look: `
      ${columns.settings} SELECT r.k AS \`key\`, l.token, CAST(IF(r.w, JSON_OBJECT(
          's', 'q', 'a', (
            SELECT COUNT(*) FROM JSON_TABLE(l.queue, '$[*]' ${columns.tickets}) AS o WHERE o.u > m.n AND o.i < t.i
          )
        ), JSON_OBJECT('s', 'b', 'h', l.holder, 'e', l.until - m.n)) AS CHAR CHARACTER SET utf8mb4) AS answer
      FROM JSON_TABLE($1, '$[*]' COLUMNS (
          k VARBINARY(1280) PATH '$[0]',
          c VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$[1]',
          w INT PATH '$[2]'
        )) AS r
        CROSS JOIN (SELECT ${columns.now} AS n) AS m
        JOIN ${tables.lock} AS l ON l.\`key\` = r.k
        LEFT JOIN JSON_TABLE(l.queue, '$[*]' ${columns.tickets}) AS t ON t.c = r.c
      WHERE l.until > m.n AND l.claim <> r.c AND IF(
        r.w,
        t.u > m.n AND NOT EXISTS (
          SELECT 1 FROM JSON_TABLE(l.queue, '$[*]' ${columns.tickets}) AS o WHERE o.s = t.s AND o.u - o.q * 2 DIV 3 <= m.n
        ),
        t.c IS NULL AND NOT EXISTS (
          SELECT 1 FROM JSON_TABLE(l.tombs, '$[*]' ${columns.tombstones}) AS o WHERE o.c = r.c
        )
      )`,
  };
}

/** Rows are removed one by one: a statement for all of them would keep the keys between them from being taken. */
function keepHouse(tables: MariadbTables): string {
  return `
    ${columns.settings} BEGIN NOT ATOMIC
      SELECT MAX(k) AS last, COUNT(*) AS looked
      FROM (SELECT \`key\` AS k FROM ${tables.lock} WHERE \`key\` > $1 ORDER BY \`key\` LIMIT $2) AS seen;
      FOR old IN (
        SELECT l.k FROM (
          SELECT \`key\` AS k, token, until FROM ${tables.lock} WHERE \`key\` > $1 ORDER BY \`key\` LIMIT $2
        ) AS l
        WHERE COALESCE(l.until, l.token) < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - CAST($3 AS SIGNED)
      ) DO
        DELETE FROM ${tables.lock} WHERE \`key\` = old.k
          AND COALESCE(until, token) < ${columns.now} - CAST($3 AS SIGNED) AND token < ${columns.now}
          AND NOT EXISTS (SELECT 1 FROM JSON_TABLE(queue, '$[*]' ${columns.tickets}) AS t WHERE t.u > ${columns.now})
          AND NOT EXISTS (SELECT 1 FROM JSON_TABLE(tombs, '$[*]' ${columns.tombstones}) AS t WHERE t.u > ${columns.now});
      END FOR;
    END`;
}
