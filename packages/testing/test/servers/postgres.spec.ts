import { Client } from 'pg';
import { startPgbouncer, startPostgres, type ServerControl, type SqlServer } from '@guard/testing/servers';
import { describeServer } from './support/describe-server.js';

describeServer('Postgres', {
  start: () => startPostgres(),
  nodes: (server) => [server],
  write,
  read,
});

/** The two together, and each of them alone. */
interface Pair extends ServerControl {
  readonly postgres: SqlServer;
  readonly pgbouncer: SqlServer;
}

describeServer('PgBouncer', {
  start: async (): Promise<Pair> => {
    const postgres = await startPostgres();
    const pgbouncer = await startPgbouncer({ postgres });
    const stop = async (): Promise<void> => {
      await pgbouncer.stop();
      await postgres.stop();
    };
    return {
      ...{ postgres, pgbouncer, stop, [Symbol.asyncDispose]: stop },
      pause: () => pgbouncer.pause(),
      resume: () => pgbouncer.resume(),
      kill: () => pgbouncer.kill(),
      restart: (options) => pgbouncer.restart(options),
    };
  },
  nodes: ({ pgbouncer }) => [pgbouncer],
  write: ({ pgbouncer }, text) => write(pgbouncer, text),
  read: ({ pgbouncer }) => read(pgbouncer),
  hasData: false,
});

describe('PgBouncer in transaction mode', () => {
  it('gives two sessions of a client one connection of the server, one transaction after the other', async () => {
    await using postgres = await startPostgres();
    await using pgbouncer = await startPgbouncer({ postgres, poolSize: 1 });
    const pid = (client: Client): Promise<unknown> =>
      client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid').then(({ rows }) => rows[0]?.pid);
    await withClient(pgbouncer, (one) =>
      withClient(pgbouncer, async (other) => expect(await pid(one)).toBe(await pid(other))),
    );
  });
});

async function write(server: SqlServer, text: string): Promise<void> {
  await withClient(server, async (client) => {
    await client.query('CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY, v text)');
    await client.query('INSERT INTO t VALUES (1, $1) ON CONFLICT (k) DO UPDATE SET v = excluded.v', [text]);
  });
}

function read(server: SqlServer): Promise<string | null> {
  return withClient(server, async (client) => {
    const { rows: tables } = await client.query("SELECT 1 FROM pg_tables WHERE tablename = 't'");
    if (tables.length === 0) return null;
    const { rows } = await client.query<{ v: string }>('SELECT v FROM t');
    return rows[0]?.v ?? null;
  });
}

async function withClient<T>(server: SqlServer, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: server.url });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end();
  }
}
