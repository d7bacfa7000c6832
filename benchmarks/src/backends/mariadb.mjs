// On MariaDB with commits that wait for the disk: Guard through the pool of a data source, the two bare prepared statements
// that an application would write by hand, GET_LOCK (no token, no lease, a connection for each), and Verrou on Knex. Its
// server pushes nothing, so a hand-over has no floor: whoever waits asks.
import { CONNECTIONS, guardOn } from './data-source.mjs';
import { guardContender } from './guard.mjs';
import { peer } from './peers.mjs';
import { verrousOn } from './verrou-knex.mjs';

const { connect, openLocks, runners: guards } = guardOn('mariadb');
const WAIT_S = 120;
const TAKE = 'SELECT GET_LOCK(?, ?) AS got';
const GIVE = 'SELECT RELEASE_LOCK(?)';

export const mariadb = {
  name: 'mariadb',
  minTtlMs: 200,
  hasServer: true,
  /** A commit waits for the disk: a short round would see too few hand-overs. */
  handoverFactor: 2,
  startServer,
};

export const contenders = {
  guard: guardContender(openLocks),
  raw: { waits: false, open: openRaw },
  'get-lock': { waits: true, holds: true, renews: true, mostLocks: 100, open: openGetLock },
  ...verrousOn(async (address, { connections = CONNECTIONS } = {}) => {
    const { default: knex } = await peer('knex/knex.js');
    return knex({ client: 'mysql2', connection: placeOf(address), pool: { min: 0, max: connections } });
  }),
};

export const runners = guards;

async function startServer() {
  const { startMariadb } = await import('@guard/testing/servers');
  const { ensureSchema } = await import('@guard/typeorm');
  const server = await startMariadb({ fsync: true, args: ['--max-connections=500'] });
  const admin = await connect(server, { connections: 1 });
  await ensureSchema(admin);
  await admin.query(
    'CREATE TABLE raw_lock (name varchar(255) PRIMARY KEY, owner varchar(255), until datetime(6))',
  );
  // Verrou makes its table itself, and several processes that do so at once trip over each other.
  await admin.query(
    'CREATE TABLE verrou (`key` varchar(255) PRIMARY KEY, owner varchar(255) NOT NULL, expiration bigint)',
  );
  /** Statements of clients. */
  const questions = async () => Number((await admin.query("SHOW GLOBAL STATUS LIKE 'Questions'"))[0].Value);
  const { host, port, user, password, database } = server;
  const addressAt = (at) => ({
    url: `mariadb://${user}:${password}@${at.host}:${at.port}/${database}`,
    ...{ ...at, user, password, database },
  });
  return {
    address: addressAt({ host, port }),
    control: server,
    version: server.version,
    pids: () => [server.pid],
    endpoint: { host, port },
    through: (proxyPort) => addressAt({ host: '127.0.0.1', port: proxyPort }),
    startCount: async () => {
      const before = await questions();
      // The question itself is one.
      return async () => ({ operations: (await questions()) - before - 1 });
    },
    close: async () => {
      await admin.destroy().catch(() => undefined);
      await server.stop();
    },
  };
}

function placeOf({ host, port, user, password, database }) {
  return { host, port, user, password, database };
}

async function openRaw(address) {
  const { default: mysql } = await import('mysql2/promise');
  // So that a row that stayed as it was counts as none.
  const pool = mysql.createPool({
    ...placeOf(address),
    ...{ connectionLimit: CONNECTIONS, flags: ['-FOUND_ROWS'] },
  });
  let claims = 0;
  // Assignments are made from left to right.
  const take = `
    INSERT INTO raw_lock VALUES (?, ?, NOW(6) + INTERVAL 30 SECOND) ON DUPLICATE KEY UPDATE
      owner = IF(owner IS NULL OR until < NOW(6), VALUES(owner), owner),
      until = IF(owner = VALUES(owner), VALUES(until), until)`;
  const give = 'UPDATE raw_lock SET owner = NULL WHERE name = ? AND owner = ?';
  const pair = async (key, work) => {
    const owner = `${process.pid}.${(claims += 1)}`;
    const [{ affectedRows }] = await pool.execute(take, [key, owner]);
    if (affectedRows === 0) throw new Error(`${key} is taken`);
    await work();
    await pool.execute(give, [key, owner]);
  };
  return { pair };
}

async function openGetLock(address, { connections = CONNECTIONS } = {}) {
  const { default: mysql } = await import('mysql2/promise');
  const pool = mysql.createPool({ ...placeOf(address), connectionLimit: connections });
  const take = async (client, key) => {
    const [[{ got }]] = await client.execute(TAKE, [key, WAIT_S]);
    if (got !== 1) throw new Error(`${key} is taken`);
  };
  const pair = async (key, work) => {
    const client = await pool.getConnection();
    try {
      await take(client, key);
      await work();
      await client.execute(GIVE, [key]);
    } finally {
      client.release();
    }
  };
  /** A connection of its own, for the lock is the connection's; it is lost when that one breaks. */
  const hold = async (key) => {
    const client = await mysql.createConnection(placeOf(address));
    let [held, onLost] = [true, () => undefined];
    const lost = () => {
      if (held) onLost();
      held = false;
    };
    client.connection.on('error', lost).on('end', lost);
    await take(client, key);
    return {
      isHeld: () => held,
      onLost: (listener) => (onLost = listener),
      release: async () => {
        held = false;
        await client.end();
      },
    };
  };
  return { pair, hold };
}
