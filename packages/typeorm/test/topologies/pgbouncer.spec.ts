/**
 * The contracts of the ports through PgBouncer in transaction mode: every statement may meet another session of the
 * server, and no message comes through.
 */
import { startPgbouncer, startPostgres, type SqlServer } from '@guard/testing/servers';
import { describeContracts } from '../support/contracts.js';
import { newSchema } from '../support/postgres.js';
import { sentencesOnly } from '../support/runners.js';

let postgres: SqlServer;
let pooler: SqlServer;
beforeAll(async () => {
  postgres = await startPostgres();
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
