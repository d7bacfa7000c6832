/**
 * The statements of Guard inside a transaction of the application on MariaDB. They run on a connection of the
 * application, so texts come as bytes, which no character set and no mode of it can bend, and are compared with nothing
 * that has an index. Parameters stand in the order of their question marks.
 *
 * What they lock stays locked until the application commits. By the unique index of `identity` InnoDB locks the keys
 * between a record and the one before it as well, at every isolation level but READ COMMITTED, and on an insertion that
 * meets its key at that one too: nobody could ask for a run whose hash falls there. By the primary key it locks the row.
 */
import type { MariadbTables } from '../mariadb/names.js';

/** The statements for one set of tables. */
export function transactionStatements(tables: MariadbTables) {
  return {
    /** resource, token → the largest token; if it is not ours, a larger one was here before */
    pass: `
      INSERT INTO ${tables.fence} (resource, token) VALUES (?, ?)
      ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))
      RETURNING CAST(token AS CHAR) AS token`,

    /** identity, namespace, task, key, id, the columns of a record, id → seq; untouched: the key is taken */
    create: `
      INSERT INTO ${tables.run} (
        identity, namespace, task, run_key, id, version, pruned, state, open, attempt, takeovers, triggered_by, reason,
        scheduled_for_ms, available_at_ms, created_at_ms, started_at_ms, finished_at_ms, updated_at_ms, lock_backend,
        lock_key, lock_token, node_id, node_label, record
      )
      VALUES (?, ?, ?, ?, ?, 1, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON DUPLICATE KEY UPDATE seq = seq
      RETURNING CAST(seq AS CHAR) AS seq, IF(id = ?, 'f', 't') AS untouched`,

    /**
     * Whether the key is taken, with no lock on it or beside it: a plain SELECT has them where transactions are
     * SERIALIZABLE, a HANDLER nowhere. It sees what the transaction sees.
     */
    open: `HANDLER ${tables.run} OPEN AS guard_look`,
    /** identity → the row, none: it is free, or was taken since the transaction began */
    look: `HANDLER guard_look READ ${tables.runKey} = (?)`,
    close: `HANDLER guard_look CLOSE`,

    /** the columns of a record, identity, seq, version: changes one row, or none: it has moved on */
    move: `
      UPDATE ${tables.run} FORCE INDEX (PRIMARY) SET
        version = version + 1, pruned = 0, state = ?, open = ?, attempt = ?, takeovers = ?, triggered_by = ?,
        reason = ?, scheduled_for_ms = ?, available_at_ms = ?, created_at_ms = ?, started_at_ms = ?,
        finished_at_ms = ?, updated_at_ms = ?, lock_backend = ?, lock_key = ?, lock_token = ?, node_id = ?,
        node_label = ?, record = ?
      WHERE identity = ? AND seq = ? AND version = ?`,

    /** run seq, write id, at, what, from, to, event */
    addEvent: `
      INSERT INTO ${tables.runEvent} (run_seq, write_id, at_ms, what, from_state, to_state, event)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,

    /** identity → record, as it is now and not as it was when the transaction began */
    read: `SELECT CAST(record AS BINARY) AS record FROM ${tables.run} WHERE identity = ? LOCK IN SHARE MODE`,

    /** seq → the same */
    readRow: `
      SELECT CAST(record AS BINARY) AS record FROM ${tables.run} FORCE INDEX (PRIMARY) WHERE seq = ? LOCK IN SHARE MODE`,
  };
}
