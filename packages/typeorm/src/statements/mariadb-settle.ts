/**
 * The one statement of locks on MariaDB that knows the queue: it carries out any operation of the port, on as many keys
 * as it is given, in one step for each key. A wish is what it is on Postgres (see `postgres-locks.ts`).
 *
 * Assignments of an upsert run from left to right, and each sees what the ones before it left. So a row has columns that
 * carry the decision from step to step, and what of the wish a subquery needs: there the proposed row is out of sight.
 */
import type { MariadbTables } from '../mariadb/names.js';
import { PIECES } from './mariadb-pieces.js';

/** Parts of the wish for a row that is there. */
const columns = {
  ...PIECES,
  holder: `JSON_VALUE(VALUES(wish), '$.h')`,
  ttl: `CAST(JSON_VALUE(VALUES(wish), '$.t') AS SIGNED)`,
  ticketTtl: `CAST(JSON_VALUE(VALUES(wish), '$.q') AS SIGNED)`,
  floor: `CAST(JSON_VALUE(VALUES(wish), '$.f') AS SIGNED)`,
  waits: `JSON_VALUE(VALUES(wish), '$.w') IN ('1', 'true')`,
  token: `CAST(JSON_VALUE(VALUES(wish), '$.x') AS SIGNED)`,
  tomb: `COALESCE(CAST(JSON_VALUE(VALUES(wish), '$.g') AS SIGNED), 0)`,
};

/** wishes (JSON) → key, token, answer. An answer with `o` is the wish itself: the row was made in this step. */
export function settle(tables: MariadbTables): string {
  const columns = { ...PIECES, steps };
  return `
    ${columns.settings} INSERT INTO ${tables.lock} (\`key\`, token, claim, session, holder, until, tombs, moment, wish)
    SELECT
      w.k,
      IF(${columns.writable}, IF(w.o = 'a', GREATEST(w.f, m.n), 0), NULL),
      IF(w.o = 'a', w.c, NULL),
      IF(w.o = 'a', w.s, NULL),
      IF(w.o = 'a', w.h, NULL),
      IF(w.o = 'a', m.n + w.t, NULL),
      IF(w.o = 'c' AND w.g > 0, JSON_ARRAY(JSON_ARRAY(w.c, m.n + w.g)), NULL),
      m.n,
      w.wish
    FROM JSON_TABLE($1, '$[*]' COLUMNS (
        wish JSON PATH '$',
        k VARBINARY(1280) PATH '$.k',
        o CHAR(1) CHARACTER SET utf8mb4 PATH '$.o',
        c VARCHAR(255) CHARACTER SET utf8mb4 PATH '$.c',
        s VARCHAR(255) CHARACTER SET utf8mb4 PATH '$.s',
        h LONGTEXT CHARACTER SET utf8mb4 PATH '$.h',
        t BIGINT PATH '$.t',
        f BIGINT PATH '$.f',
        g BIGINT PATH '$.g'
      )) AS w CROSS JOIN (SELECT ${columns.now} AS n) AS m
    ORDER BY w.k
    ON DUPLICATE KEY UPDATE ${columns.steps}
    RETURNING \`key\`, token, IF(wish IS NOT NULL, wish, CAST(JSON_OBJECT(
        's', verdict,
        'a', IF(verdict = 'q', COALESCE(place, JSON_LENGTH(queue) - 1), NULL),
        'f', IF(verdict = 'q', place IS NULL, NULL),
        'h', IF(verdict = 'b', holder, NULL),
        'e', IF(verdict = 'b', until - moment, NULL)
      ) AS CHAR CHARACTER SET utf8mb4)) AS answer`;
}

/**
 * What becomes of a row. `asker` and `party`: claim and session of the wish. `mine`: m the claim holds the lock, w it
 * waits and gives up. `next`: none where the holder stays, else the ticket that the lock is handed to, an empty one where
 * nobody waits. `place`: the claim's in the queue.
 */
const steps = `
  moment = ${columns.now},
  op = JSON_VALUE(VALUES(wish), '$.o'),
  asker = JSON_VALUE(VALUES(wish), '$.c'),
  party = JSON_VALUE(VALUES(wish), '$.s'),
  mine = CASE
    WHEN until > moment AND claim = asker AND token = COALESCE(${columns.token}, token) THEN 'm'
    WHEN op = 'c' AND queue IS NOT NULL AND EXISTS (
      SELECT 1 FROM JSON_TABLE(queue, '$[*]' ${columns.tickets}) AS t WHERE t.c = asker
    ) THEN 'w'
  END,
  queue = IF(queue IS NULL, NULL, (
    SELECT CONCAT('[', GROUP_CONCAT(t.x ORDER BY t.i SEPARATOR ','), ']')
    FROM JSON_TABLE(queue, '$[*]' ${columns.tickets}) AS t
    WHERE t.u > moment AND NOT (op = 'c' AND t.c = asker)
  )),
  next = CASE
    WHEN COALESCE(until > moment, 0) AND NOT (mine <=> 'm' AND op IN ('c', 'r')) THEN NULL
    ELSE COALESCE(JSON_EXTRACT(queue, '$[0]'), '{}')
  END,
  token = IF(
    JSON_VALUE(next, '$.c') IS NULL, token, GREATEST(token + 1, CAST(JSON_VALUE(next, '$.f') AS SIGNED), moment)
  ),
  claim = IF(next IS NULL, claim, JSON_VALUE(next, '$.c')),
  session = IF(next IS NULL, session, JSON_VALUE(next, '$.s')),
  holder = IF(next IS NULL, holder, JSON_VALUE(next, '$.h')),
  until = IF(next IS NULL, until, moment + CAST(JSON_VALUE(next, '$.q') AS SIGNED)),
  queue = IF(JSON_VALUE(next, '$.c') IS NULL, queue, NULLIF(JSON_REMOVE(queue, '$[0]'), '[]')),
  verdict = CASE
    WHEN op = 'a' AND tombs IS NOT NULL AND EXISTS (
      SELECT 1 FROM JSON_TABLE(tombs, '$[*]' ${columns.tombstones}) AS t WHERE t.c = asker AND t.u > moment
    ) THEN 'd'
    WHEN op = 'a' AND (claim IS NULL OR claim = asker) THEN 'g'
    WHEN op = 'a' AND ${columns.waits} THEN 'q'
    WHEN op = 'a' THEN 'b'
    WHEN op = 'n' AND mine = 'm' THEN 'n'
    WHEN op = 'r' AND mine = 'm' THEN 'r'
    WHEN op = 'c' AND (mine IS NOT NULL OR ${columns.tomb} > 0) THEN 'r'
    ELSE 'l'
  END,
  place = IF(op <> 'a' OR queue IS NULL, NULL, (
    SELECT MIN(t.i) - 1 FROM JSON_TABLE(queue, '$[*]' ${columns.tickets}) AS t WHERE t.c = asker
  )),
  queue = CASE
    WHEN verdict = 'q' AND place IS NULL THEN CONCAT(
      IF(queue IS NULL, '[', CONCAT(LEFT(queue, CHAR_LENGTH(queue) - 1), ',')),
      JSON_OBJECT(
        'c', asker, 's', party, 'h', ${columns.holder}, 'f', ${columns.floor}, 'q', ${columns.ticketTtl}, 'u', moment + ${columns.ticketTtl}
      ),
      ']'
    ) COLLATE utf8mb4_nopad_bin
    WHEN verdict = 'q' THEN (
      SELECT CONCAT('[', GROUP_CONCAT(
        IF(t.s = party, JSON_SET(t.x, '$.u', moment + t.q), t.x) ORDER BY t.i SEPARATOR ','
      ), ']')
      FROM JSON_TABLE(queue, '$[*]' ${columns.tickets}) AS t
    )
    WHEN verdict = 'b' AND place IS NOT NULL THEN NULLIF(JSON_REMOVE(queue, CONCAT('$[', place, ']')), '[]')
    ELSE queue
  END,
  tombs = IF(${columns.tomb} > 0, JSON_ARRAY_INSERT(COALESCE(tombs, '[]'), '$[0]', JSON_ARRAY(asker, moment + ${columns.tomb})), tombs),
  tombs = IF(tombs IS NULL, NULL, (
    SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(t.c, t.u) ORDER BY t.i SEPARATOR ','), ']')
    FROM JSON_TABLE(tombs, '$[*]' ${columns.tombstones}) AS t WHERE t.u > moment AND t.i <= 1000
  )),
  token = CASE
    WHEN verdict <> 'g' THEN token
    WHEN claim IS NULL THEN GREATEST(token + 1, ${columns.floor}, moment)
    ELSE GREATEST(token, ${columns.floor})
  END,
  until = IF(verdict IN ('g', 'n'), GREATEST(COALESCE(until, 0), moment + ${columns.ttl}), until),
  session = IF(verdict = 'g', party, session),
  holder = IF(verdict = 'g', ${columns.holder}, holder),
  claim = IF(verdict = 'g', asker, claim),
  wish = NULL`;
