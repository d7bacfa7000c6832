/** A MariaDB server for a file of tests, and data sources on databases of their own. */
import { randomUUID } from 'node:crypto';
import { startMariadb, type MariadbOptions, type SqlServer } from '@guard/testing/servers';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { placeOf, type Place } from './place-on-server.js';

/** A server that a file of tests has. */
export interface RunningMariadb {
  readonly server: SqlServer;
  /**
   * Starts the server again where it ended by itself. One was seen to, in the middle of a busy run; then one case fails,
   * and not all that come after it. Called before each test; not before those that run beside each other.
   */
  revive(): Promise<void>;
}

/** Starts a server before all tests of a file, and ends it after them. */
export function onMariadb(options: MariadbOptions = {}): RunningMariadb {
  let server: SqlServer | undefined;
  let reviving: Promise<void> | undefined;
  const revive = async (): Promise<void> => {
    if (reviving !== undefined) return reviving;
    if (server === undefined || server.source !== 'program' || server.pid !== undefined) return;
    console.warn('mariadbd ended by itself, and is started again');
    reviving = server.restart({ keepData: true }).finally(() => (reviving = undefined));
    await reviving;
  };
  beforeAll(async () => {
    server = await startMariadb(options);
  }, 60_000);
  beforeEach(revive, 60_000);
  afterAll(() => server?.stop());
  return {
    get server() {
      return server!;
    },
    revive,
  };
}

/** A database of its own. */
export async function newDatabase(url: string): Promise<Place> {
  const schema = `s${randomUUID().replaceAll('-', '')}`;
  const first = await new DataSource({ type: 'mariadb', url }).initialize();
  await first.query(`CREATE DATABASE ${schema} CHARACTER SET utf8mb4`);
  await first.destroy();
  const own = new URL(url);
  own.pathname = `/${schema}`;
  return placeOf(own.href, schema, { type: 'mariadb', url: own.href });
}

interface Pool {
  on(event: 'connection', seen: (connection: { query(statement: string): void }) => void): void;
}

/** A data source whose every session begins with this statement. */
export async function sessionsOn(
  place: Place,
  statement: string,
  options: Partial<DataSourceOptions> = {},
): Promise<DataSource> {
  const dataSource = await place.dataSource({ poolSize: 4, ...options } as Partial<DataSourceOptions>);
  const { driver } = dataSource as unknown as {
    driver: { pool: Pool; obtainMasterConnection(): Promise<{ destroy(): void }> };
  };
  driver.pool.on('connection', (connection) => connection.query(statement));
  // The one that was there already has other settings.
  (await driver.obtainMasterConnection()).destroy();
  return dataSource;
}
