/** What there is of Guard's tables in a MariaDB database before they are made. */

/** names, with commas between them → how many of them there are: of those that the user may use in some way. */
export const WHAT_IS_THERE = `
  SELECT COUNT(*) AS count, CURRENT_USER() AS role FROM information_schema.tables
  WHERE table_schema = DATABASE() AND FIND_IN_SET(table_name, $1)`;
