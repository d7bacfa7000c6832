/** Several processes on one Postgres. */
import { newSchema, onPostgres } from '../support/postgres.js';
import { describeProcesses } from '../support/process-suite.js';

jest.setTimeout(90_000);

const postgres = onPostgres({ settings: ['timezone=America/New_York'] });
describeProcesses('Postgres', {
  server: () => postgres.server,
  newPlace: () => newSchema(postgres.server.url),
  options: ({ schema }) => ({
    ...{ type: 'postgres', schema },
    extra: { options: `-c search_path=${schema}` },
  }),
  createHeld: 'CREATE TABLE held (id serial PRIMARY KEY, name text, token bigint)',
  insert: 'INSERT INTO held (name, token) VALUES ($1, $2)',
  setSerializable: (dataSource, serializable) =>
    dataSource.query(
      `ALTER ROLE CURRENT_USER ${serializable ? 'SET default_transaction_isolation = serializable' : 'RESET default_transaction_isolation'}`,
    ),
  zones: [],
});
