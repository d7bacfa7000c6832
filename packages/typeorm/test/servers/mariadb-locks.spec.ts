/**
 * Locks on MariaDB beyond the contract: what a server, a pool and their settings do to them, what each verb costs,
 * counted at the server, and how many deadlocks there are.
 */
import { createGuard, type LockBackend } from '@guard/core';
import { ensureSchema, typeormLocks } from '@guard/typeorm';
import { DataSource } from 'typeorm';
import { ask, claim, granted, look, release, renew } from '../support/locking.js';
import { newDatabase, onMariadb, sessionsOn } from '../support/mariadb.js';
import type { Place } from '../support/place-on-server.js';

const mariadb = onMariadb();
let place: Place;
let root: DataSource;
let opened: (() => Promise<unknown>)[];

beforeEach(async () => {
  opened = [];
  place = await newDatabase(mariadb.server.url);
  root = await place.dataSource();
  await ensureSchema(root);
});

afterEach(async () => {
  for (const close of opened.reverse()) await close();
  await place.close();
});

function locksOn(dataSource: DataSource): LockBackend {
  const locks = typeormLocks(dataSource);
  opened.push(() => locks.close());
  return locks;
}

/** How far a counter of the server goes up. */
async function counted(name: string, work: () => Promise<void>): Promise<number> {
  const read = async (): Promise<number> => {
    const [row]: { Value: string }[] = await root.query(`SHOW GLOBAL STATUS LIKE '${name}'`);
    return Number(row!.Value);
  };
  const before = await read();
  await work();
  return (await read()) - before;
}

describe('settings of the data source on MariaDB', () => {
  it.each<[string, string, object]>([
    ['serializable transactions', 'SET SESSION tx_isolation = "SERIALIZABLE"', {}],
    ['committed reads', 'SET SESSION tx_isolation = "READ-COMMITTED"', {}],
    ['a time zone', 'SET SESSION time_zone = "+13:00"', { timezone: '+05:00' }],
    ['a short memory for texts', 'SET SESSION group_concat_max_len = 4', {}],
    ['another language', "SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'", {}],
    ['no strictness', "SET SESSION sql_mode = ''", {}],
    ['counts of changed rows', 'SET SESSION sql_safe_updates = 1', { extra: { flags: ['-FOUND_ROWS'] } }],
    ['numbers as numbers', 'SELECT 1', { supportBigNumbers: false, bigNumberStrings: false }],
  ])('[S1] [S2] [B71] do not matter: %s', async (_, statement, options) => {
    const [one, other] = [
      locksOn(await sessionsOn(place, statement, options)),
      locksOn(await sessionsOn(place, statement, options)),
    ];
    const tries = Array.from({ length: 16 }, (_, n) => ask(n % 2 === 0 ? one : other, claim()));
    const statuses = (await Promise.all(tries)).map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array<string>(15).fill('busy'), 'granted']);
    const first = await granted(one, claim({ key: 'ns/lock/b \u{1f512}', floor: 2n ** 62n }));
    expect(first.token).toBe(2n ** 62n);
    const queue = Array.from({ length: 3 }, () => claim({ key: first.key, wait: true }));
    for (const ticket of queue) expect((await ask(other, ticket)).status).toBe('queued');
    expect(await renew(one, first)).toBe('renewed');
    expect(await look(one, first.key)).toMatchObject({ held: true, waiting: 3, token: 2n ** 62n });
    expect(await release(one, first)).toBe('released');
    expect((await granted(other, queue[0])).token).toBe(2n ** 62n + 1n);
  });

  it.each([
    ['autocommit', 'SET SESSION autocommit = 0'],
    ['isolation level', 'SET SESSION tx_isolation = "READ-UNCOMMITTED"'],
    ['utf8mb4', 'SET NAMES latin1'],
  ])('are refused where they would break a promise: %s', async (what, statement) => {
    expect(await ask(locksOn(await sessionsOn(place, statement)), claim())).toMatchObject({
      status: 'failed',
      cause: { code: 'invalid-argument', message: expect.stringContaining(what) },
    });
  });

  it('[V14] refuse every claim where the session is read-only, and say why', async () => {
    const locks = locksOn(await sessionsOn(place, 'SET SESSION TRANSACTION READ ONLY'));
    for (const wait of [false, true]) {
      expect(await ask(locks, claim({ wait }))).toMatchObject({
        status: 'failed',
        cause: { code: 'unavailable', message: expect.stringContaining('read-only') },
      });
    }
  });

  it('[V14] [B74] refuse every claim of anybody while the server is a replica, and take them after it', async () => {
    const locks = locksOn(await place.dataSource());
    const held = await granted(locks, claim({ key: 'ns/lock/held', ttlMs: 60_000 }));
    await root.query('SET GLOBAL read_only = 1');
    try {
      const refused = { code: 'unavailable', message: expect.stringContaining('read-only') };
      expect(await ask(locks, claim())).toMatchObject({ status: 'failed', cause: refused });
      expect(await renew(locks, held)).toBe('failed');
      expect(await ask(locksOn(await place.dataSource()), claim())).toMatchObject({ cause: refused });
    } finally {
      await root.query('SET GLOBAL read_only = 0');
    }
    expect(await renew(locks, held, 60_000)).toBe('renewed');
    expect((await ask(locks, claim())).status).toBe('granted');
  });

  it('[S6] [B88] say what to do where the tables, or the rights to them, are missing', async () => {
    const without = typeormLocks(root, { prefix: 'none_' });
    expect(await ask(without, claim())).toMatchObject({
      status: 'failed',
      cause: {
        code: 'schema-missing',
        message: expect.stringContaining('guardMigrations({ prefix: "none_" })'),
      },
    });
    const user = place.schema.slice(0, 30);
    await root.query(`CREATE USER ${user}@'%' IDENTIFIED BY 'x'`);
    await root.query(`GRANT SELECT ON ${place.schema}.* TO ${user}@'%'`);
    const url = new URL(place.url);
    [url.username, url.password] = [user, 'x'];
    expect(await ask(locksOn(await place.dataSource({ url: url.href })), claim())).toMatchObject({
      status: 'failed',
      cause: { code: 'unavailable', message: expect.stringContaining('grant it SELECT') },
    });
  });

  it('says that a data source was never initialized', async () => {
    const locks = typeormLocks(new DataSource({ type: 'mariadb', url: place.url }));
    expect(await ask(locks, claim())).toMatchObject({
      status: 'failed',
      cause: { code: 'unavailable', message: expect.stringContaining('not initialized') },
    });
  });
});

describe('statements on MariaDB', () => {
  it('[C1] are one to acquire and one to release, on a new key and on a used one', async () => {
    const locks = locksOn(await place.dataSource({ poolSize: 1 }));
    const pairs = async (): Promise<void> => {
      for (let n = 0; n < 10; n += 1) {
        expect(await release(locks, await granted(locks, claim({ key: `ns/lock/${n % 3}` })))).toBe(
          'released',
        );
      }
    };
    await pairs();
    expect(await counted('Com_stmt_execute', pairs)).toBe(20);
  });

  it('[C2] are one for a batch of each verb', async () => {
    const locks = locksOn(await place.dataSource({ poolSize: 1 }));
    await granted(locks, claim({ key: 'ns/lock/first' }));
    const claims = Array.from({ length: 100 }, (_, n) => claim({ key: `ns/lock/${n}`, ttlMs: 30_000 }));
    const statements = await counted('Com_stmt_execute', async () => {
      const answers = await locks.acquire(claims);
      const leases = claims.map(({ key, id, session }, n) => {
        const answer = answers[n]!;
        return { key, claim: id, session, token: answer.status === 'granted' ? answer.token : 0n };
      });
      await locks.renew(leases.map((lease) => ({ ...lease, ttlMs: 30_000 })));
      expect((await locks.release(leases)).every(({ status }) => status === 'released')).toBe(true);
    });
    expect(statements).toBe(3);
  });

  it('[L2] write nothing for claims that are refused, or have to wait, again and again', async () => {
    const locks = locksOn(await place.dataSource());
    await granted(locks, claim({ ttlMs: 30_000 }));
    const [ticket, once] = [claim({ wait: true, ticketTtlMs: 30_000 }), claim()];
    await ask(locks, ticket);
    await ask(locks, once);
    const written = await counted('Handler_update', async () => {
      for (let n = 0; n < 10; n += 1) {
        expect(await ask(locks, ticket)).toMatchObject({ status: 'queued', ahead: 0 });
        expect(await ask(locks, claim())).toMatchObject({ status: 'busy', holder: expect.anything() });
      }
    });
    expect(written).toBe(0);
  });
});

describe('deadlocks on MariaDB', () => {
  const name = (n: number): string => `ns/lock/${String(n).padStart(4, '0')}`;

  it.each<[string, (worker: number, round: number) => number[]]>([
    ['one key', () => [0]],
    ['eight keys', (worker, round) => [(worker + round) % 8]],
    ['keys that are new every time', (worker, round) => [worker * 1_000 + round]],
    [
      'batches that overlap',
      (worker, round) => Array.from({ length: 16 }, (_, n) => (worker * 7 + round * 3 + n * 5) % 64),
    ],
  ])('are none with 64 at once on %s', async (_, keysOf) => {
    const locks = locksOn(await place.dataSource({ poolSize: 16 }));
    const deadlocks = await counted('Innodb_deadlocks', async () => {
      const work = Array.from({ length: 64 }, async (_, worker) => {
        for (let round = 0; round < 5; round += 1) {
          const keys = [...new Set(keysOf(worker, round))].sort((a, b) => a - b).map(name);
          const claims = keys.map((key) => claim({ key, ttlMs: 30_000 }));
          const answers = await locks.acquire(claims);
          expect(answers.filter(({ status }) => status === 'failed')).toEqual([]);
          const leases = claims.flatMap(({ key, id, session }, n) => {
            const answer = answers[n]!;
            return answer.status === 'granted' ? [{ key, claim: id, session, token: answer.token }] : [];
          });
          if (leases.length > 0) await locks.release(leases);
        }
      });
      await Promise.all(work);
    });
    expect(deadlocks).toBe(0);
  });
});

describe('a pool of MariaDB', () => {
  it('[V22] [B76] of two connections serves two hundred waiters, and is free for the application meanwhile', async () => {
    const dataSource = await place.dataSource({ poolSize: 2 });
    const guard = createGuard({ locks: typeormLocks(dataSource), namespace: 'ns' });
    opened.push(() => guard.close());
    let inside = 0;
    let most = 0;
    const work = Array.from({ length: 200 }, (_, n) =>
      guard.withLock(`k${n % 40}`, { wait: '50s', ttl: '5s' }, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await dataSource.query('SELECT 1');
        inside -= 1;
      }),
    );
    await Promise.all(work);
    expect(most).toBeLessThanOrEqual(40);
  });
});

describe('a MariaDB server', () => {
  it('[S6] that is killed and started again keeps its locks, and is never read as busy', async () => {
    const { server } = mariadb;
    const locks = locksOn(await place.dataSource());
    const held = await granted(locks, claim({ ttlMs: 60_000 }));
    const wanted = claim({ wait: true, ticketTtlMs: 60_000 });
    expect((await ask(locks, wanted)).status).toBe('queued');
    await server.kill();
    expect(await ask(locks, claim())).toMatchObject({ status: 'failed' });
    expect(await renew(locks, held)).toBe('failed');
    await server.restart({ keepData: true });
    while ((await ask(locks, claim())).status === 'failed') await new Promise((wake) => setTimeout(wake, 50));
    expect(await ask(locks, claim())).toMatchObject({ status: 'busy' });
    expect(await renew(locks, held, 60_000)).toBe('renewed');
    expect(await release(locks, held)).toBe('released');
    expect((await look(locks)).lease?.claim).toBe(wanted.id);
  });

  it('[L3] [S6] that hangs ends claims in time and opens the breaker, while renewals go on, and serves as before after it', async () => {
    const locks = locksOn(await place.dataSource());
    const [claims, renewals] = [jest.spyOn(locks, 'acquire'), jest.spyOn(locks, 'renew')];
    const guard = createGuard({ locks, namespace: 'ns' });
    opened.push(() => guard.close());
    const held = await guard.acquire('held', { ttl: '6s' });
    const refused = (key: string): Promise<void> =>
      expect(guard.tryAcquire(key, { ttl: '1s' })).rejects.toMatchObject({ code: 'unavailable' });
    const { length: asked } = claims.mock.calls;
    await mariadb.server.pause();
    try {
      for (let n = 0; n < 20 && claims.mock.calls.length - asked === n; n += 1) await refused(`k${n}`);
      // The last one was refused without a question.
      expect(claims.mock.calls.length - asked).toBeLessThan(20);
      while (renewals.mock.calls.length === 0) await new Promise((wake) => setTimeout(wake, 20));
    } finally {
      await mariadb.server.resume();
    }
    await (await guard.acquire('k', { wait: '20s' })).release();
    // Longer than the lease that it had before the server hung.
    await new Promise((wake) => setTimeout(wake, held.remainingMs() + 500));
    expect(held.isHeld()).toBe(true);
    expect(await held.release()).toBe('released');
  });
});

describe('ensureSchema on MariaDB', () => {
  it('survives being raced by many processes', async () => {
    const sources = await Promise.all(Array.from({ length: 8 }, () => place.dataSource()));
    await Promise.all(sources.map((dataSource) => ensureSchema(dataSource, { prefix: 'raced_' })));
    await granted(typeormLocks(sources[0]!, { prefix: 'raced_' }));
  });
});
