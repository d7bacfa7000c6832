// On one SQLite file: Guard, Guard without batches, the two bare statements that an application would write by hand, and
// Verrou on Knex. There is no server: what it costs, the processes themselves pay.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { guardContender, guardRunner, lockRunner } from './guard.mjs';
import { peer } from './peers.mjs';
import { verrousOn } from './verrou-knex.mjs';

export const sqlite = {
  name: 'sqlite',
  minTtlMs: 200,
  /** Processes of one machine share a file: how they do that is worth a look of its own. */
  processes: 4,
  sampleFactor: 2,
  startServer,
};

export const contenders = {
  guard: guardContender((address) => openLocks(address)),
  'guard, one by one': { ...guardContender((address) => openLocks(address, 1)), only: ['throughput'] },
  raw: { waits: false, shares: true, open: openRaw },
  ...verrousOn(async ({ folder }) => {
    const { default: knex } = await peer('knex/knex.js');
    const connection = knex({
      client: 'better-sqlite3',
      connection: { filename: join(folder, 'verrou.sqlite') },
      useNullAsDefault: true,
    });
    await connection.raw('PRAGMA synchronous = NORMAL');
    return connection;
  }),
};

export const runners = {
  guard: guardRunner(async (address) => {
    const { ensureSchema, typeormRuns } = await import('@guard/typeorm');
    const { source, locks } = await openBoth(address);
    await source.initialize();
    await ensureSchema(source);
    return { locks, runs: typeormRuns(source), close: () => source.destroy() };
  }),
  'guard, lock alone': lockRunner((address) => openLocks(address)),
};

async function startServer() {
  const { default: Database } = await import('better-sqlite3');
  const folder = mkdtempSync(join(tmpdir(), 'guard-bench-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // Also where the run is broken off.
  process.once('exit', remove);
  inWal(
    new Database(join(folder, 'raw.sqlite')),
    'CREATE TABLE locks (name TEXT PRIMARY KEY, owner TEXT, until INTEGER) WITHOUT ROWID',
  );
  inWal(
    new Database(join(folder, 'verrou.sqlite')),
    'CREATE TABLE verrou (key varchar(255) PRIMARY KEY, owner varchar(255) NOT NULL, expiration bigint)',
  );
  return {
    address: { folder },
    pids: () => [],
    close: async () => remove(),
  };
}

function inWal(database, statement) {
  database.pragma('journal_mode = WAL');
  database.exec(statement);
  database.close();
}

async function openLocks(address, maxBatch) {
  const { locks } = await openBoth(address, maxBatch);
  return { locks, close: async () => undefined };
}

async function openBoth({ folder }, maxBatch) {
  const { DataSource } = await import('typeorm');
  const { typeormLocks } = await import('@guard/typeorm');
  const source = new DataSource({ type: 'better-sqlite3', database: join(folder, 'app.sqlite') });
  const locks = typeormLocks(source);
  if (maxBatch !== undefined)
    Object.defineProperty(locks, 'traits', { value: { ...locks.traits, maxBatch } });
  return { source, locks };
}

/** A busy file is asked again within two milliseconds, which is fairer than SQLite's own wait. */
async function openRaw({ folder }) {
  const { default: Database } = await import('better-sqlite3');
  const database = new Database(join(folder, 'raw.sqlite'), { timeout: 0 });
  database.pragma('synchronous = NORMAL');
  const take = database.prepare(
    `INSERT INTO locks VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE
     SET owner = excluded.owner, until = excluded.until WHERE until < ?`,
  );
  const give = database.prepare('DELETE FROM locks WHERE name = ? AND owner = ?');
  const patient = async (statement, ...values) => {
    for (;;) {
      try {
        return statement.run(...values);
      } catch (error) {
        if (error.code !== 'SQLITE_BUSY') throw error;
        await pause(Math.random() * 2);
      }
    }
  };
  let claims = 0;
  const pair = async (key, work) => {
    const owner = `${process.pid}.${(claims += 1)}`;
    const now = Date.now();
    if ((await patient(take, key, owner, now + 30_000, now)).changes !== 1)
      throw new Error(`${key} is taken`);
    await work();
    await patient(give, key, owner);
  };
  return { pair };
}
