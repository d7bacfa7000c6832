/** Several processes on one MariaDB, whose zone has hours that come twice and hours that never come. */
import { ensureSchema, typeormLocks } from '@guard/typeorm';
import { claim, granted, look, renew } from '../support/locking.js';
import { newDatabase, onMariadb } from '../support/mariadb.js';
import { describeProcesses } from '../support/process-suite.js';

jest.setTimeout(90_000);

// The server's own zone is that of the process that starts it.
process.env['TZ'] = 'America/New_York';
const mariadb = onMariadb();
describeProcesses('MariaDB', {
  server: () => mariadb.server,
  newPlace: () => newDatabase(mariadb.server.url),
  options: () => ({ type: 'mariadb' }),
  createHeld: 'CREATE TABLE held (id int AUTO_INCREMENT PRIMARY KEY, name varchar(9), token bigint)',
  insert: 'INSERT INTO held (name, token) VALUES (?, ?)',
  setSerializable: (dataSource, serializable) =>
    dataSource.query(`SET GLOBAL tx_isolation = '${serializable ? 'SERIALIZABLE' : 'REPEATABLE-READ'}'`),
  zones: [{ timezone: '+05:00' }],
});

/** The first instant of a month's day, which is its nth Sunday. */
function sunday(year: number, month: number, nth: number): number {
  const firstMs = Date.UTC(year, month, 1);
  const days = ((7 - new Date(firstMs).getUTCDay()) % 7) + 7 * (nth - 1);
  return firstMs + days * 86_400_000;
}

test('[B83] a lock may end in an hour that the zone of the server never has, or has twice', async () => {
  const place = await newDatabase(mariadb.server.url);
  const dataSource = await place.dataSource();
  const [zone]: object[] = await dataSource.query(
    'SELECT @@time_zone AS zone, @@system_time_zone AS machine',
  );
  expect(zone).toEqual({ zone: 'SYSTEM', machine: expect.stringMatching(/^E[SD]T$/) as string });
  await ensureSchema(dataSource);
  const locks = typeormLocks(dataSource);
  const year = new Date().getUTCFullYear() + 1;
  const HOUR_MS = 3_600_000;
  const endOf = async (key: string): Promise<number> => {
    const beforeMs = Date.now();
    const { expiresInMs } = await look(locks, key);
    return expiresInMs! + (beforeMs + Date.now()) / 2;
  };
  const until = (atMs: number): number => Math.round(atMs - Date.now());
  const near = (atMs: number, what: number): void => expect(Math.abs(what - atMs)).toBeLessThan(2_000);

  // 02:30 is no time of that day: the clock goes from 02:00 to 03:00.
  const gapMs = sunday(year, 2, 2) + 2.5 * HOUR_MS;
  const lease = await granted(locks, claim({ key: 'gap', ttlMs: until(gapMs) }));
  near(gapMs, await endOf('gap'));
  const laterMs = gapMs + HOUR_MS / 2 - 1_000;
  expect(await renew(locks, lease, until(laterMs))).toBe('renewed');
  near(laterMs, await endOf('gap'));

  // Both are 01:30 there.
  const [first, second] = [5.5, 6.5].map((hour) => sunday(year, 10, 1) + hour * HOUR_MS);
  await granted(locks, claim({ key: 'first', ttlMs: until(first!) }));
  await granted(locks, claim({ key: 'second', ttlMs: until(second!) }));
  near(first!, await endOf('first'));
  near(HOUR_MS, (await endOf('second')) - (await endOf('first')));
  await locks.close();
  await place.close();
});
