/**
 * The statements of runs on Postgres. A change and its line of history are one statement: both are there or neither is.
 *
 * A version is two numbers: `seq`, which a sequence never gives twice, and `version`, which every change raises. So no
 * version of a key comes back, not even after its record was removed and made anew.
 */
import type { PostgresTables } from '../postgres/names.js';

/** The statements for one set of tables. */
export function runStatements(tables: PostgresTables) {
  return { ...changes(tables), ...looks(tables), ...pruning(tables), ...registry(tables) };
}

/** The statements for one set of tables. */
export type RunStatements = Readonly<Record<keyof ReturnType<typeof runStatements>, string>>;

/** Pieces of the texts below. */
const columns = {
  nowMs: `floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint`,
  /** Parameters 1 to 18 of a change, in the order of `runColumns`; 19 to 24 are the line of history. */
  line: `$19, $20::bigint, $21, $22, $23, $24`,
};

function changes(tables: PostgresTables) {
  return {
    /** the columns of a record, the line, then namespace, task, key, id → seq; no row: the key is taken */
    create: `
      WITH made AS (
        INSERT INTO ${tables.run} (
          state, open, attempt, takeovers, triggered_by, reason, scheduled_for_ms, available_at_ms, created_at_ms,
          started_at_ms, finished_at_ms, updated_at_ms, lock_backend, lock_key, lock_token, node_id, node_label,
          record, namespace, task, run_key, id, version, pruned
        )
        VALUES (
          $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $25, $26, $27, $28, 1, 0
        )
        ON CONFLICT (namespace, task, run_key) DO NOTHING
        RETURNING seq
      ),
      line AS (
        INSERT INTO ${tables.runEvent} (run_seq, write_id, at_ms, what, from_state, to_state, event)
        SELECT seq, ${columns.line} FROM made
      )
      SELECT seq FROM made`,

    /**
     * the columns of a record, the line, then namespace, task, key, seq, version, id → version; no row: it has moved on.
     * In a transaction of the application the search path may lead to the tables of somebody else, with the same numbers.
     */
    move: `
      WITH moved AS (
        UPDATE ${tables.run} SET
          version = version + 1, pruned = 0, state = $1, open = $2, attempt = $3, takeovers = $4, triggered_by = $5,
          reason = $6, scheduled_for_ms = $7, available_at_ms = $8, created_at_ms = $9, started_at_ms = $10,
          finished_at_ms = $11, updated_at_ms = $12, lock_backend = $13, lock_key = $14, lock_token = $15,
          node_id = $16, node_label = $17, record = $18
        WHERE namespace = $25 AND task = $26 AND run_key = $27 AND seq = $28 AND version = $29 AND id = $30
        RETURNING seq, version
      ),
      line AS (
        INSERT INTO ${tables.runEvent} (run_seq, write_id, at_ms, what, from_state, to_state, event)
        SELECT seq, ${columns.line} FROM moved
      )
      SELECT version FROM moved`,

    /** run seq, how many lines stay: removes reports of progress that are older than those */
    trimProgress: `
      DELETE FROM ${tables.runEvent}
      WHERE run_seq = $1 AND what = 'progress' AND seq <= (
        SELECT seq FROM ${tables.runEvent} WHERE run_seq = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2
      )`,
  };
}

function looks(tables: PostgresTables) {
  return {
    /** namespace, task, key → seq, version, record */
    read: `
      SELECT seq, version, record FROM ${tables.run} WHERE namespace = $1 AND task = $2 AND run_key = $3`,

    /** namespace, task, key, write id → the same, and whether the write is part of the history */
    judge: `
      SELECT r.seq, r.version, r.record, EXISTS (
        SELECT 1 FROM ${tables.runEvent} AS e WHERE e.run_seq = r.seq AND e.write_id = $4
      ) AS known
      FROM ${tables.run} AS r WHERE r.namespace = $1 AND r.task = $2 AND r.run_key = $3`,

    /** namespace, task, key → events, oldest first */
    events: `
      SELECT e.event FROM ${tables.run} AS r JOIN ${tables.runEvent} AS e ON e.run_seq = r.seq
      WHERE r.namespace = $1 AND r.task = $2 AND r.run_key = $3 ORDER BY e.seq`,

    /** namespace, tasks, how long overdue, created, seq, limit → oldest first */
    due: `
      SELECT seq, version, created_at_ms, task, run_key, record FROM ${tables.run}
      WHERE namespace = $1 AND open = 1 AND task = ANY ($2::text[])
        AND (state <> 'pending' OR available_at_ms <= (SELECT ${columns.nowMs}) - $3::bigint)
        AND (created_at_ms, seq) > ($4::bigint, $5::bigint)
      ORDER BY created_at_ms, seq LIMIT $6`,

    /** namespace, created, seq, limit → newest first, tombstones too */
    newest: `
      SELECT seq, version, created_at_ms, state, pruned, record FROM ${tables.run}
      WHERE namespace = $1 AND (created_at_ms, seq) < ($2::bigint, $3::bigint)
      ORDER BY created_at_ms DESC, seq DESC LIMIT $4`,

    /** namespace, created, seq, limit, task → newest first, tombstones too */
    newestOfTask: `
      SELECT seq, version, created_at_ms, state, pruned, record FROM ${tables.run}
      WHERE namespace = $1 AND task = $5 AND (created_at_ms, seq) < ($2::bigint, $3::bigint)
      ORDER BY created_at_ms DESC, seq DESC LIMIT $4`,

    /** → milliseconds since the epoch */
    now: `SELECT ${columns.nowMs} AS now`,
  };
}

/** Rows that another node is busy with are passed over: the next time will do. */
function pruning(tables: PostgresTables) {
  return {
    /** namespace, finished before, limit → finished records that still have their content, oldest first */
    strippable: `
      SELECT seq, version, record FROM ${tables.run}
      WHERE namespace = $1 AND pruned = 0 AND finished_at_ms < $2::bigint AND open = 0
      ORDER BY finished_at_ms LIMIT $3`,

    /** namespace, finished before, limit → how many records went; not instants above the mark */
    remove: `
      WITH over AS (
        SELECT r.seq FROM ${tables.run} AS r
        WHERE r.namespace = $1 AND r.pruned IN (0, 1) AND r.finished_at_ms < $2::bigint AND r.open = 0
          AND NOT EXISTS (
            SELECT 1 FROM ${tables.task} AS t
            WHERE t.namespace = r.namespace AND t.task = r.task AND t.low_water_mark_ms < r.scheduled_for_ms
          )
        ORDER BY r.seq LIMIT $3 FOR UPDATE OF r SKIP LOCKED
      ),
      lines AS (DELETE FROM ${tables.runEvent} WHERE run_seq IN (SELECT seq FROM over)),
      gone AS (DELETE FROM ${tables.run} WHERE seq IN (SELECT seq FROM over) RETURNING seq)
      SELECT count(*) AS gone FROM gone`,

    /** seqs, versions, records → how many were stripped */
    strip: `
      WITH bare AS (
        SELECT r.seq, b.record
        FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS b (seq, version, record)
          JOIN ${tables.run} AS r ON r.seq = b.seq AND r.version = b.version
        ORDER BY r.seq FOR UPDATE OF r SKIP LOCKED
      ),
      done AS (
        UPDATE ${tables.run} AS r SET record = b.record, pruned = 1, version = r.version + 1
        FROM bare AS b WHERE r.seq = b.seq
        RETURNING r.seq
      ),
      lines AS (DELETE FROM ${tables.runEvent} WHERE run_seq IN (SELECT seq FROM bare))
      SELECT count(*) AS stripped FROM done`,
  };
}

function registry(tables: PostgresTables) {
  return {
    /** namespace, task → seq, version, record */
    readTask: `SELECT seq, version, record FROM ${tables.task} WHERE namespace = $1 AND task = $2`,

    /** definition, mark, note, paused since, last success, record, namespace, task → seq; no row: it is there */
    createTask: `
      INSERT INTO ${tables.task} (
        definition, low_water_mark_ms, paused_note, paused_since_ms, last_success_ms, record, namespace, task, version
      )
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)
      ON CONFLICT (namespace, task) DO NOTHING
      RETURNING seq`,

    /** definition, mark, note, paused since, last success, record, namespace, task, seq, version → version */
    moveTask: `
      UPDATE ${tables.task} SET
        version = version + 1, definition = $1, low_water_mark_ms = $2, paused_note = $3, paused_since_ms = $4,
        last_success_ms = $5, record = $6
      WHERE namespace = $7 AND task = $8 AND seq = $9 AND version = $10
      RETURNING version`,

    /** namespace, id, label, started, ttl, record */
    putNode: `
      INSERT INTO ${tables.node} (namespace, id, label, started_at_ms, boot, since, deadline, record)
      SELECT $1, $2, $3, $4::bigint, 'server', m.n, m.n + $5::bigint, $6 FROM (SELECT ${columns.nowMs} AS n) AS m
      ON CONFLICT (namespace, id) DO UPDATE SET
        label = excluded.label, started_at_ms = excluded.started_at_ms, since = excluded.since,
        deadline = excluded.deadline, record = excluded.record`,

    /** namespace */
    dropDeadNodes: `
      DELETE FROM ${tables.node} WHERE seq IN (
        SELECT seq FROM ${tables.node} WHERE namespace = $1 AND deadline <= (SELECT ${columns.nowMs})
        ORDER BY seq FOR UPDATE SKIP LOCKED
      )`,

    /** namespace → record */
    nodes: `
      SELECT record FROM ${tables.node}
      WHERE namespace = $1 AND deadline > (SELECT ${columns.nowMs}) ORDER BY seq`,

    /** namespace, id */
    removeNode: `DELETE FROM ${tables.node} WHERE namespace = $1 AND id = $2`,
  };
}
