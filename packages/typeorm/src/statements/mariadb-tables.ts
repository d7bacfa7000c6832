/**
 * The tables that Guard has in a MariaDB database. Texts are compared byte by byte, spaces at the end included; keys of
 * locks and entries are bytes, as an index has no room for so many characters. Moments of leases and ttls are
 * microseconds since the epoch by the server's clock, in whole numbers, so no time zone can touch them; those of runs
 * are milliseconds.
 *
 * The queue of a lock is in its row: one row is one step. The columns behind it belong to the statement that writes.
 */
import { mariadbTables, type MariadbTables } from '../mariadb/names.js';
import type { TableNames } from '../tables.js';

/** One statement for each table with its indexes; all can be run again. */
export function createTables(names: TableNames): readonly string[] {
  const tables = mariadbTables(names);
  return [
    createLocks(tables),
    createEntries(names, tables),
    createRuns(names, tables),
    createRunEvents(names, tables),
    createTasks(names, tables),
    createNodes(names, tables),
    createFences(tables),
  ];
}

/** Takes back what `createTables` made. */
export function dropTables(names: TableNames): readonly string[] {
  const tables = mariadbTables(names);
  return [
    `DROP TABLE IF EXISTS ${tables.runEvent}`,
    `DROP TABLE IF EXISTS ${tables.run}`,
    `DROP TABLE IF EXISTS ${tables.task}`,
    `DROP TABLE IF EXISTS ${tables.node}`,
    `DROP TABLE IF EXISTS ${tables.fence}`,
    `DROP TABLE IF EXISTS ${tables.entry}`,
    `DROP TABLE IF EXISTS ${tables.lock}`,
  ];
}

/** What all tables have in common. */
const columns = { kind: `ENGINE = InnoDB, CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin` };

function createLocks(tables: MariadbTables): string {
  return `CREATE TABLE IF NOT EXISTS ${tables.lock} (
    \`key\` varbinary(1280) NOT NULL PRIMARY KEY,
    token bigint NOT NULL,
    claim varchar(255),
    session varchar(255),
    holder longtext,
    until bigint,
    queue longtext,
    tombs longtext,
    moment bigint,
    op char(1),
    asker varchar(255),
    party varchar(255),
    mine char(1),
    next longtext,
    place int,
    verdict char(1),
    wish longtext
  ) ${columns.kind}`;
}

function createEntries(names: TableNames, tables: MariadbTables): string {
  const [table, column] = [tables.entry, names.entry];
  return `CREATE TABLE IF NOT EXISTS ${table} (
    \`key\` varbinary(1280) NOT NULL PRIMARY KEY,
    value longtext,
    version bigint NOT NULL,
    write_id varchar(255) NOT NULL,
    fence_lock text,
    fence_token bigint,
    until bigint,
    written_by bigint NOT NULL,
    wish varchar(100),
    moment bigint,
    done tinyint,
    INDEX \`${column}_written_by\` (written_by)
  ) ${columns.kind}`;
}

function createRuns(names: TableNames, tables: MariadbTables): string {
  const [table, column] = [tables.run, names.run];
  return `CREATE TABLE IF NOT EXISTS ${table} (
    seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    identity binary(32) NOT NULL,
    namespace varchar(64) NOT NULL,
    task varchar(512) NOT NULL,
    run_key varchar(512) NOT NULL,
    id varchar(255) NOT NULL,
    version bigint NOT NULL,
    state varchar(20) NOT NULL,
    open int NOT NULL,
    pruned int NOT NULL,
    attempt int NOT NULL,
    takeovers int NOT NULL,
    triggered_by varchar(255) NOT NULL,
    reason longtext,
    scheduled_for_ms bigint,
    available_at_ms bigint,
    created_at_ms bigint NOT NULL,
    started_at_ms bigint,
    finished_at_ms bigint,
    updated_at_ms bigint NOT NULL,
    lock_backend longtext,
    lock_key longtext,
    lock_token varchar(255),
    node_id varchar(255),
    node_label longtext,
    record longtext NOT NULL,
    UNIQUE INDEX ${tables.runKey} (identity),
    INDEX \`${column}_open\` (namespace, open, created_at_ms, seq),
    INDEX \`${column}_newest\` (namespace, created_at_ms, seq),
    INDEX \`${column}_newest_of_task\` (namespace, task, created_at_ms, seq),
    INDEX \`${column}_finished\` (namespace, pruned, finished_at_ms)
  ) ${columns.kind}`;
}

function createRunEvents(names: TableNames, tables: MariadbTables): string {
  const [table, column] = [tables.runEvent, names.runEvent];
  return `CREATE TABLE IF NOT EXISTS ${table} (
    seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    run_seq bigint NOT NULL,
    write_id varchar(255) NOT NULL,
    at_ms bigint NOT NULL,
    what varchar(255) NOT NULL,
    from_state varchar(20) NOT NULL,
    to_state varchar(20) NOT NULL,
    event longtext NOT NULL,
    INDEX \`${column}_of_run\` (run_seq, seq)
  ) ${columns.kind}`;
}

function createTasks(names: TableNames, tables: MariadbTables): string {
  const [table, column] = [tables.task, names.task];
  return `CREATE TABLE IF NOT EXISTS ${table} (
    seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    namespace varchar(64) NOT NULL,
    task varchar(512) NOT NULL,
    version bigint NOT NULL,
    definition longtext,
    low_water_mark_ms bigint,
    paused_note longtext,
    paused_since_ms bigint,
    last_success_ms bigint,
    record longtext NOT NULL,
    UNIQUE INDEX \`${column}_name\` (namespace, task)
  ) ${columns.kind}`;
}

function createNodes(names: TableNames, tables: MariadbTables): string {
  const [table, column] = [tables.node, names.node];
  return `CREATE TABLE IF NOT EXISTS ${table} (
    seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    namespace varchar(64) NOT NULL,
    id varchar(255) NOT NULL,
    label longtext NOT NULL,
    started_at_ms bigint NOT NULL,
    boot varchar(255) NOT NULL,
    since bigint NOT NULL,
    deadline bigint NOT NULL,
    record longtext NOT NULL,
    UNIQUE INDEX \`${column}_id\` (namespace, id)
  ) ${columns.kind}`;
}

function createFences(tables: MariadbTables): string {
  return `CREATE TABLE IF NOT EXISTS ${tables.fence} (
    resource varbinary(3000) NOT NULL PRIMARY KEY,
    token bigint NOT NULL
  ) ${columns.kind}`;
}
