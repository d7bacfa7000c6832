/** What Guard asks a connection to MariaDB before it uses it for the first time. */

/** → version, and the settings of server and session that Guard's statements rest on. */
export const GREETING = `SELECT VERSION() AS version, @@autocommit AS autocommit, @@global.read_only AS read_only,
  @@tx_isolation AS isolation, @@character_set_client AS client, @@character_set_connection AS connection,
  @@character_set_results AS results`;

/** → version. For a server that does not know all of those settings, as MySQL does not. */
export const VERSION = `SELECT VERSION() AS version`;
