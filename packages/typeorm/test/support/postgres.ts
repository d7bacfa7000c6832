/** A Postgres server for a file of tests, and data sources on schemas of their own. */
import { randomUUID } from 'node:crypto';
import { startPostgres, type PostgresOptions, type SqlServer } from '@guard/testing/servers';
import { DataSource, type DataSourceOptions } from 'typeorm';

/** One schema of a server, and what a test opened on it. */
export interface PostgresPlace {
  readonly url: string;
  readonly schema: string;
  /** An initialized data source of its own. */
  dataSource(options?: Partial<DataSourceOptions>): Promise<DataSource>;
  /** Ends every data source. */
  close(): Promise<void>;
}

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
export async function newSchema(url: string): Promise<PostgresPlace> {
  const schema = `s${randomUUID().replaceAll('-', '')}`;
  const opened: DataSource[] = [];
  const dataSource = async (options: Partial<DataSourceOptions> = {}): Promise<DataSource> => {
    const made = new DataSource({ type: 'postgres', url, schema, ...options } as DataSourceOptions);
    opened.push(await made.initialize());
    return made;
  };
  const first = await dataSource();
  await first.query(`CREATE SCHEMA "${schema}"`);
  return {
    url,
    schema,
    dataSource,
    close: async () => {
      for (const one of opened) if (one.isInitialized) await one.destroy();
    },
  };
}
