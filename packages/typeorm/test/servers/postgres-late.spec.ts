/** Statements on Postgres that the server keeps waiting for longer than their time. */
import type { LockBackend } from '@guard/core';
import { ensureSchema, typeormLocks } from '@guard/typeorm';
import { startPgbouncer } from '@guard/testing/servers';
import type { DataSource } from 'typeorm';
import { fastClock } from '../support/fast-clock.js';
import { ask, claim, look } from '../support/locking.js';
import type { Place } from '../support/place-on-server.js';
import { newSchema, onPostgres } from '../support/postgres.js';

const postgres = onPostgres();

let place: Place;
let admin: DataSource;
beforeEach(async () => {
  place = await newSchema(postgres.server.url);
  admin = await place.dataSource();
  await ensureSchema(admin);
});
afterEach(() => place.close());

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** How many sessions of the server are busy with the table of locks. */
async function busy(): Promise<number> {
  const rows: unknown[] = await admin.query(
    `SELECT 1 FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%"${place.schema}"."guard_lock"%'`,
  );
  return rows.length;
}

/** Four claims, two at a time, none of which is answered in time; how many sessions were busy at the most. */
async function fourLate(locks: LockBackend): Promise<number> {
  let most = 0;
  for (const round of [1, 2]) {
    const late = [1, 2].map((n) => ask(locks, claim({ key: `ns/lock/${round} ${n}` })));
    await pause(300);
    most = Math.max(most, await busy());
    for (const answer of await Promise.all(late)) {
      expect(answer).toMatchObject({
        status: 'failed',
        cause: { code: 'unavailable', message: expect.stringMatching(/in time$/) },
      });
    }
  }
  return most;
}

describe.each([
  ['the server itself', () => Promise.resolve({ url: place.url, stop: () => Promise.resolve() })],
  ['PgBouncer', () => startPgbouncer({ postgres: postgres.server, poolSize: 2 })],
])('statements that wait for a lock in the server, by %s', (_, start) => {
  it('[L3] [S4] are ended there after their time: no more of them than the pool has, and none is done later', async () => {
    const way = await start();
    const url = new URL(place.url);
    [url.hostname, url.port] = [new URL(way.url).hostname, new URL(way.url).port];
    const theirs = await place.dataSource({ url: url.href, poolSize: 2 });
    const locks = typeormLocks(theirs, { clock: fastClock });
    const runner = admin.createQueryRunner();
    await runner.startTransaction();
    await runner.query(`LOCK TABLE "${place.schema}".guard_lock IN SHARE MODE`);
    expect(await fourLate(locks)).toBe(2);
    while ((await busy()) > 0) await pause(5);
    await runner.rollbackTransaction();
    await runner.release();
    for (const key of ['1 1', '1 2', '2 1', '2 2']) {
      expect((await look(locks, `ns/lock/${key}`)).held).toBe(false);
    }
    expect((await ask(locks, claim())).status).toBe('granted');
    await locks.close();
    await theirs.destroy();
    await way.stop();
  });
});

it('[L3] statements that wait for a standby that is gone are ended there after their time', async () => {
  const locks = typeormLocks(await place.dataSource({ poolSize: 2 }), { clock: fastClock });
  await admin.query(`ALTER SYSTEM SET synchronous_standby_names = 'gone'`);
  await admin.query('SELECT pg_reload_conf()');
  while ((await admin.query('SHOW synchronous_standby_names'))[0].synchronous_standby_names === '')
    await pause(5);
  // The setting reaches each process of the server by itself.
  await pause(100);
  expect(await fourLate(locks)).toBe(2);
  while ((await busy()) > 0) await pause(5);
  await admin.query(`ALTER SYSTEM RESET synchronous_standby_names`);
  await admin.query('SELECT pg_reload_conf()');
  while ((await ask(locks, claim())).status === 'failed') await pause(5);
  await locks.close();
});
