/** Stores of one MariaDB database that differ in their tables, pools with one connection, and pools of several servers. */
import { ensureSchema, typeormLocks } from '@guard/typeorm';
import { ask, claim, granted, renew } from '../support/locking.js';
import { newDatabase, onMariadb } from '../support/mariadb.js';
import { describeServerPlaces } from '../support/server-place-cases.js';

jest.setTimeout(60_000);

const mariadb = onMariadb();
describeServerPlaces('MariaDB', {
  newPlace: () => newDatabase(mariadb.server.url),
  poolOfOne: { extra: { connectionLimit: 1 } },
});

describe('a MariaDB with replication', () => {
  it('[S6] that was away for more faults than its driver counts is used again, and its locks with it', async () => {
    const { server } = mariadb;
    const place = await newDatabase(server.url);
    const master = { url: place.url };
    const dataSource = await place.dataSource({
      replication: { master, slaves: [master], restoreNodeTimeout: 200 },
    });
    await ensureSchema(dataSource);
    const locks = typeormLocks(dataSource);
    const held = await granted(locks, claim({ ttlMs: 60_000 }));
    await server.kill();
    for (let tries = 0; tries < 8; tries += 1) expect(await renew(locks, held)).toBe('failed');
    await server.restart({ keepData: true });
    while ((await renew(locks, held)) === 'failed') await new Promise((wake) => setTimeout(wake, 50));
    expect((await ask(locks, claim())).status).toBe('busy');
    await place.close();
  });
});
