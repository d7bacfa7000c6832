/** What there is of Guard's tables in a MariaDB database before they are made. */

import { PIECES as columns } from './mariadb-pieces.js';

/** names, with commas between them → how many of them there are: of those that the user may use in some way. */
export const WHAT_IS_THERE = `
  ${columns.settings} SELECT COUNT(*) AS count, CURRENT_USER() AS role FROM information_schema.tables
  WHERE table_schema = DATABASE() AND FIND_IN_SET(table_name, $1)`;
