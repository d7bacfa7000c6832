/** The contracts of the ports, against a real Postgres. */
import { describeContracts } from '../support/contracts.js';
import { newSchema, onPostgres } from '../support/postgres.js';

const postgres = onPostgres();
describeContracts('postgres', 'typeorm on Postgres', () => newSchema(postgres.server.url));
