/**
 * The tables that Guard has in the application's SQLite file. Written so that TypeORM's schema builder, which is told
 * of them by `guardEntities`, finds nothing to change.
 *
 * Times are milliseconds since the epoch, except where a column has the machine's monotonic clock (`boot`, `since`,
 * `deadline`). `record` and `event` hold the whole value as JSON; the columns beside it are there to be queried.
 */
import type { TableNames } from '../tables.js';

/** One statement for each table and index; all can be run again. */
export function createTables(tables: TableNames): readonly string[] {
  return [...createRuns(tables), ...createTasks(tables), ...createNodes(tables), createFences(tables)];
}

/** Takes back what `createTables` made. */
export function dropTables(tables: TableNames): readonly string[] {
  return [
    `DROP TABLE IF EXISTS "${tables.runEvent}"`,
    `DROP TABLE IF EXISTS "${tables.run}"`,
    `DROP TABLE IF EXISTS "${tables.task}"`,
    `DROP TABLE IF EXISTS "${tables.node}"`,
    `DROP TABLE IF EXISTS "${tables.fence}"`,
  ];
}

function createRuns(tables: TableNames): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS "${tables.run}" (
      "seq" integer PRIMARY KEY AUTOINCREMENT NOT NULL,
      "namespace" text NOT NULL,
      "task" text NOT NULL,
      "run_key" text NOT NULL,
      "id" text NOT NULL,
      "version" bigint NOT NULL,
      "state" text NOT NULL,
      "open" integer NOT NULL,
      "pruned" integer NOT NULL,
      "attempt" integer NOT NULL,
      "takeovers" integer NOT NULL,
      "triggered_by" text NOT NULL,
      "reason" text,
      "scheduled_for_ms" bigint,
      "available_at_ms" bigint,
      "created_at_ms" bigint NOT NULL,
      "started_at_ms" bigint,
      "finished_at_ms" bigint,
      "updated_at_ms" bigint NOT NULL,
      "lock_backend" text,
      "lock_key" text,
      "lock_token" text,
      "node_id" text,
      "node_label" text,
      "record" text NOT NULL
    )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS "${tables.run}_key" ON "${tables.run}" ("namespace", "task", "run_key")`,
    `CREATE INDEX IF NOT EXISTS "${tables.run}_open"
      ON "${tables.run}" ("namespace", "open", "created_at_ms", "seq")`,
    `CREATE INDEX IF NOT EXISTS "${tables.run}_newest" ON "${tables.run}" ("namespace", "created_at_ms", "seq")`,
    `CREATE INDEX IF NOT EXISTS "${tables.run}_newest_of_task"
      ON "${tables.run}" ("namespace", "task", "created_at_ms", "seq")`,
    `CREATE INDEX IF NOT EXISTS "${tables.run}_finished"
      ON "${tables.run}" ("namespace", "pruned", "finished_at_ms")`,
    `CREATE TABLE IF NOT EXISTS "${tables.runEvent}" (
      "seq" integer PRIMARY KEY AUTOINCREMENT NOT NULL,
      "run_seq" bigint NOT NULL,
      "write_id" text NOT NULL,
      "at_ms" bigint NOT NULL,
      "what" text NOT NULL,
      "from_state" text NOT NULL,
      "to_state" text NOT NULL,
      "event" text NOT NULL
    )`,
    `CREATE INDEX IF NOT EXISTS "${tables.runEvent}_of_run" ON "${tables.runEvent}" ("run_seq", "seq")`,
  ];
}

function createTasks(tables: TableNames): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS "${tables.task}" (
      "seq" integer PRIMARY KEY AUTOINCREMENT NOT NULL,
      "namespace" text NOT NULL,
      "task" text NOT NULL,
      "version" bigint NOT NULL,
      "definition" text,
      "low_water_mark_ms" bigint,
      "paused_note" text,
      "paused_since_ms" bigint,
      "last_success_ms" bigint,
      "record" text NOT NULL
    )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS "${tables.task}_name" ON "${tables.task}" ("namespace", "task")`,
  ];
}

function createNodes(tables: TableNames): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS "${tables.node}" (
      "seq" integer PRIMARY KEY AUTOINCREMENT NOT NULL,
      "namespace" text NOT NULL,
      "id" text NOT NULL,
      "label" text NOT NULL,
      "started_at_ms" bigint NOT NULL,
      "boot" text NOT NULL,
      "since" bigint NOT NULL,
      "deadline" bigint NOT NULL,
      "record" text NOT NULL
    )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS "${tables.node}_id" ON "${tables.node}" ("namespace", "id")`,
  ];
}

function createFences(tables: TableNames): string {
  return `CREATE TABLE IF NOT EXISTS "${tables.fence}" (
    "resource" text PRIMARY KEY NOT NULL,
    "token" bigint NOT NULL
  )`;
}
