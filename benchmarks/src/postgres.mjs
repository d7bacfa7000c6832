// On Postgres with commits that wait for the disk: Guard through the pool of a data source, the two bare prepared
// statements that an application would write by hand, an advisory lock (no token, no lease, a connection for each), and
// Verrou on Knex. All have 16 connections.
import pg from 'pg';
import { DataSource } from 'typeorm';
import { createGuard } from '@guard/core';
import { startPostgres } from '@guard/testing/servers';
import { ensureSchema, typeormLocks } from '@guard/typeorm';

const CONNECTIONS = 16;

export async function postgresContenders() {
  const { Verrou } = await import('../peers/node_modules/@verrou/core/build/index.js');
  const { knexStore } = await import('../peers/node_modules/@verrou/core/build/src/drivers/knex.js');
  const { default: knex } = await import('../peers/node_modules/knex/knex.js');
  const server = await startPostgres({ fsync: true });
  const source = await new DataSource({
    type: 'postgres',
    url: server.url,
    poolSize: CONNECTIONS,
  }).initialize();
  await ensureSchema(source);
  const locks = typeormLocks(source);
  const guard = createGuard({ locks });
  const pool = new pg.Pool({ connectionString: server.url, max: CONNECTIONS });
  await pool.query('CREATE TABLE locks (name text PRIMARY KEY, owner text, until timestamptz)');
  const connection = knex({
    client: 'pg',
    connection: server.url,
    pool: { min: 0, max: CONNECTIONS },
  });
  const verrou = new Verrou({ default: 'knex', stores: { knex: { driver: knexStore({ connection }) } } });
  return {
    contenders: {
      guard: { waits: true, pair: (key, work) => guard.withLock(key, (lock) => work(lock.token)) },
      raw: { waits: false, pair: rawPair(pool) },
      advisory: { waits: true, pair: advisoryPair(pool) },
      verrou: { waits: true, pair: (key, work) => verrou.createLock(key, '30s').run(() => work()) },
    },
    close: async () => {
      await guard.close();
      await locks.close();
      await source.destroy();
      await pool.end();
      await connection.destroy();
      await server.stop();
    },
  };
}

function rawPair(pool) {
  let claims = 0;
  const take = `
    INSERT INTO locks VALUES ($1, $2, clock_timestamp() + interval '30 s')
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
    WHERE locks.owner IS NULL OR locks.until < clock_timestamp()`;
  const give = 'UPDATE locks SET owner = NULL WHERE name = $1 AND owner = $2';
  return async (key, work) => {
    const owner = `raw.${(claims += 1)}`;
    const { rowCount } = await pool.query({ name: 'take', text: take, values: [key, owner] });
    if (rowCount !== 1) throw new Error(`${key} is taken`);
    await work();
    await pool.query({ name: 'give', text: give, values: [key, owner] });
  };
}

function advisoryPair(pool) {
  const take = 'SELECT pg_advisory_lock(hashtextextended($1, 0))';
  const give = 'SELECT pg_advisory_unlock(hashtextextended($1, 0))';
  return async (key, work) => {
    const client = await pool.connect();
    try {
      await client.query({ name: 'lock', text: take, values: [key] });
      await work();
      await client.query({ name: 'unlock', text: give, values: [key] });
    } finally {
      client.release();
    }
  };
}
