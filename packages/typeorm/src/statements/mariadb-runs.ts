/**
 * The statements of runs on MariaDB: the same verbs, parameters and answers as on Postgres (see `postgres-runs.ts`). A
 * change and its line of history are one message and one transaction: the server carries both out, or neither, whatever
 * becomes of the client.
 *
 * Names are too long together for an index, so a record is found by `identity`, the hash of all three.
 */
import type { MariadbTables } from '../mariadb/names.js';
import { PIECES } from './mariadb-pieces.js';
import type { RunStatements } from './postgres-runs.js';

/** The statements for one set of tables. */
export function runStatements(tables: MariadbTables): RunStatements {
  return { ...changes(tables), ...looks(tables), ...pruning(tables), ...registry(tables) };
}

/** Pieces of the texts below. */
const columns = {
  ...PIECES,
  /**
   * What goes wrong in a transaction undoes it at once. Not so where the server was told to stop (1317, 1969): no handler
   * hears of that, which is why a connection is thrown away after any error of a block.
   */
  allOrNothing: `DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; RESIGNAL; END`,
  /** Whatever the session has after a COMMIT of its own (`completion_type`). */
  commit: `COMMIT AND NO CHAIN NO RELEASE`,
  /** Parameters of a change 19 to 24: the line of history. */
  line: `$19, $20, $21, $22, $23, $24`,
  /** Parameters of a change 25 to 27, and of a look 1 to 3: namespace, task and key. */
  identity: `UNHEX(SHA2(CONCAT_WS(CHAR(0), $25, $26, $27), 256))`,
  sought: `UNHEX(SHA2(CONCAT_WS(CHAR(0), $1, $2, $3), 256))`,
};

/** → milliseconds since the epoch; within a transaction of the application */
export const ASK_TIME_WITHIN = `${columns.anywhere} SELECT ${columns.now} DIV 1000 AS now`;

/** → milliseconds since the epoch */
const ASK_TIME = `${columns.settings} SELECT ${columns.now} DIV 1000 AS now`;

function changes(tables: MariadbTables) {
  return {
    create: `
      ${columns.limits} BEGIN NOT ATOMIC
        DECLARE made BIGINT DEFAULT NULL;
        DECLARE taken INT DEFAULT 0;
        ${columns.allOrNothing};
        DECLARE CONTINUE HANDLER FOR 1062 SET taken = 1;
        START TRANSACTION;
        INSERT INTO ${tables.run} (
          state, open, attempt, takeovers, triggered_by, reason, scheduled_for_ms, available_at_ms, created_at_ms,
          started_at_ms, finished_at_ms, updated_at_ms, lock_backend, lock_key, lock_token, node_id, node_label,
          record, namespace, task, run_key, id, version, pruned, identity
        )
        VALUES (
          $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $25, $26, $27, $28, 1, 0,
          ${columns.identity}
        );
        IF NOT taken THEN
          SET made = LAST_INSERT_ID();
          INSERT INTO ${tables.runEvent} (run_seq, write_id, at_ms, what, from_state, to_state, event)
          VALUES (made, ${columns.line});
        END IF;
        ${columns.commit};
        SELECT made AS seq FROM DUAL WHERE made IS NOT NULL;
      END`,

    move: `
      ${columns.limits} BEGIN NOT ATOMIC
        DECLARE moved BIGINT DEFAULT NULL;
        ${columns.allOrNothing};
        START TRANSACTION;
        -- By its hash, keys beside it would be locked too, for as long as this waits for a transaction of the application.
        UPDATE ${tables.run} FORCE INDEX (PRIMARY) SET
          version = version + 1, pruned = 0, state = $1, open = $2, attempt = $3, takeovers = $4, triggered_by = $5,
          reason = $6, scheduled_for_ms = $7, available_at_ms = $8, created_at_ms = $9, started_at_ms = $10,
          finished_at_ms = $11, updated_at_ms = $12, lock_backend = $13, lock_key = $14, lock_token = $15,
          node_id = $16, node_label = $17, record = $18
        WHERE identity = ${columns.identity} AND seq = $28 AND version = $29;
        IF ROW_COUNT() = 1 THEN
          SET moved = CAST($29 AS SIGNED) + 1;
          INSERT INTO ${tables.runEvent} (run_seq, write_id, at_ms, what, from_state, to_state, event)
          VALUES ($28, ${columns.line});
        END IF;
        ${columns.commit};
        SELECT moved AS version FROM DUAL WHERE moved IS NOT NULL;
      END`,

    trimProgress: `
      ${columns.settings} DELETE FROM ${tables.runEvent}
      WHERE run_seq = $1 AND what = 'progress' AND seq <= (
        SELECT seq FROM (
          SELECT seq FROM ${tables.runEvent} WHERE run_seq = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2
        ) AS newest
      )`,
  };
}

function looks(tables: MariadbTables) {
  return {
    read: `${columns.settings} SELECT seq, version, record FROM ${tables.run} WHERE identity = ${columns.sought}`,

    judge: `
      ${columns.settings} SELECT r.seq, r.version, r.record, IF(EXISTS (
        SELECT 1 FROM ${tables.runEvent} AS e WHERE e.run_seq = r.seq AND e.write_id = $4
      ), 't', 'f') AS known
      FROM ${tables.run} AS r WHERE r.identity = ${columns.sought}`,

    events: `
      ${columns.settings} SELECT e.event FROM ${tables.run} AS r JOIN ${tables.runEvent} AS e ON e.run_seq = r.seq
      WHERE r.identity = ${columns.sought} ORDER BY e.seq`,

    due: `
      ${columns.settings} SELECT seq, version, created_at_ms, task, run_key, record FROM ${tables.run}
      WHERE namespace = $1 AND open = 1
        AND task IN (
          SELECT t.task FROM JSON_TABLE($2, '$[*]' COLUMNS (
            task VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$'
          )) AS t
        )
        AND (state <> 'pending' OR available_at_ms <= ${columns.now} DIV 1000 - CAST($3 AS SIGNED))
        AND (created_at_ms > CAST($4 AS SIGNED) OR (created_at_ms = CAST($4 AS SIGNED) AND seq > CAST($5 AS SIGNED)))
      ORDER BY created_at_ms, seq LIMIT $6`,

    newest: `
      ${columns.settings} SELECT seq, version, created_at_ms, state, pruned, record FROM ${tables.run}
      WHERE namespace = $1 AND (
        created_at_ms < CAST($2 AS SIGNED) OR (created_at_ms = CAST($2 AS SIGNED) AND seq < CAST($3 AS SIGNED))
      )
      ORDER BY created_at_ms DESC, seq DESC LIMIT $4`,

    newestOfTask: `
      ${columns.settings} SELECT seq, version, created_at_ms, state, pruned, record FROM ${tables.run}
      WHERE namespace = $1 AND task = $5 AND (
        created_at_ms < CAST($2 AS SIGNED) OR (created_at_ms = CAST($2 AS SIGNED) AND seq < CAST($3 AS SIGNED))
      )
      ORDER BY created_at_ms DESC, seq DESC LIMIT $4`,

    now: ASK_TIME,
  };
}

/** Rows that another node is busy with are waited for one by one, and judged again once they are there. */
function pruning(tables: MariadbTables) {
  return {
    strippable: `
      ${columns.settings} SELECT seq, version, record FROM ${tables.run}
      WHERE namespace = $1 AND pruned = 0 AND finished_at_ms < CAST($2 AS SIGNED) AND open = 0
      ORDER BY finished_at_ms LIMIT $3`,

    remove: `
      ${columns.settings} BEGIN NOT ATOMIC
        DECLARE gone BIGINT DEFAULT 0;
        ${columns.allOrNothing};
        FOR old IN (
          SELECT r.seq, r.version FROM ${tables.run} AS r
          WHERE r.namespace = $1 AND r.pruned IN (0, 1) AND r.finished_at_ms < CAST($2 AS SIGNED) AND r.open = 0
            AND NOT EXISTS (
              SELECT 1 FROM ${tables.task} AS t
              WHERE t.namespace = r.namespace AND t.task = r.task AND t.low_water_mark_ms < r.scheduled_for_ms
            )
          ORDER BY r.seq LIMIT $3
        ) DO
          START TRANSACTION;
          DELETE FROM ${tables.run} WHERE seq = old.seq AND version = old.version;
          IF ROW_COUNT() = 1 THEN
            SET gone = gone + 1;
            DELETE FROM ${tables.runEvent} WHERE run_seq = old.seq;
          END IF;
          ${columns.commit};
        END FOR;
        SELECT gone;
      END`,

    strip: `
      ${columns.settings} BEGIN NOT ATOMIC
        DECLARE stripped BIGINT DEFAULT 0;
        ${columns.allOrNothing};
        FOR bare IN (
          SELECT b.seq, b.version, b.record FROM JSON_TABLE($1, '$[*]' COLUMNS (
            seq BIGINT PATH '$[0]',
            version BIGINT PATH '$[1]',
            record LONGTEXT CHARACTER SET utf8mb4 PATH '$[2]'
          )) AS b ORDER BY b.seq
        ) DO
          START TRANSACTION;
          UPDATE ${tables.run} SET record = bare.record, pruned = 1, version = version + 1
          WHERE seq = bare.seq AND version = bare.version;
          IF ROW_COUNT() = 1 THEN
            SET stripped = stripped + 1;
            DELETE FROM ${tables.runEvent} WHERE run_seq = bare.seq;
          END IF;
          ${columns.commit};
        END FOR;
        SELECT stripped;
      END`,
  };
}

function registry(tables: MariadbTables) {
  return {
    readTask: `${columns.settings} SELECT seq, version, record FROM ${tables.task} WHERE namespace = $1 AND task = $2`,

    createTask: `
      ${columns.limits} BEGIN NOT ATOMIC
        DECLARE taken INT DEFAULT 0;
        DECLARE CONTINUE HANDLER FOR 1062 SET taken = 1;
        INSERT INTO ${tables.task} (
          definition, low_water_mark_ms, paused_note, paused_since_ms, last_success_ms, record, namespace, task, version
        )
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1);
        SELECT LAST_INSERT_ID() AS seq FROM DUAL WHERE NOT taken;
      END`,

    moveTask: `
      ${columns.limits} BEGIN NOT ATOMIC
        UPDATE ${tables.task} SET
          version = version + 1, definition = $1, low_water_mark_ms = $2, paused_note = $3, paused_since_ms = $4,
          last_success_ms = $5, record = $6
        WHERE namespace = $7 AND task = $8 AND seq = $9 AND version = $10;
        SELECT CAST($10 AS SIGNED) + 1 AS version FROM DUAL WHERE ROW_COUNT() = 1;
      END`,

    putNode: `
      ${columns.settings} INSERT INTO ${tables.node} (namespace, id, label, started_at_ms, boot, since, deadline, record)
      SELECT $1, $2, $3, $4, 'server', m.n, m.n + CAST($5 AS SIGNED), $6 FROM (SELECT ${columns.now} DIV 1000 AS n) AS m
      ON DUPLICATE KEY UPDATE
        label = VALUES(label), started_at_ms = VALUES(started_at_ms), since = VALUES(since),
        deadline = VALUES(deadline), record = VALUES(record)`,

    dropDeadNodes: `
      ${columns.settings} BEGIN NOT ATOMIC
        FOR dead IN (
          SELECT seq FROM ${tables.node}
          WHERE namespace = $1 AND deadline <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000
        ) DO
          DELETE FROM ${tables.node} WHERE seq = dead.seq AND deadline <= ${columns.now} DIV 1000;
        END FOR;
      END`,

    nodes: `
      ${columns.settings} SELECT record FROM ${tables.node}
      WHERE namespace = $1 AND deadline > ${columns.now} DIV 1000 ORDER BY seq`,

    removeNode: `${columns.limits} DELETE FROM ${tables.node} WHERE namespace = $1 AND id = $2`,
  };
}
