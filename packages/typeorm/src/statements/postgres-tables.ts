/**
 * The tables that Guard has in a Postgres database. Every text that is compared is `COLLATE "C"`: byte by byte, whatever
 * the locale of the database. Moments of leases and ttls are microseconds since the epoch by the server's clock, in
 * whole numbers, so no time zone and no date style can touch them; those of runs are milliseconds.
 *
 * The queue of a lock is in its row: one row is one step, and no snapshot can hide a ticket from a release.
 */
import { postgresTables, type PostgresTables } from '../postgres/names.js';
import type { TableNames } from '../tables.js';

/** One statement for each table, sequence and index; all can be run again. */
export function createTables(names: TableNames, schema: string | undefined): readonly string[] {
  const tables = postgresTables(names, schema);
  return [
    createLocks(tables),
    ...createEntries(names, tables),
    ...createRuns(names, tables),
    ...createTasks(names, tables),
    ...createNodes(names, tables),
    createFences(tables),
  ];
}

/** Takes back what `createTables` made. */
export function dropTables(names: TableNames, schema: string | undefined): readonly string[] {
  const tables = postgresTables(names, schema);
  return [
    `DROP TABLE IF EXISTS ${tables.runEvent}`,
    `DROP TABLE IF EXISTS ${tables.run}`,
    `DROP TABLE IF EXISTS ${tables.task}`,
    `DROP TABLE IF EXISTS ${tables.node}`,
    `DROP TABLE IF EXISTS ${tables.fence}`,
    `DROP TABLE IF EXISTS ${tables.entry}`,
    `DROP SEQUENCE IF EXISTS ${tables.version}`,
    `DROP TABLE IF EXISTS ${tables.lock}`,
  ];
}

/** Lets one process at a time make the tables: `IF NOT EXISTS` alone fails where two are at it. */
export const ONE_AT_A_TIME = `SELECT pg_advisory_xact_lock(5145738921)`;

/** Half of each page is left free, so that a row that is written again and again stays on its page. */
function createLocks(tables: PostgresTables): string {
  return `CREATE TABLE IF NOT EXISTS ${tables.lock} (
    "key" text COLLATE "C" PRIMARY KEY,
    "token" bigint NOT NULL,
    "claim" text COLLATE "C",
    "session" text COLLATE "C",
    "holder" text,
    "until" bigint,
    "queue" jsonb,
    "tombs" jsonb,
    "answer" jsonb
  ) WITH (fillfactor = 50)`;
}

function createEntries(names: TableNames, tables: PostgresTables): readonly string[] {
  const [table, column] = [tables.entry, names.entry];
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
      "key" text COLLATE "C" PRIMARY KEY,
      "value" text,
      "version" bigint NOT NULL,
      "write_id" text COLLATE "C" NOT NULL,
      "fence_lock" text COLLATE "C",
      "fence_token" bigint,
      "until" bigint,
      "written_by" bigint NOT NULL,
      "wish" text
    )`,
    `CREATE INDEX IF NOT EXISTS "${column}_written_by" ON ${table} ("written_by")`,
    `CREATE SEQUENCE IF NOT EXISTS ${tables.version}`,
  ];
}

function createRuns(names: TableNames, tables: PostgresTables): readonly string[] {
  const [table, column] = [tables.run, names.run];
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
      "seq" bigserial PRIMARY KEY,
      "namespace" text COLLATE "C" NOT NULL,
      "task" text COLLATE "C" NOT NULL,
      "run_key" text COLLATE "C" NOT NULL,
      "id" text COLLATE "C" NOT NULL,
      "version" bigint NOT NULL,
      "state" text COLLATE "C" NOT NULL,
      "open" integer NOT NULL,
      "pruned" integer NOT NULL,
      "attempt" integer NOT NULL,
      "takeovers" integer NOT NULL,
      "triggered_by" text COLLATE "C" NOT NULL,
      "reason" text COLLATE "C",
      "scheduled_for_ms" bigint,
      "available_at_ms" bigint,
      "created_at_ms" bigint NOT NULL,
      "started_at_ms" bigint,
      "finished_at_ms" bigint,
      "updated_at_ms" bigint NOT NULL,
      "lock_backend" text COLLATE "C",
      "lock_key" text COLLATE "C",
      "lock_token" text COLLATE "C",
      "node_id" text COLLATE "C",
      "node_label" text COLLATE "C",
      "record" text COLLATE "C" NOT NULL
    )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS "${column}_key" ON ${table} ("namespace", "task", "run_key")`,
    `CREATE INDEX IF NOT EXISTS "${column}_open" ON ${table} ("namespace", "open", "created_at_ms", "seq")`,
    `CREATE INDEX IF NOT EXISTS "${column}_newest" ON ${table} ("namespace", "created_at_ms", "seq")`,
    `CREATE INDEX IF NOT EXISTS "${column}_newest_of_task"
      ON ${table} ("namespace", "task", "created_at_ms", "seq")`,
    `CREATE INDEX IF NOT EXISTS "${column}_finished" ON ${table} ("namespace", "pruned", "finished_at_ms")`,
    ...createRunEvents(names, tables),
  ];
}

function createRunEvents(names: TableNames, tables: PostgresTables): readonly string[] {
  const [table, column] = [tables.runEvent, names.runEvent];
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
      "seq" bigserial PRIMARY KEY,
      "run_seq" bigint NOT NULL,
      "write_id" text COLLATE "C" NOT NULL,
      "at_ms" bigint NOT NULL,
      "what" text COLLATE "C" NOT NULL,
      "from_state" text COLLATE "C" NOT NULL,
      "to_state" text COLLATE "C" NOT NULL,
      "event" text COLLATE "C" NOT NULL
    )`,
    `CREATE INDEX IF NOT EXISTS "${column}_of_run" ON ${table} ("run_seq", "seq")`,
  ];
}

function createTasks(names: TableNames, tables: PostgresTables): readonly string[] {
  const [table, column] = [tables.task, names.task];
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
      "seq" bigserial PRIMARY KEY,
      "namespace" text COLLATE "C" NOT NULL,
      "task" text COLLATE "C" NOT NULL,
      "version" bigint NOT NULL,
      "definition" text COLLATE "C",
      "low_water_mark_ms" bigint,
      "paused_note" text COLLATE "C",
      "paused_since_ms" bigint,
      "last_success_ms" bigint,
      "record" text COLLATE "C" NOT NULL
    )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS "${column}_name" ON ${table} ("namespace", "task")`,
  ];
}

function createNodes(names: TableNames, tables: PostgresTables): readonly string[] {
  const [table, column] = [tables.node, names.node];
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
      "seq" bigserial PRIMARY KEY,
      "namespace" text COLLATE "C" NOT NULL,
      "id" text COLLATE "C" NOT NULL,
      "label" text COLLATE "C" NOT NULL,
      "started_at_ms" bigint NOT NULL,
      "boot" text COLLATE "C" NOT NULL,
      "since" bigint NOT NULL,
      "deadline" bigint NOT NULL,
      "record" text COLLATE "C" NOT NULL
    )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS "${column}_id" ON ${table} ("namespace", "id")`,
  ];
}

function createFences(tables: PostgresTables): string {
  return `CREATE TABLE IF NOT EXISTS ${tables.fence} (
    "resource" text COLLATE "C" PRIMARY KEY,
    "token" bigint NOT NULL
  )`;
}
