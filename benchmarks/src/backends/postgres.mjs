// On Postgres with commits that wait for the disk: Guard through the pool of a data source, the two bare prepared
// statements that an application would write by hand, an advisory lock (no token, no lease, a connection for each), and
// Verrou on Knex.
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { CONNECTIONS, guardOn } from './data-source.mjs';
import { guardContender, guardRunner } from './guard.mjs';
import { peer } from './peers.mjs';
import { dbos, graphile, pgBoss } from './runners.mjs';
import { verrousOn } from './verrou-knex.mjs';

const { connect, openLocks, runners: guards } = guardOn('postgres');
const COUNT = `SELECT coalesce(sum(calls), 0) AS calls FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'`;

export const postgres = {
  name: 'postgres',
  /** pg-boss and graphile-worker need it, so all run on it. */
  node: 22,
  minTtlMs: 200,
  hasServer: true,
  /** A commit waits for the disk: a short round would see too few hand-overs. */
  handoverFactor: 2,
  startServer,
};

export const contenders = {
  guard: guardContender(openLocks),
  raw: { waits: false, open: openRaw },
  advisory: { waits: true, holds: true, renews: true, mostLocks: 100, open: openAdvisory },
  ...verrousOn(async ({ url }, { connections = CONNECTIONS } = {}) => {
    const { default: knex } = await peer('knex/knex.js');
    return knex({ client: 'pg', connection: url, pool: { min: 0, max: connections } });
  }),
};

export const runners = {
  ...guards,
  'guard, locks on redis': guardRunner(async (address) => {
    const { typeormRuns } = await import('@guard/typeorm');
    const { openLocks: openRedisLocks } = await import('./redis.mjs');
    const source = await connect(address);
    return { ...(await openRedisLocks(address.redis)), runs: typeormRuns(source) };
  }),
  'pg-boss': pgBoss,
  'graphile-worker': graphile,
  dbos,
};

async function startServer() {
  const { startPostgres, startRedis } = await import('@guard/testing/servers');
  const { ensureSchema } = await import('@guard/typeorm');
  const server = await startPostgres({
    fsync: true,
    settings: ['shared_preload_libraries=pg_stat_statements', 'max_connections=500'],
  });
  const source = await connect(server, { connections: 1 });
  await ensureSchema(source);
  await source.destroy();
  const admin = new pg.Pool({ connectionString: server.url, max: 2 }).on('error', () => undefined);
  await admin.query('CREATE EXTENSION pg_stat_statements');
  await admin.query('CREATE TABLE raw_lock (name text PRIMARY KEY, owner text, until timestamptz)');
  // Verrou makes its table itself, and several processes that do so at once trip over each other.
  await admin.query(
    'CREATE TABLE verrou (key varchar(255) PRIMARY KEY, owner varchar(255) NOT NULL, expiration bigint)',
  );
  const calls = async () => Number((await admin.query(COUNT)).rows[0].calls);
  const { host, port, user, password, database } = server;
  let redis;
  let countRedis;
  return {
    address: { url: server.url },
    /** For locks on another backend than the runs. */
    addressForRuns: async () => {
      if (redis === undefined) {
        const { connect: connectRedis, startCount } = await import('./redis.mjs');
        redis = await startRedis({ appendOnly: false });
        const client = connectRedis(redis);
        countRedis = () => startCount(redis, client);
      }
      return { url: server.url, redis: { host: redis.host, port: redis.port } };
    },
    control: server,
    version: server.version,
    pids: () => [server.pid],
    endpoint: { host, port },
    through: (proxyPort) => ({ url: `postgres://${user}:${password}@127.0.0.1:${proxyPort}/${database}` }),
    startCount: async () => {
      const before = await calls();
      const stopRedis = await countRedis?.();
      return async () => {
        const elsewhere = (await stopRedis?.())?.operations ?? 0;
        return { operations: (await calls()) - before + elsewhere };
      };
    },
    floorMs: () => notifyFloor(server.url),
    close: async () => {
      await admin.end();
      await server.stop();
      await redis?.stop();
    },
  };
}

async function openRaw({ url }) {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
  let claims = 0;
  const take = `
    INSERT INTO raw_lock VALUES ($1, $2, clock_timestamp() + interval '30 s')
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
    WHERE raw_lock.owner IS NULL OR raw_lock.until < clock_timestamp()`;
  const give = 'UPDATE raw_lock SET owner = NULL WHERE name = $1 AND owner = $2';
  const pair = async (key, work) => {
    const owner = `${process.pid}.${(claims += 1)}`;
    const { rowCount } = await pool.query({ name: 'take', text: take, values: [key, owner] });
    if (rowCount !== 1) throw new Error(`${key} is taken`);
    await work();
    await pool.query({ name: 'give', text: give, values: [key, owner] });
  };
  return { pair };
}

async function openAdvisory({ url }, { connections = CONNECTIONS } = {}) {
  const pool = new pg.Pool({ connectionString: url, max: connections }).on('error', () => undefined);
  const take = { name: 'lock', text: 'SELECT pg_advisory_lock(hashtextextended($1, 0))' };
  const give = { name: 'unlock', text: 'SELECT pg_advisory_unlock(hashtextextended($1, 0))' };
  const pair = async (key, work) => {
    const client = await pool.connect();
    try {
      await client.query({ ...take, values: [key] });
      await work();
      await client.query({ ...give, values: [key] });
    } finally {
      client.release();
    }
  };
  /** A connection of its own, for the lock is the connection's; it is lost when that one breaks. */
  const hold = async (key) => {
    const client = new pg.Client({ connectionString: url });
    let [held, onLost] = [true, () => undefined];
    const lost = () => {
      if (held) onLost();
      held = false;
    };
    client.on('error', lost).on('end', lost);
    await client.connect();
    await client.query({ ...take, values: [key] });
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

/** How long a notification takes after two idle milliseconds, with the update of a row that a release is. */
async function notifyFloor(connectionString) {
  const [from, to] = [new pg.Client({ connectionString }), new pg.Client({ connectionString })];
  await Promise.all([from.connect(), to.connect()]);
  await to.query('LISTEN floor');
  await from.query("INSERT INTO raw_lock VALUES ('floor') ON CONFLICT DO NOTHING");
  const text =
    "WITH free AS (UPDATE raw_lock SET owner = $1 WHERE name = 'floor') SELECT pg_notify('floor', '')";
  const times = [];
  for (let n = 0; n < 40; n += 1) {
    await pause(2);
    const sentAt = performance.now();
    const heard = new Promise((resolve) => to.once('notification', resolve));
    await Promise.all([from.query({ name: 'floor', text, values: [String(n)] }), heard]);
    times.push(performance.now() - sentAt);
  }
  await Promise.all([from.end(), to.end()]);
  return times.sort((a, b) => a - b)[times.length >> 1];
}
