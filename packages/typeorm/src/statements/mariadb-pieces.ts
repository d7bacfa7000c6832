/**
 * Pieces that the statements on MariaDB have in common. Whatever the application set for its sessions, a statement of
 * Guard's brings its own settings: zone, mode and limits hold for it alone.
 */

const columns = {
  /** The limit of time is one for a statement whose client is gone, too: nothing of Guard waits on the server for long. */
  limits: `time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', max_statement_time = 5, innodb_lock_wait_timeout = 5`,
};

/** The pieces. */
export const PIECES = {
  settings: `SET STATEMENT ${columns.limits}, group_concat_max_len = 16777216 FOR`,

  /** The same for a statement that gathers nothing: each setting costs it time. */
  limits: `SET STATEMENT ${columns.limits} FOR`,

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
