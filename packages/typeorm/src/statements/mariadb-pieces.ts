/**
 * Pieces that the statements on MariaDB have in common. Whatever the application set for its sessions, a statement of
 * Guard's brings its own settings: zone, mode and limits hold for it alone, and for all that a block has in it.
 */

const columns = {
  /**
   * No zone is called so, and the statement fails before it begins (1298). A connection that the application gave back
   * within a transaction would take what is written for its own: it is granted, and gone when the connection is.
   */
  zone: `IF(@@autocommit > @@in_transaction, '+00:00', 'of a connection that was given back to its pool within a transaction')`,
  /** The limit of time is one for a statement whose client is gone, too: nothing of Guard waits on the server for long. */
  limits: `sql_mode = 'STRICT_ALL_TABLES', max_statement_time = 5, innodb_lock_wait_timeout = 5`,
  room: `group_concat_max_len = 16777216, sql_select_limit = 18446744073709551615, max_join_size = 18446744073709551615`,
};

/** The pieces. */
export const PIECES = {
  settings: `SET STATEMENT time_zone = ${columns.zone}, ${columns.limits}, ${columns.room} FOR`,

  /** The same for a statement that neither gathers nor answers many rows: each setting costs it time. */
  limits: `SET STATEMENT time_zone = ${columns.zone}, ${columns.limits} FOR`,

  /** The same for a statement that may be part of a transaction of the application. */
  anywhere: `SET STATEMENT time_zone = '+00:00', ${columns.limits}, ${columns.room} FOR`,

  /**
   * Microseconds since the epoch. SYSDATE is the moment of execution; NOW is that of the statement's start, from before
   * it waited for a row. The zone is that of `settings`: no hour of it comes twice.
   */
  now: `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))`,

  /** Whether the server takes writes; a user with all rights could write to a replica. If not, a column stays empty. */
  writable: `CONCAT(@@global.read_only) IN ('0', 'OFF')`,

  /** Tickets of a queue: the whole, its place, claim, session, ttl and end. */
  tickets: `COLUMNS (
    x JSON PATH '$',
    i FOR ORDINALITY,
    c VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$.c',
    s VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$.s',
    q BIGINT PATH '$.q',
    u BIGINT PATH '$.u'
  )`,

  /** Claims that were given up, newest first, with the end of their tombstones. */
  tombstones: `COLUMNS (
    i FOR ORDINALITY,
    c VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$[0]',
    u BIGINT PATH '$[1]'
  )`,
};
