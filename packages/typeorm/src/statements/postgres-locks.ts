/**
 * The statements of locks on Postgres. Three, and the same for batches, are for the common case, a key that nobody else
 * wants: they touch no queue and are planned without one. `settle` is for what they leave: it carries out any operation
 * of the port, on as many keys as it is given, in one step for each key.
 *
 * Rules that a trial on the server taught. The clock is read once for each row, in the update itself, because a clock in
 * the proposed row is as old as the wait for the row's lock. The verdict is written into the row, because RETURNING shows
 * the new row only. Rows are taken in the order of their keys, so that overlapping batches cannot deadlock.
 *
 * `settle` takes its wishes in the column `answer` of the proposed rows, one object each:
 * `k` key, `o` operation (a acquire, n renew, r release, c cancel, s look), `c` claim, `s` session, `h` holder as text,
 * `t` ttl, `q` ttl of a ticket, `f` floor as text, `w` whether to wait, `x` token as text, `g` life of a tombstone.
 * Times are microseconds. It leaves in the row what came of it:
 * `s` g granted, q queued, b busy, d cancelled, r released, n renewed, l lost; `a` ahead, `f` fresh, `h` holder,
 * `e` what is left of the lease, `n` the ticket that the lock was handed to in this step.
 */
import type { PostgresTables } from '../postgres/names.js';

/** The statements for one set of tables. */
export function lockStatements(tables: PostgresTables) {
  return {
    ...plain(tables),
    ...plainBatches(tables),
    settle: settle(tables),
    ...looks(tables),
    keepHouse: keepHouse(tables),
  };
}

/** The statements for one set of tables. */
export type LockStatements = Readonly<Record<keyof ReturnType<typeof lockStatements>, string>> & {
  /** Where waiters poll. keys, claims, 1 if they wait → key, token, answer of those that need no write */
  readonly look?: string;
};

/** Pieces of the texts below. */
const columns = {
  /** Microseconds since the epoch, read when the row is written. */
  now: `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`,
};

function plain(tables: PostgresTables) {
  return {
    /** key, claim, session, holder, floor, ttl → key, token; no row: somebody has it, waits for it or gave it up */
    takeFree: `
      INSERT INTO ${tables.lock} AS l (key, token, claim, session, holder, until)
      SELECT $1, greatest($5::bigint, m.n), $2, $3, $4, m.n + $6::bigint FROM (SELECT ${columns.now} AS n) AS m
      ON CONFLICT (key) DO UPDATE SET (token, claim, session, holder, until) = (
        SELECT greatest(l.token + 1, $5::bigint, m.n), excluded.claim, excluded.session, excluded.holder,
          m.n + $6::bigint
        FROM (SELECT ${columns.now} AS n) AS m
      )
      WHERE l.claim IS NULL AND l.queue IS NULL AND l.tombs IS NULL
      RETURNING l.key, l.token`,

    /** key, claim, token, ttl → a row; none: lost, or to be settled */
    renewLive: `
      UPDATE ${tables.lock} SET until = greatest(until, ${columns.now} + $4::bigint)
      WHERE key = $1 AND claim = $2 AND token = $3::bigint AND until > ${columns.now}
      RETURNING key`,

    /** key, claim, token → a row; none: lost, or somebody waits */
    releaseUnqueued: `
      UPDATE ${tables.lock} SET claim = NULL, session = NULL, holder = NULL, until = NULL
      WHERE key = $1 AND claim = $2 AND token = $3::bigint AND until > ${columns.now} AND queue IS NULL
      RETURNING key`,
  };
}

/**
 * The same for batches. What a row is to be compared with, or to become, comes in the column `answer` of the proposed
 * row; a row that still has it was made in this step, so nobody had the key.
 */
function plainBatches(tables: PostgresTables) {
  return {
    /** keys, claims, sessions, holders, floors, ttls → key, token of those that were granted */
    takeFreeBatch: `
      INSERT INTO ${tables.lock} AS l (key, token, claim, session, holder, until, answer)
      SELECT r.key, greatest(r.floor, m.n), r.claim, r.session, r.holder, m.n + r.ttl, to_jsonb(r.ttl)
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
          AS r (key, claim, session, holder, floor, ttl)
        CROSS JOIN (SELECT ${columns.now} AS n) AS m
      ORDER BY r.key COLLATE "C"
      ON CONFLICT (key) DO UPDATE SET (token, claim, session, holder, until, answer) = (
        SELECT greatest(l.token + 1, excluded.token, m.n), excluded.claim, excluded.session, excluded.holder,
          m.n + excluded.answer::bigint, NULL::jsonb
        FROM (SELECT ${columns.now} AS n) AS m
      )
      WHERE l.claim IS NULL AND l.queue IS NULL AND l.tombs IS NULL
      RETURNING l.key, l.token`,

    /** keys, claims, tokens, ttls → key, made; not in it: lost, or to be settled */
    renewLiveBatch: `
      INSERT INTO ${tables.lock} AS l (key, token, answer)
      SELECT r.key, r.token, jsonb_build_array(r.claim, r.ttl)
      FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS r (key, claim, token, ttl)
      ORDER BY r.key COLLATE "C"
      ON CONFLICT (key) DO UPDATE
      SET until = greatest(l.until, ${columns.now} + (excluded.answer->1)::bigint), answer = NULL
      WHERE l.claim = excluded.answer->>0 AND l.token = excluded.token AND l.until > ${columns.now}
      RETURNING l.key, l.answer IS NOT NULL AS made`,

    /** keys, claims, tokens → key, made; not in it: lost, or somebody waits */
    releaseUnqueuedBatch: `
      INSERT INTO ${tables.lock} AS l (key, token, answer)
      SELECT r.key, r.token, to_jsonb(r.claim)
      FROM unnest($1::text[], $2::text[], $3::bigint[]) AS r (key, claim, token)
      ORDER BY r.key COLLATE "C"
      ON CONFLICT (key) DO UPDATE
      SET claim = NULL, session = NULL, holder = NULL, until = NULL, answer = NULL
      WHERE l.claim = excluded.answer #>> '{}' AND l.token = excluded.token AND l.until > ${columns.now}
        AND l.queue IS NULL
      RETURNING l.key, l.answer IS NOT NULL AS made`,
  };
}

/**
 * wishes (JSON) → key, token, answer, and whether a notice was sent. A row whose answer has `o` was made in this step:
 * nobody had the key.
 */
function settle(tables: PostgresTables): string {
  const columns = { settled: settledColumns };
  return `
    INSERT INTO ${tables.lock} AS l (key, token, claim, session, holder, until, tombs, answer)
    SELECT
      w->>'k',
      CASE w->>'o' WHEN 'a' THEN greatest((w->>'f')::bigint, m.n) ELSE 0 END,
      CASE w->>'o' WHEN 'a' THEN w->>'c' END,
      CASE w->>'o' WHEN 'a' THEN w->>'s' END,
      CASE w->>'o' WHEN 'a' THEN w->>'h' END,
      CASE w->>'o' WHEN 'a' THEN m.n + (w->>'t')::bigint END,
      CASE WHEN w->>'o' = 'c' AND (w->>'g')::bigint > 0
        THEN jsonb_build_object(w->>'c', m.n + (w->>'g')::bigint) END,
      w
    FROM jsonb_array_elements($1::jsonb) AS w
      CROSS JOIN (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS n) AS m
    ORDER BY (w->>'k') COLLATE "C"
    ON CONFLICT (key) DO UPDATE SET (token, claim, session, holder, until, queue, tombs, answer) = (
      ${columns.settled}
    )
    RETURNING l.key, l.token, l.answer::text AS answer,
      CASE WHEN l.answer ? 'n' THEN pg_notify(
        'guard_' || left(encode(sha256(convert_to(l.answer->'n'->>'s', 'UTF8')), 'hex'), 32),
        (l.answer->'n')::text
      )::text END AS told`;
}

/**
 * The new columns of a row, step by step: m the moment, w the wish, a what the row says of it, b what time and the wish
 * leave of holder and queue, h who holds the lock once it is handed over, v the verdict, p the claim's place in the
 * queue. `OFFSET 0` keeps the planner from carrying a step out more than once.
 */
const settledColumns = `
  SELECT
    CASE WHEN v.verdict <> 'g' THEN h.token WHEN h.claim IS NULL THEN greatest(h.token + 1, w.floor, m.n)
      ELSE greatest(h.token, w.floor) END,
    CASE v.verdict WHEN 'g' THEN w.claim ELSE h.claim END,
    CASE v.verdict WHEN 'g' THEN w.session ELSE h.session END,
    CASE v.verdict WHEN 'g' THEN w.holder ELSE h.holder END,
    CASE WHEN v.verdict IN ('g', 'n') THEN greatest(h.until, m.n + w.ttl) ELSE h.until END,
    CASE
      WHEN v.verdict = 'q' AND p.place IS NULL THEN coalesce(h.queue, '[]') || jsonb_build_object(
        'c', w.claim, 's', w.session, 'h', w.holder, 'f', w.floor::text,
        'q', w.ticket_ttl, 'u', m.n + w.ticket_ttl
      )
      WHEN v.verdict = 'q' THEN (
        SELECT jsonb_agg(
          CASE WHEN x->>'s' = w.session THEN x || jsonb_build_object('u', m.n + (x->>'q')::bigint) ELSE x END
          ORDER BY i
        )
        FROM jsonb_array_elements(h.queue) WITH ORDINALITY AS e (x, i)
      )
      WHEN v.verdict = 'b' AND p.place IS NOT NULL THEN nullif(h.queue - p.place, '[]')
      ELSE h.queue
    END,
    CASE WHEN l.tombs IS NOT NULL OR w.tomb > 0 THEN (
      SELECT jsonb_object_agg(k, u) FROM (
        SELECT k, max(u) AS u FROM (
          SELECT k, u::bigint AS u FROM jsonb_each_text(l.tombs) AS e (k, u)
          UNION ALL SELECT w.claim, m.n + w.tomb WHERE w.tomb > 0
        ) AS every WHERE u > m.n GROUP BY k ORDER BY 2 DESC LIMIT 1000
      ) AS kept
    ) END,
    jsonb_strip_nulls(jsonb_build_object(
      's', v.verdict,
      'a', CASE v.verdict WHEN 'q' THEN coalesce(p.place, jsonb_array_length(coalesce(h.queue, '[]'))) END,
      'f', CASE v.verdict WHEN 'q' THEN p.place IS NULL END,
      'h', CASE v.verdict WHEN 'b' THEN h.holder END,
      'e', CASE v.verdict WHEN 'b' THEN h.until - m.n END,
      'n', CASE WHEN h.handed
        THEN jsonb_build_object('k', l.key, 'c', h.claim, 't', h.token::text, 's', h.session) END
    ))
  FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS n) AS m
  CROSS JOIN LATERAL (
    SELECT
      o->>'o' AS op, o->>'c' AS claim, o->>'s' AS session, o->>'h' AS holder, (o->>'t')::bigint AS ttl,
      (o->>'q')::bigint AS ticket_ttl, (o->>'f')::bigint AS floor, coalesce((o->>'w')::boolean, false) AS waits,
      (o->>'x')::bigint AS token, coalesce((o->>'g')::bigint, 0) AS tomb
    FROM (SELECT excluded.answer AS o) AS given OFFSET 0
  ) AS w
  CROSS JOIN LATERAL (
    SELECT
      coalesce(l.until > m.n, false) AS held,
      coalesce(l.until > m.n AND l.claim = w.claim AND l.token = coalesce(w.token, l.token), false) AS mine
    OFFSET 0
  ) AS a
  CROSS JOIN LATERAL (
    SELECT
      a.held AND NOT (a.mine AND w.op IN ('c', 'r')) AS stays,
      w.op = 'c' AND coalesce(l.queue @> jsonb_build_array(jsonb_build_object('c', w.claim)), false) AS waited,
      (
        SELECT jsonb_agg(x ORDER BY i) FROM jsonb_array_elements(l.queue) WITH ORDINALITY AS e (x, i)
        WHERE (x->>'u')::bigint > m.n AND NOT (w.op = 'c' AND x->>'c' = w.claim)
      ) AS queue
    OFFSET 0
  ) AS b
  CROSS JOIN LATERAL (
    SELECT
      x IS NOT NULL AS handed,
      CASE WHEN x IS NULL THEN l.token ELSE greatest(l.token + 1, (x->>'f')::bigint, m.n) END AS token,
      CASE WHEN b.stays THEN l.claim ELSE x->>'c' END AS claim,
      CASE WHEN b.stays THEN l.session ELSE x->>'s' END AS session,
      CASE WHEN b.stays THEN l.holder ELSE x->>'h' END AS holder,
      CASE WHEN b.stays THEN l.until ELSE m.n + (x->>'q')::bigint END AS until,
      CASE WHEN x IS NULL THEN b.queue ELSE nullif(b.queue - 0, '[]') END AS queue
    FROM (SELECT CASE WHEN NOT b.stays THEN b.queue->0 END AS x OFFSET 0) AS next OFFSET 0
  ) AS h
  CROSS JOIN LATERAL (
    SELECT CASE
      WHEN w.op = 'a' AND coalesce((l.tombs->>w.claim)::bigint > m.n, false) THEN 'd'
      WHEN w.op = 'a' AND (h.claim IS NULL OR h.claim = w.claim) THEN 'g'
      WHEN w.op = 'a' AND w.waits THEN 'q'
      WHEN w.op = 'a' THEN 'b'
      WHEN w.op = 'n' AND a.mine THEN 'n'
      WHEN w.op = 'r' AND a.mine THEN 'r'
      WHEN w.op = 'c' AND (a.mine OR b.waited OR w.tomb > 0) THEN 'r'
      ELSE 'l'
    END AS verdict OFFSET 0
  ) AS v
  CROSS JOIN LATERAL (
    SELECT (
      SELECT i::int - 1 FROM jsonb_array_elements(h.queue) WITH ORDINALITY AS e (x, i) WHERE x->>'c' = w.claim
    ) AS place OFFSET 0
  ) AS p`;

function looks(tables: PostgresTables) {
  return {
    /** keys → for each in order: key, token, claim, session, holder, what is left of the lease, live tickets, queued */
    readKeys: `
      SELECT r.key, l.token, l.claim, l.session, l.holder, l.until - m.n AS left_us, l.queue IS NOT NULL AS queued,
        (SELECT count(*) FROM jsonb_array_elements(l.queue) AS x WHERE (x->>'u')::bigint > m.n) AS waiting
      FROM unnest($1::text[]) WITH ORDINALITY AS r (key, i)
        CROSS JOIN (SELECT ${columns.now} AS n) AS m
        LEFT JOIN ${tables.lock} AS l ON l.key = r.key
      ORDER BY r.i`,

    /** from, after, end of prefix or null, limit → the same of held locks, in the order of their bytes */
    readBelow: `
      SELECT l.key, l.token, l.claim, l.session, l.holder, l.until - m.n AS left_us, l.queue IS NOT NULL AS queued,
        (SELECT count(*) FROM jsonb_array_elements(l.queue) AS x WHERE (x->>'u')::bigint > m.n) AS waiting
      FROM ${tables.lock} AS l CROSS JOIN (SELECT ${columns.now} AS n) AS m
      WHERE l.key >= $1 AND l.key > $2 AND ($3::text IS NULL OR l.key < $3) AND l.until > m.n
      ORDER BY l.key LIMIT $4`,
  };
}

/**
 * after, how many to look at, age → the last key that was looked at, how many were. Removes rows that nobody has used
 * for that long and that mean nothing any more. A token ahead of the time is kept: the next one must be larger (S2).
 */
function keepHouse(tables: PostgresTables): string {
  return `
    WITH seen AS (SELECT key FROM ${tables.lock} WHERE key > $1 ORDER BY key LIMIT $2),
    idle AS (
      SELECT l.key FROM ${tables.lock} AS l CROSS JOIN (SELECT ${columns.now} AS n) AS m
      WHERE l.key IN (SELECT key FROM seen)
        AND coalesce(l.until, l.token) < m.n - $3::bigint AND l.token < m.n
        AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements(l.queue) AS x WHERE (x->>'u')::bigint > m.n)
        AND NOT EXISTS (SELECT 1 FROM jsonb_each_text(l.tombs) AS e (k, u) WHERE u::bigint > m.n)
      ORDER BY l.key FOR UPDATE OF l SKIP LOCKED
    ),
    gone AS (DELETE FROM ${tables.lock} WHERE key IN (SELECT key FROM idle))
    SELECT max(key) AS last, count(*) AS looked FROM seen`;
}
