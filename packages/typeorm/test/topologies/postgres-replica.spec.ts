/** Locks on a Postgres that has a streaming replica, which takes over. */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { LockBackend } from '@guard/core';
import { ensureSchema, typeormLocks } from '@guard/typeorm';
import { startPostgres, type SqlServer } from '@guard/testing/servers';
import type { DataSource } from 'typeorm';
import { ask, claim, granted, look, release, renew } from '../support/locking.js';
import { placeOf, type Place } from '../support/place-on-server.js';
import { newSchema } from '../support/postgres.js';

jest.setTimeout(90_000);

let primary: SqlServer;
let replica: SqlServer;
beforeAll(async () => {
  [primary, replica] = await Promise.all([startPostgres(), startPostgres()]);
}, 60_000);
afterAll(() => Promise.all([primary.stop(), replica.stop()]));

const ended = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const shown = async (dataSource: DataSource, query: string): Promise<string> => {
  const [row] = await dataSource.query<{ shown: string }[]>(query);
  return row!.shown;
};

/** Makes the second server a replica of the first, by its own hand: only its user may read its files. */
async function follow(): Promise<void> {
  const place = placeOf(replica.url, 'public', { type: 'postgres', url: replica.url });
  const dataSource = await place.dataSource();
  const programs = await shown(dataSource, "SELECT setting AS shown FROM pg_config WHERE name = 'BINDIR'");
  const data = await shown(dataSource, "SELECT current_setting('data_directory') AS shown");
  const copy = `${data}-copy`;
  const from = `-h ${primary.host} -p ${primary.port} -U ${primary.user}`;
  const backup = `${join(programs, 'pg_basebackup')} ${from} -D ${copy} -R --checkpoint=fast --no-sync`;
  await dataSource.query(`COPY (SELECT 1) TO PROGRAM '${backup}'`);
  await place.close();
  await replica.kill();
  await rename(data, `${data}-old`);
  await rename(copy, data);
  await replica.restart({ keepData: true });
}

/** The same tables, at the replica. */
function sameAt(server: SqlServer, { schema }: Place): Place {
  return placeOf(server.url, schema, { type: 'postgres', url: server.url, schema });
}

it('[V14] [S2] [S6] refuses claims, and serves once it took over: what it had heard of is held, and tokens never fall', async () => {
  const place = await newSchema(primary.url);
  await ensureSchema(await place.dataSource());
  await follow();
  const locks = typeormLocks(await place.dataSource());
  const held = await granted(locks, claim({ key: 'ns/lock/held', ttlMs: 120_000 }));

  const there = sameAt(replica, place);
  const admin = await there.dataSource();
  const after: LockBackend = typeormLocks(await there.dataSource());
  while (!(await look(after, held.key)).held) await ended(10);
  const refused = { code: 'unavailable', message: expect.stringContaining('it is a replica') };
  for (const wait of [false, true]) {
    for (const key of [held.key, 'ns/lock/free']) {
      expect(await ask(after, claim({ key, wait }))).toMatchObject({ status: 'failed', cause: refused });
    }
  }
  expect(await renew(after, held)).toBe('failed');
  expect(await release(after, held)).toBe('failed');
  expect(await look(after, held.key)).toMatchObject({ held: true, token: held.token });

  // The stream ends before the server does, so the replica never hears of the last grants.
  await admin.query("ALTER SYSTEM SET primary_conninfo = ''");
  await admin.query('SELECT pg_reload_conf()');
  while ((await shown(admin, 'SELECT count(*) AS shown FROM pg_stat_wal_receiver')) !== '0') await ended(10);
  const unheard = await granted(locks, claim({ key: 'ns/lock/unheard', ttlMs: 120_000 }));
  await locks.close();
  await place.close();
  await primary.kill();

  await admin.query('SELECT pg_promote()');
  expect(await renew(after, held, 120_000)).toBe('renewed');
  expect(await ask(after, claim({ key: held.key }))).toMatchObject({ status: 'busy' });
  expect(await renew(after, unheard)).toBe('lost');
  expect((await granted(after, claim({ key: unheard.key }))).token).toBeGreaterThan(unheard.token);
  expect(await release(after, held)).toBe('released');
  expect((await granted(after, claim({ key: held.key }))).token).toBeGreaterThan(held.token);
  await after.close();
  await there.close();
});
