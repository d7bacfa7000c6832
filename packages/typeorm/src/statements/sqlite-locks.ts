/**
 * The statements of locks in `<file>-guard`. Parameters stand in the order of their question marks. Every statement
 * is exact on its own or runs inside one `BEGIN IMMEDIATE` of the backend.
 */

/**
 * Takes a free key, in one statement: the common acquire. Answers no row where the key has a row already, or where
 * the claim has a tombstone (which makes the claim NULL, and `OR IGNORE` skips such a row).
 *
 * key, claim, claim, least token, session, label, run, boot, since, deadline → token
 */
export const TAKE_FREE = `
  INSERT OR IGNORE INTO guard_lock (key, claim, token, session, label, run, boot, since, deadline)
  VALUES (
    ?,
    CASE WHEN EXISTS (SELECT 1 FROM guard_tombstone WHERE claim = ?) THEN NULL ELSE ? END,
    max(?, coalesce((SELECT token FROM guard_lock WHERE key = ''), 0) + 1),
    ?, ?, ?, ?, ?, ?
  )
  RETURNING token`;

/** key → the row */
export const READ_LOCK = `SELECT * FROM guard_lock WHERE key = ?`;

/** → the largest token of all rows that were removed */
export const READ_LARGEST = `SELECT token FROM guard_lock WHERE key = ''`;

/**
 * Everything that a claim which waits already needs to know, in one consistent read.
 *
 * claim, claim, now, key → the lock's row, the ticket's, whether it has a tombstone, how many stand before it, and
 * when the first ticket of its session ends
 */
export const LOOK = `
  SELECT
    l.*,
    t.id AS ticket,
    t.boot AS ticket_boot,
    t.since AS ticket_since,
    t.deadline AS ticket_deadline,
    t.ticket_ttl,
    EXISTS (SELECT 1 FROM guard_tombstone WHERE claim = ?) AS given_up,
    (
      SELECT count(*) FROM guard_ticket AS o
      WHERE o.key = t.key AND o.id < t.id AND (o.boot <> t.boot OR o.deadline > ?)
    ) AS ahead,
    (
      SELECT min(s.deadline) FROM guard_ticket AS s WHERE s.key = t.key AND s.session = t.session
    ) AS session_deadline
  FROM guard_lock AS l LEFT JOIN guard_ticket AS t ON t.key = l.key AND t.claim = ?
  WHERE l.key = ?`;

/** A re-sent acquire of the holder. deadline, since, least token, key, claim → token */
export const TAKE_AGAIN = `
  UPDATE guard_lock SET deadline = max(deadline, ?), since = ?, token = max(token, ?)
  WHERE key = ? AND claim = ?
  RETURNING token`;

/** Gives the lock to another claim. claim, least token, session, label, run, boot, since, deadline, key → token */
export const HAND_OVER = `
  UPDATE guard_lock
  SET claim = ?, token = max(?, token + 1), session = ?, label = ?, run = ?, boot = ?, since = ?, deadline = ?
  WHERE key = ?
  RETURNING token`;

/** deadline, since, key, claim, token, boot, now */
export const RENEW = `
  UPDATE guard_lock SET deadline = max(deadline, ?), since = ?
  WHERE key = ? AND claim = ? AND token = ? AND boot = ? AND deadline > ?`;

/** The common release: held, live, and nobody waits. key, claim, token, boot, now, key */
export const RELEASE_UNQUEUED = `
  DELETE FROM guard_lock
  WHERE key = ? AND claim = ? AND token = ? AND boot = ? AND deadline > ?
    AND NOT EXISTS (SELECT 1 FROM guard_ticket WHERE key = ?)`;

/** key */
export const REMOVE_LOCK = `DELETE FROM guard_lock WHERE key = ?`;

/** key → its first ticket */
export const FIRST_TICKET = `SELECT * FROM guard_ticket WHERE key = ? ORDER BY id LIMIT 1`;

/** key, claim → the ticket */
export const READ_TICKET = `SELECT * FROM guard_ticket WHERE key = ? AND claim = ?`;

/** key, session, label, run, claim, floor, ticket ttl, boot, since, deadline */
export const ADD_TICKET = `
  INSERT INTO guard_ticket (key, session, label, run, claim, floor, ticket_ttl, boot, since, deadline)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Refreshes the live tickets of a session on a key. since, now rounded up, key, session, boot, now */
export const REFRESH_TICKETS = `
  UPDATE guard_ticket SET since = ?, deadline = ? + ticket_ttl
  WHERE key = ? AND session = ? AND boot = ? AND deadline > ?`;

/** id */
export const REMOVE_TICKET = `DELETE FROM guard_ticket WHERE id = ?`;

/** key, claim */
export const REMOVE_TICKET_OF = `DELETE FROM guard_ticket WHERE key = ? AND claim = ?`;

/** key, boot, now → how many live tickets; those of another boot count as alive */
export const COUNT_TICKETS = `
  SELECT count(*) AS waiting FROM guard_ticket WHERE key = ? AND (boot <> ? OR deadline > ?)`;

/** key, now, id → how many live tickets stand before the id */
export const COUNT_AHEAD = `
  SELECT count(*) AS ahead FROM guard_ticket WHERE key = ? AND deadline > ? AND id < ?`;

/** claim → the tombstone */
export const READ_TOMBSTONE = `SELECT * FROM guard_tombstone WHERE claim = ?`;

/** claim, boot, since, deadline */
export const LEAVE_TOMBSTONE = `
  INSERT INTO guard_tombstone (claim, boot, since, deadline) VALUES (?, ?, ?, ?)
  ON CONFLICT (claim) DO UPDATE SET
    boot = excluded.boot, since = excluded.since, deadline = max(deadline, excluded.deadline)`;

/** claim */
export const REMOVE_TOMBSTONE = `DELETE FROM guard_tombstone WHERE claim = ?`;

/** prefix, end of prefix, after, limit → rows in the order of their bytes */
export const READ_LOCKS_BELOW = `
  SELECT * FROM guard_lock
  WHERE key >= ? AND key < CAST(? AS TEXT) AND key > ? AND key <> ''
  ORDER BY key LIMIT ?`;

/** after, limit → rows in the order of their bytes: a walk through the table, a stretch at a time */
export const WALK_LOCKS = `SELECT * FROM guard_lock WHERE key > ? ORDER BY key LIMIT ?`;

/** after, limit → dead or alive, by id */
export const WALK_TICKETS = `SELECT * FROM guard_ticket WHERE id > ? ORDER BY id LIMIT ?`;

/** after, limit → dead or alive, by claim */
export const WALK_TOMBSTONES = `SELECT * FROM guard_tombstone WHERE claim > ? ORDER BY claim LIMIT ?`;
