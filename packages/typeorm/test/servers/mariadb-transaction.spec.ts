/** What Guard writes inside the application's transactions, on a real MariaDB. */
import { newDatabase, onMariadb } from '../support/mariadb.js';
import { settlingOnServer } from '../support/settling-on-server.js';
import { describeTransactions } from '../support/transaction-suite.js';

jest.setTimeout(120_000);

const mariadb = onMariadb();
describeTransactions('MariaDB', {
  newPlace: () => newDatabase(mariadb.server.url),
  createLedger: 'CREATE TABLE ledger (id int AUTO_INCREMENT PRIMARY KEY, what text)',
  insert: 'INSERT INTO ledger (what) VALUES (?)',
  statements: ['START TRANSACTION', 'INSERT', 'UPDATE', 'INSERT', 'COMMIT'],
  settling: settlingOnServer,
  // 0: the server's own, of nobody's session.
  openTransactions:
    'SELECT CAST(count(*) AS CHAR) AS open FROM information_schema.innodb_trx WHERE trx_mysql_thread_id NOT IN (0, connection_id())',
});
