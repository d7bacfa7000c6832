/**
 * The contracts of the ports through PgBouncer in transaction mode: every statement may meet another session of the
 * server, and no message comes through.
 */
import { startPgbouncer, startPostgres, type SqlServer } from '@guard/testing/servers';
import { describeContracts } from '../support/contracts.js';
import { newSchema } from '../support/postgres.js';
import { describeProcesses } from '../support/process-suite.js';
import { sentencesOnly } from '../support/runners.js';

jest.setTimeout(90_000);

let postgres: SqlServer;
let pooler: SqlServer;
beforeAll(async () => {
  postgres = await startPostgres({ settings: ['timezone=America/New_York'] });
  // Fewer sessions than clients, so that they change hands.
  pooler = await startPgbouncer({ postgres, poolSize: 3 });
}, 60_000);
afterAll(async () => {
  await pooler.stop();
  await postgres.stop();
});

describeContracts('postgres', 'typeorm through PgBouncer', () => newSchema(pooler.url), {
  runner: sentencesOnly,
  push: false,
});

describeProcesses('Postgres through PgBouncer [B77]', {
  server: () => postgres,
  newPlace: () => newSchema(pooler.url),
  options: ({ schema }) => ({ type: 'postgres', schema }),
  // In the schema of every session: a pooler takes no settings for one.
  createHeld: 'CREATE TABLE held (id serial PRIMARY KEY, name text, token bigint)',
  insert: 'INSERT INTO held (name, token) VALUES ($1, $2)',
  setSerializable: (dataSource, serializable) =>
    dataSource.query(
      `ALTER ROLE CURRENT_USER ${serializable ? 'SET default_transaction_isolation = serializable' : 'RESET default_transaction_isolation'}`,
    ),
  zones: [],
});
