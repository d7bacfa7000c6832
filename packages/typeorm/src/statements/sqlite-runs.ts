/**
 * The statements of runs in the application's SQLite file. Parameters stand in the order of their question marks.
 *
 * A version is two numbers: `seq`, which SQLite never uses twice for a table, and `version`, which every change
 * raises. So no version of a key comes back, not even after its record was removed and made anew.
 */
import type { TableNames } from '../tables.js';

/** The statements for one set of table names. */
export function runStatements(tables: TableNames) {
  return { ...records(tables), ...history(tables), ...pruning(tables), ...registry(tables) };
}

/** The statements for one set of table names. */
export type RunStatements = ReturnType<typeof runStatements>;

function records(tables: TableNames) {
  return {
    /** namespace, task, key, id, then the columns of `SET_COLUMNS` → seq; no row: the key is taken */
    create: `
      INSERT INTO "${tables.run}" (
        namespace, task, run_key, id, version, pruned, state, open, attempt, takeovers, triggered_by, reason,
        scheduled_for_ms, available_at_ms, created_at_ms, started_at_ms, finished_at_ms, updated_at_ms,
        lock_backend, lock_key, lock_token, node_id, node_label, record
      )
      VALUES (?, ?, ?, ?, 1, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (namespace, task, run_key) DO NOTHING
      RETURNING seq`,

    /** the columns of a record, then namespace, task, key, seq, version → version; no row: it has moved on */
    move: `
      UPDATE "${tables.run}" SET
        version = version + 1, pruned = 0, state = ?, open = ?, attempt = ?, takeovers = ?, triggered_by = ?,
        reason = ?, scheduled_for_ms = ?, available_at_ms = ?, created_at_ms = ?, started_at_ms = ?,
        finished_at_ms = ?, updated_at_ms = ?, lock_backend = ?, lock_key = ?, lock_token = ?, node_id = ?,
        node_label = ?, record = ?
      WHERE namespace = ? AND task = ? AND run_key = ? AND seq = ? AND version = ?
      RETURNING version`,

    /** namespace, task, key → seq, version, record */
    read: `
      SELECT seq, version, record FROM "${tables.run}" WHERE namespace = ? AND task = ? AND run_key = ?`,

    /** namespace, tasks (JSON), latest time a pending one was due, created, created, seq, limit → oldest first */
    due: `
      SELECT seq, version, created_at_ms, task, run_key, record FROM "${tables.run}"
      WHERE namespace = ? AND open = 1
        AND task IN (SELECT value FROM json_each(?))
        AND (state <> 'pending' OR available_at_ms <= ?)
        AND (created_at_ms > ? OR (created_at_ms = ? AND seq > ?))
      ORDER BY created_at_ms, seq LIMIT ?`,

    /** namespace, created, created, seq, limit → newest first, tombstones too */
    newest: `
      SELECT seq, version, created_at_ms, state, pruned, record FROM "${tables.run}"
      WHERE namespace = ? AND (created_at_ms < ? OR (created_at_ms = ? AND seq < ?))
      ORDER BY created_at_ms DESC, seq DESC LIMIT ?`,

    /** namespace, task, created, created, seq, limit → newest first, tombstones too */
    newestOfTask: `
      SELECT seq, version, created_at_ms, state, pruned, record FROM "${tables.run}"
      WHERE namespace = ? AND task = ? AND (created_at_ms < ? OR (created_at_ms = ? AND seq < ?))
      ORDER BY created_at_ms DESC, seq DESC LIMIT ?`,
  };
}

function history(tables: TableNames) {
  return {
    /** run seq, write id, at, what, from, to, event */
    addEvent: `
      INSERT INTO "${tables.runEvent}" (run_seq, write_id, at_ms, what, from_state, to_state, event)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,

    /** run seq, write id → whether the write is part of the history */
    knowsWrite: `SELECT 1 FROM "${tables.runEvent}" WHERE run_seq = ? AND write_id = ? LIMIT 1`,

    /** run seq → events, oldest first */
    events: `SELECT event FROM "${tables.runEvent}" WHERE run_seq = ? ORDER BY seq`,

    /** run seq, run seq, how many lines stay: removes reports of progress that are older than those */
    trimProgress: `
      DELETE FROM "${tables.runEvent}"
      WHERE run_seq = ? AND what = 'progress' AND seq <= (
        SELECT seq FROM "${tables.runEvent}" WHERE run_seq = ? ORDER BY seq DESC LIMIT 1 OFFSET ?
      )`,

    /** run seq */
    dropEvents: `DELETE FROM "${tables.runEvent}" WHERE run_seq = ?`,
  };
}

function pruning(tables: TableNames) {
  return {
    /** namespace, finished before, limit → finished records that still have their content, oldest first */
    strippable: `
      SELECT seq, version, record FROM "${tables.run}"
      WHERE namespace = ? AND pruned = 0 AND finished_at_ms < ? AND open = 0
      ORDER BY finished_at_ms LIMIT ?`,

    /** namespace, finished before, limit → finished records whose key may go; not instants above the mark */
    removable: `
      SELECT seq FROM "${tables.run}" AS r
      WHERE namespace = ? AND pruned IN (0, 1) AND finished_at_ms < ? AND open = 0
        AND NOT EXISTS (
          SELECT 1 FROM "${tables.task}" AS t
          WHERE t.namespace = r.namespace AND t.task = r.task AND t.low_water_mark_ms < r.scheduled_for_ms
        )
      LIMIT ?`,

    /** record, seq, version */
    strip: `
      UPDATE "${tables.run}" SET record = ?, pruned = 1, version = version + 1 WHERE seq = ? AND version = ?`,

    /** seq */
    remove: `DELETE FROM "${tables.run}" WHERE seq = ?`,
  };
}

function registry(tables: TableNames) {
  return {
    /** namespace, task → seq, version, record */
    readTask: `SELECT seq, version, record FROM "${tables.task}" WHERE namespace = ? AND task = ?`,

    /** namespace, task, definition, mark, note, paused since, last success, record → seq; no row: it is there */
    createTask: `
      INSERT INTO "${tables.task}" (
        namespace, task, version, definition, low_water_mark_ms, paused_note, paused_since_ms, last_success_ms,
        record
      )
      VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (namespace, task) DO NOTHING
      RETURNING seq`,

    /** definition, mark, note, paused since, last success, record, namespace, task, seq, version → version */
    moveTask: `
      UPDATE "${tables.task}" SET
        version = version + 1, definition = ?, low_water_mark_ms = ?, paused_note = ?, paused_since_ms = ?,
        last_success_ms = ?, record = ?
      WHERE namespace = ? AND task = ? AND seq = ? AND version = ?
      RETURNING version`,

    /** namespace, id, label, started, boot, since, deadline, record */
    putNode: `
      INSERT INTO "${tables.node}" (namespace, id, label, started_at_ms, boot, since, deadline, record)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (namespace, id) DO UPDATE SET
        label = excluded.label, started_at_ms = excluded.started_at_ms, boot = excluded.boot,
        since = excluded.since, deadline = excluded.deadline, record = excluded.record`,

    /** namespace → id, boot, since, deadline, record */
    nodes: `SELECT id, boot, since, deadline, record FROM "${tables.node}" WHERE namespace = ? ORDER BY seq`,

    /** namespace, id */
    removeNode: `DELETE FROM "${tables.node}" WHERE namespace = ? AND id = ?`,
  };
}
