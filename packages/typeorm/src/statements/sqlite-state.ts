/**
 * The statements of state in `<file>-guard`. Parameters stand in the order of their question marks. Versions are
 * larger than 2^53 some day, so they are read as `bigint`.
 *
 * An entry that is deleted, or whose time is over, stays for a while as a row without a meaning of its own: it holds
 * the fence that refuses an older holder, and the write id by which a re-sent delete recognises itself.
 */

/** key → the row */
export const READ_ENTRY = `SELECT * FROM guard_entry WHERE key = ?`;

/** least version → the next version of the file; it never restarts, whatever is deleted */
export const NEXT_VERSION = `
  UPDATE guard_version SET last = max(last + 1, ?) WHERE id = 1 RETURNING last`;

/** → the version of the last write */
export const LAST_VERSION = `SELECT last FROM guard_version WHERE id = 1`;

/** key, value, version, write id, fence lock, fence token, boot, since, deadline */
export const WRITE_ENTRY = `
  INSERT INTO guard_entry (key, value, version, write_id, fence_lock, fence_token, boot, since, deadline)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET
    value = excluded.value,
    version = excluded.version,
    write_id = excluded.write_id,
    fence_lock = excluded.fence_lock,
    fence_token = excluded.fence_token,
    boot = excluded.boot,
    since = excluded.since,
    deadline = excluded.deadline`;

/** first key, end of prefix, limit → rows with a value, in the order of their bytes */
export const SCAN_ENTRIES = `
  SELECT * FROM guard_entry
  WHERE key >= ? AND key < CAST(? AS TEXT) AND value IS NOT NULL
  ORDER BY key LIMIT ?`;

/** version, limit → rows that were written after it, in the order of the writes */
export const CHANGED_ENTRIES = `SELECT * FROM guard_entry WHERE version > ? ORDER BY version LIMIT ?`;

/** after, limit → rows by id: a walk through the table, a stretch at a time */
export const WALK_ENTRIES = `SELECT * FROM guard_entry WHERE id > ? ORDER BY id LIMIT ?`;

/** id */
export const REMOVE_ENTRY = `DELETE FROM guard_entry WHERE id = ?`;
