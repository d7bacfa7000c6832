/** A Postgres server for a file of tests, and data sources on schemas of their own. */
import { randomUUID } from 'node:crypto';
import { startPostgres, type PostgresOptions, type SqlServer } from '@guard/testing/servers';
import { placeOf, type Place } from './place-on-server.js';

/** Starts a server before all tests of a file, and ends it after them. */
export function onPostgres(options: PostgresOptions = {}): { readonly server: SqlServer } {
  let server: SqlServer | undefined;
  beforeAll(async () => {
    server = await startPostgres(options);
  }, 60_000);
  afterAll(() => server?.stop());
  return {
    get server() {
      return server!;
    },
  };
}

/** A schema of its own. */
export async function newSchema(url: string): Promise<Place> {
  const schema = `s${randomUUID().replaceAll('-', '')}`;
  const place = placeOf(url, schema, { type: 'postgres', url, schema });
  const first = await place.dataSource();
  await first.query(`CREATE SCHEMA "${schema}"`);
  return place;
}
