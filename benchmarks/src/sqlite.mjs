// On SQLite, one process: Guard, the two bare statements that an application would write by hand, and Verrou on Knex.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { DataSource } from 'typeorm';
import { createGuard } from '@guard/core';
import { typeormLocks } from '@guard/typeorm';

export async function sqliteContenders() {
  const { Verrou } = await import('../peers/node_modules/@verrou/core/build/index.js');
  const { knexStore } = await import('../peers/node_modules/@verrou/core/build/src/drivers/knex.js');
  const { default: knex } = await import('../peers/node_modules/knex/knex.js');
  const folder = mkdtempSync(join(tmpdir(), 'guard-bench-'));
  const source = new DataSource({ type: 'better-sqlite3', database: join(folder, 'app.sqlite') });
  const locks = typeormLocks(source);
  const guard = createGuard({ locks });
  const database = new Database(join(folder, 'raw.sqlite'));
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = NORMAL');
  database.exec('CREATE TABLE locks (name TEXT PRIMARY KEY, owner TEXT, until INTEGER) WITHOUT ROWID');
  const take = database.prepare(
    `INSERT INTO locks VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE
     SET owner = excluded.owner, until = excluded.until WHERE until < ?`,
  );
  const give = database.prepare('DELETE FROM locks WHERE name = ? AND owner = ?');
  const connection = knex({
    client: 'better-sqlite3',
    connection: { filename: join(folder, 'verrou.sqlite') },
    useNullAsDefault: true,
  });
  await connection.raw('PRAGMA journal_mode = WAL');
  await connection.raw('PRAGMA synchronous = NORMAL');
  const verrou = new Verrou({ default: 'knex', stores: { knex: { driver: knexStore({ connection }) } } });
  let claims = 0;
  const raw = async (key, work) => {
    const owner = `raw.${(claims += 1)}`;
    const now = Date.now();
    if (take.run(key, owner, now + 30_000, now).changes !== 1) throw new Error(`${key} is taken`);
    await work();
    give.run(key, owner);
  };
  return {
    contenders: {
      guard: { waits: true, pair: (key, work) => guard.withLock(key, (lock) => work(lock.token)) },
      raw: { waits: false, pair: raw },
      verrou: { waits: true, pair: (key, work) => verrou.createLock(key, '30s').run(() => work()) },
    },
    close: async () => {
      await guard.close();
      await locks.close();
      database.close();
      await connection.destroy();
      rmSync(folder, { recursive: true });
    },
  };
}
