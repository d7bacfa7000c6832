/** Stores of one MariaDB database that differ in their tables, and pools with one connection. */
import { newDatabase, onMariadb } from '../support/mariadb.js';
import { describeServerPlaces } from '../support/server-place-cases.js';

jest.setTimeout(60_000);

const mariadb = onMariadb();
describeServerPlaces('MariaDB', {
  newPlace: () => newDatabase(mariadb.server.url),
  poolOfOne: { extra: { connectionLimit: 1 } },
});
