/** The contracts of the ports, against a real MariaDB. */
import { describeContracts } from '../support/contracts.js';
import { newDatabase, onMariadb } from '../support/mariadb.js';

const mariadb = onMariadb();
const ready = (): Promise<void> => mariadb.revive();
describeContracts('mariadb', 'typeorm on MariaDB', () => newDatabase(mariadb.server.url), { ready });
