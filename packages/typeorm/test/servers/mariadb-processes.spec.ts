/** Several processes on one MariaDB. */
import { newDatabase, onMariadb } from '../support/mariadb.js';
import { describeProcesses } from '../support/process-suite.js';

jest.setTimeout(90_000);

const mariadb = onMariadb();
describeProcesses('MariaDB', {
  newPlace: () => newDatabase(mariadb.server.url),
  options: () => ({ type: 'mariadb' }),
  createHeld: 'CREATE TABLE held (id int AUTO_INCREMENT PRIMARY KEY, name varchar(9), token bigint)',
  insert: 'INSERT INTO held (name, token) VALUES (?, ?)',
});
