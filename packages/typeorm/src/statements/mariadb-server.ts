/** What Guard asks a connection to MariaDB before it uses it for the first time. */

/**
 * → version, and the settings of server and session that Guard's statements rest on. It leaves the mode as it is, to ask
 * for it. No other server reads what is in a comment of MariaDB's own.
 */
export const GREETING = `/*M! SET STATEMENT max_statement_time = 5, sql_select_limit = 1 FOR */
  SELECT VERSION() AS version, @@autocommit AS autocommit, @@global.read_only AS read_only,
    @@tx_isolation AS isolation, @@character_set_client AS client, @@character_set_connection AS connection,
    @@character_set_results AS results, @@sql_mode AS modes, @@completion_type AS completion, @@unique_checks AS uniques`;

/** → version. For a server that does not know all of those settings, as MySQL does not. */
export const VERSION = `SELECT VERSION() AS version`;
