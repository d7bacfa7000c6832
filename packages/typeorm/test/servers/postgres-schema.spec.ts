/** Where `ensureSchema` and migrations make Guard's tables on Postgres, and what they do to those that are there. */
import { createGuard, type Guard } from '@guard/core';
import { ensureSchema, guardMigrations, typeormLocks } from '@guard/typeorm';
import type { DataSource } from 'typeorm';
import { createTables } from '../../src/statements/postgres-tables.js';
import { tableNames } from '../../src/tables.js';
import { placeOf, type Place } from '../support/place-on-server.js';
import { onPostgres } from '../support/postgres.js';

const postgres = onPostgres();
const guards: Guard[] = [];
let place: Place;
let databases = 0;

/** A database of its own, whose tables are in `public` by the standard search path: `"$user", public`. */
async function newDatabase(options = ''): Promise<Place> {
  const { url } = postgres.server;
  const first = placeOf(url, 'public', { type: 'postgres', url });
  databases += 1;
  const name = `own${databases}`;
  await (await first.dataSource()).query(`CREATE DATABASE ${name} ${options}`);
  await first.close();
  const own = new URL(url);
  own.pathname = `/${name}`;
  return placeOf(own.href, 'public', { type: 'postgres', url: own.href });
}

beforeEach(async () => {
  place = await newDatabase();
});
afterEach(async () => {
  for (const guard of guards.splice(0)) await guard.close();
  await place.close();
});

function guardOn(db: DataSource): Guard {
  const guard = createGuard({ locks: typeormLocks(db), namespace: 'n' });
  guards.push(guard);
  return guard;
}

/** Which tables are where: `schema.table`. */
async function tablesIn(db: DataSource): Promise<string[]> {
  const rows: { name: string }[] = await db.query(
    `SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE tablename LIKE 'guard\\_%' ORDER BY 1`,
  );
  return rows.map(({ name }) => name);
}

const migrated = async (): Promise<unknown> => {
  const db = await place.dataSource({ migrations: [...guardMigrations()] });
  return db.runMigrations();
};
const ensured = async (): Promise<unknown> => ensureSchema(await place.dataSource());
const ways = [
  ['ensureSchema', ensured],
  ['a migration', migrated],
] as const;

describe.each(ways)('tables that %s finds over the search path', (_, make) => {
  it('[S1] are not made a second time in a schema that comes nearer on it: a held lock stays held', async () => {
    const db = await place.dataSource();
    await ensureSchema(db);
    const held = await guardOn(db).acquire('money', { ttl: '60s' });
    await db.query('CREATE SCHEMA guard');
    const there = await tablesIn(db);
    await make();
    expect(await tablesIn(db)).toEqual(there);
    const late = guardOn(await place.dataSource()).acquire('money', { wait: '200ms' });
    await expect(late).rejects.toMatchObject({ code: 'lock-busy' });
    expect(held.isHeld()).toBe(true);
  });

  it('[S1] have those that are missing made beside them', async () => {
    const db = await place.dataSource();
    await ensureSchema(db);
    await db.query('CREATE SCHEMA guard');
    const there = await tablesIn(db);
    await db.query('DROP TABLE guard_fence; DROP INDEX guard_run_open');
    await make();
    expect(await tablesIn(db)).toEqual(there);
    expect(await db.query(`SELECT 1 FROM pg_indexes WHERE indexname = 'guard_run_open'`)).toHaveLength(1);
  });

  it('[S1] are added to by nobody where they are in several schemas', async () => {
    const db = await place.dataSource();
    await ensureSchema(db);
    await db.query('CREATE SCHEMA guard; ALTER TABLE guard_node SET SCHEMA guard; DROP TABLE guard_fence');
    await expect(make()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('in several schemas (guard, public): name the one to use'),
    });
  });
});

it('[S7] tables are made once where a migration and other processes make them at the same moment', async () => {
  const sources = await Promise.all(
    [0, 1, 2, 3, 4, 5].map((n) => place.dataSource({ migrations: n === 0 ? [...guardMigrations()] : [] })),
  );
  await Promise.all(sources.map((db, n) => (n === 0 ? db.runMigrations() : ensureSchema(db))));
  expect(await tablesIn(sources[0]!)).toHaveLength(7);
});

describe('a database of Postgres that is not in UTF8', () => {
  const LATIN1 = `ENCODING 'LATIN1' TEMPLATE template0`;

  it.each(['ensureSchema', 'a migration'])(
    '[S6] gets no tables by %s, which names the encoding',
    async (way) => {
      await place.close();
      place = await newDatabase(LATIN1);
      const make = way === 'ensureSchema' ? ensured : migrated;
      await expect(make()).rejects.toMatchObject({
        code: 'invalid-argument',
        message: expect.stringMatching(/is encoded in LATIN1: .* needs a database in UTF8/),
      });
      expect(await tablesIn(await place.dataSource())).toEqual([]);
    },
  );

  it('[S6] refuses at once what it has no character for, where tables came there by hand', async () => {
    await place.close();
    place = await newDatabase(LATIN1);
    const db = await place.dataSource();
    await db.query(createTables(tableNames(), undefined).join(';'));
    const guard = guardOn(db);
    const refused = { code: 'invalid-argument', message: expect.stringContaining('not encoded in UTF8') };
    await expect(guard.acquire('订单')).rejects.toMatchObject(refused);
    await (await guard.acquire('order')).release();
  });
});
