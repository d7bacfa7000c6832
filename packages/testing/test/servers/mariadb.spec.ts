import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { startMariadb, type SqlServer } from '@guard/testing/servers';
import { describeServer } from './support/describe-server.js';

describeServer('MariaDB', {
  start: () => startMariadb(),
  nodes: (server) => [server],
  write: (server, text) =>
    withConnection(server, async (connection) => {
      await connection.query('CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY, v text)');
      await connection.execute('REPLACE INTO t VALUES (1, ?)', [text]);
    }),
  read: (server) =>
    withConnection(server, async (connection) => {
      const [tables] = await connection.query<RowDataPacket[]>("SHOW TABLES LIKE 't'");
      if (tables.length === 0) return null;
      const [rows] = await connection.query<RowDataPacket[]>('SELECT v FROM t');
      return (rows[0]?.['v'] as string | undefined) ?? null;
    }),
});

async function withConnection<T>(
  { host, port, user, password, database }: SqlServer,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = await createConnection({ host, port, user, password, database, connectTimeout: 60_000 });
  try {
    return await work(connection);
  } finally {
    connection.destroy();
  }
}
