/**
 * Locks on Postgres beyond the contract: what a server, a pool, a pooler and their settings do to them, and what each
 * verb costs, counted at the server.
 */
import { createGuard, type LockBackend, type Notice } from '@guard/core';
import { ensureSchema, typeormLocks } from '@guard/typeorm';
import { startTcpProxy } from '@guard/testing';
import { startPgbouncer } from '@guard/testing/servers';
import type { DataSource } from 'typeorm';
import { ask, claim, granted, look, release, renew } from '../support/locking.js';
import type { Place } from '../support/place-on-server.js';
import { newSchema, onPostgres } from '../support/postgres.js';

const postgres = onPostgres({
  settings: ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=all'],
});
let place: Place;
let opened: (() => Promise<unknown>)[];

beforeEach(async () => {
  opened = [];
  place = await newSchema(postgres.server.url);
  await ensureSchema(await place.dataSource());
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

/** A data source whose every session has these settings of the server. */
const sessions = (settings: string): Promise<DataSource> =>
  place.dataSource({ extra: { options: settings } });

const ended = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('settings of the data source', () => {
  it.each([
    ['serializable transactions [B90]', '-c default_transaction_isolation=serializable'],
    ['repeatable reads', '-c default_transaction_isolation=repeatable\\ read'],
    ['a time zone and date style', '-c timezone=Pacific/Kiritimati -c datestyle=German,DMY'],
    ['commits that do not wait', '-c synchronous_commit=off'],
  ])('[S1] [S2] do not matter: %s', async (_, settings) => {
    const [one, other] = [locksOn(await sessions(settings)), locksOn(await sessions(settings))];
    const tries = Array.from({ length: 16 }, (_, n) => ask(n % 2 === 0 ? one : other, claim()));
    const statuses = (await Promise.all(tries)).map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array<string>(15).fill('busy'), 'granted']);
    const first = await granted(one, claim({ key: 'ns/lock/b', floor: 2n ** 62n }));
    expect(first.token).toBe(2n ** 62n);
    expect(await renew(one, first)).toBe('renewed');
    expect(await release(one, first)).toBe('released');
    expect((await granted(other, claim({ key: 'ns/lock/b' }))).token).toBe(2n ** 62n + 1n);
  });

  it('[S2] do not matter: numbers that arrive as numbers', async () => {
    const locks = locksOn(await place.dataSource({ parseInt8: true }));
    const { token } = await granted(locks, claim({ floor: 2n ** 60n + 1n }));
    expect(token).toBe(2n ** 60n + 1n);
  });

  it('[V14] refuse every claim where the session is read-only, and say why', async () => {
    const locks = locksOn(await sessions('-c default_transaction_read_only=on'));
    for (const wait of [false, true]) {
      expect(await ask(locks, claim({ wait }))).toMatchObject({
        status: 'failed',
        cause: { code: 'unavailable', message: expect.stringContaining('read-only') },
      });
    }
  });

  it('[S6] say what to do where the tables, or the rights to them, are missing', async () => {
    const dataSource = await place.dataSource();
    const without = typeormLocks(dataSource, { prefix: 'none_' });
    expect(await ask(without, claim())).toMatchObject({
      status: 'failed',
      cause: {
        code: 'schema-missing',
        message: expect.stringContaining('guardMigrations({ prefix: "none_" })'),
      },
    });
    const role = `r${place.schema}`;
    await dataSource.query(`CREATE ROLE ${role} LOGIN`);
    await dataSource.query(`GRANT USAGE ON SCHEMA ${place.schema} TO ${role}`);
    const theirs = locksOn(await place.dataSource({ url: place.url.replace('guard:guard@', `${role}@`) }));
    expect(await ask(theirs, claim())).toMatchObject({
      status: 'failed',
      cause: { code: 'unavailable', message: expect.stringContaining('grant it SELECT') },
    });
  });

  it('says that a data source was never initialized', async () => {
    const { DataSource } = await import('typeorm');
    const locks = typeormLocks(new DataSource({ type: 'postgres', url: place.url }));
    expect(await ask(locks, claim())).toMatchObject({
      status: 'failed',
      cause: { code: 'unavailable', message: expect.stringContaining('not initialized') },
    });
  });
});

describe('statements', () => {
  /** How often statements on the table of locks were carried out. */
  async function counted(work: () => Promise<void>): Promise<number> {
    const dataSource = await place.dataSource();
    await dataSource.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA public');
    await dataSource.query('SELECT public.pg_stat_statements_reset()');
    await work();
    const rows: { query: string; calls: string }[] = await dataSource.query(
      `SELECT query, calls FROM public.pg_stat_statements WHERE query LIKE '%"${place.schema}"."guard_lock"%'`,
    );
    const calls = rows.filter(({ query }) => !query.includes('pg_stat_statements'));
    return calls.reduce((sum, one) => sum + Number(one.calls), 0);
  }

  it('[C1] are one to acquire and one to release, on a new key and on a used one', async () => {
    const locks = locksOn(await place.dataSource());
    const statements = await counted(async () => {
      for (let n = 0; n < 10; n += 1) {
        expect(await release(locks, await granted(locks, claim({ key: `ns/lock/${n % 3}` })))).toBe(
          'released',
        );
      }
    });
    expect(statements).toBe(20);
  });

  it('[C2] are one for a batch of each verb', async () => {
    const locks = locksOn(await place.dataSource());
    const claims = Array.from({ length: 100 }, (_, n) => claim({ key: `ns/lock/${n}`, ttlMs: 30_000 }));
    const statements = await counted(async () => {
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

  it('[C4] are one for a release that hands the lock over, and one message', async () => {
    const [one, other] = [locksOn(await place.dataSource()), locksOn(await place.dataSource())];
    const wanted = { key: 'ns/lock/k', ttlMs: 30_000 };
    let holder = await granted(one, claim(wanted));
    const waiting = Array.from({ length: 10 }, () => claim({ ...wanted, wait: true, ticketTtlMs: 30_000 }));
    for (const ticket of waiting) expect((await ask(other, ticket)).status).toBe('queued');
    const heard: { claim: string; token: bigint }[] = [];
    for (const { session } of waiting) {
      const stream = await other.subscribe!(
        session,
        (notice) => notice.type === 'granted' && heard.push(notice),
      );
      opened.push(() => stream.close());
    }
    // Whoever handed over once knows that the key is wanted.
    await ask(one, claim(wanted));
    const statements = await counted(async () => {
      for (const [n, { key, id, session }] of waiting.entries()) {
        await release(n === 0 ? one : other, holder);
        while (heard.length <= n) await ended(2);
        expect(heard[n]!.claim).toBe(id);
        holder = { key, claim: id, session, token: heard[n]!.token };
      }
    });
    expect(statements).toBe(10);
    expect(heard).toHaveLength(10);
  });
});

describe('a pool', () => {
  it('[V22] of two connections serves two hundred waiters, and is free for the application meanwhile', async () => {
    const dataSource = await place.dataSource({ poolSize: 2 });
    const guard = createGuard({ locks: typeormLocks(dataSource), namespace: 'ns' });
    opened.push(() => guard.close());
    let inside = 0;
    let most = 0;
    const work = Array.from({ length: 200 }, (_, n) =>
      guard.withLock(`k${n % 4}`, { wait: '50s', ttl: '5s' }, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await dataSource.query('SELECT 1');
        inside -= 1;
      }),
    );
    await Promise.all(work);
    expect(most).toBeLessThanOrEqual(4);
  });

  it('[B72] [S6] throws away connections that the server ended, each after one statement at the most, and keeps its locks', async () => {
    const application = { poolSize: 4, extra: { application_name: 'B72' } };
    const locks = locksOn(await place.dataSource(application));
    const keys = [1, 2, 3, 4, 5].map((n) => `ns/lock/held ${n}`);
    const held = await Promise.all(keys.map((key) => granted(locks, claim({ key, ttlMs: 60_000 }))));
    const admin = await place.dataSource();
    for (let round = 0; round < 5; round += 1) {
      const tries = (name: string): Promise<string[]> =>
        Promise.all(
          [1, 2, 3, 4, 5, 6, 7, 8].map(async (n) => {
            return (await ask(locks, claim({ key: `ns/lock/${name} ${round} ${n}` }))).status;
          }),
        );
      await tries('before');
      await admin.query(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'B72'",
      );
      const failed = (await tries('at once')).filter((status) => status !== 'granted');
      expect(failed.length).toBeLessThanOrEqual(4);
      expect(await tries('after')).toEqual(Array(8).fill('granted'));
    }
    for (const lease of held) expect(await renew(locks, lease, 60_000)).toBe('renewed');
  });

  it('[S4] that had no connection in time carries nothing out later', async () => {
    const dataSource = await place.dataSource({ poolSize: 1 });
    const locks = locksOn(dataSource);
    const runner = dataSource.createQueryRunner();
    await runner.connect();
    const late = ask(locks, claim());
    await ended(5_300);
    await runner.release();
    expect(await late).toMatchObject({ status: 'failed', cause: { code: 'unavailable' } });
    expect((await look(locks)).held).toBe(false);
  });
});

describe('messages', () => {
  const LISTENING = "query LIKE 'UNLISTEN%' OR query LIKE 'LISTEN%'";

  /** The connections by which messages come in. */
  async function listening(admin: DataSource): Promise<unknown[]> {
    return admin.query(`SELECT pid FROM pg_stat_activity WHERE ${LISTENING}`);
  }

  async function breakMessages(admin: DataSource): Promise<void> {
    const killed = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${LISTENING}`;
    expect(await admin.query(killed)).toHaveLength(1);
  }

  it('[L2] stop where the server ends the connection, are told to be missing, and come again', async () => {
    const dataSource = await place.dataSource();
    const locks = locksOn(dataSource);
    const wanted = claim({ wait: true, ticketTtlMs: 30_000 });
    const heard: string[] = [];
    const stream = await locks.subscribe!(wanted.session, (notice) =>
      heard.push(notice.type === 'gap' ? `open: ${notice.open}` : notice.type),
    );
    opened.push(() => stream.close());
    const held = await granted(locks, claim({ ttlMs: 30_000 }));
    await ask(locks, wanted);
    await breakMessages(dataSource);
    while (!heard.includes('open: true')) await ended(5);
    await release(locks, held);
    while (!heard.includes('granted')) await ended(5);
    expect(heard).toEqual(['open: false', 'open: true', 'granted']);
  });

  it('[L2] come again for everybody where a newcomer opens the connection that broke', async () => {
    const dataSource = await place.dataSource();
    const locks = locksOn(dataSource);
    const heard: string[] = [];
    const telling = (name: string) => (notice: Notice) =>
      void (notice.type === 'gap' && heard.push(`${name} open: ${notice.open}`));
    await locks.subscribe!('first', telling('first'));
    await breakMessages(dataSource);
    while (heard.length === 0) await ended(1);
    await locks.subscribe!('second', telling('second'));
    while (!heard.includes('first open: true')) await ended(5);
    expect(heard.filter((told) => told.startsWith('first'))).toEqual([
      'first open: false',
      'first open: true',
    ]);
  });

  it('[L5] have no connection once the last listener left while it was being opened again', async () => {
    const admin = await place.dataSource();
    const { hostname, port } = new URL(place.url);
    const proxy = await startTcpProxy({ target: { host: hostname, port: Number(port) } });
    opened.push(() => proxy.close());
    const url = new URL(place.url);
    [url.hostname, url.port] = [proxy.host, String(proxy.port)];
    const locks = locksOn(await place.dataSource({ url: String(url) }));
    const heard: Notice[] = [];
    const stream = await locks.subscribe!('session', (notice) => void heard.push(notice));
    proxy.delay(60);
    await breakMessages(admin);
    while (heard.length === 0) await ended(1);
    await ended(300);
    await stream.close();
    await ended(1_500);
    expect([await listening(admin), heard]).toEqual([[], [{ type: 'gap', open: false }]]);
  });

  it('[L2] are not waited for behind a pooler that keeps them back: waiters poll, and are served in order', async () => {
    const pooler = await startPgbouncer({ postgres: postgres.server });
    opened.push(() => pooler.stop());
    const { hostname, port } = new URL(pooler.url);
    const url = new URL(place.url);
    [url.hostname, url.port] = [hostname, port];
    const sources = [1, 2, 3].map(() => place.dataSource({ url: String(url) }));
    const guards = (await Promise.all(sources)).map((dataSource) =>
      createGuard({ locks: typeormLocks(dataSource), namespace: 'ns' }),
    );
    for (const guard of guards) opened.push(() => guard.close());
    const served: number[] = [];
    const held = await guards[0]!.acquire('k', { ttl: '30s' });
    const waiting = [];
    for (let n = 0; n < 6; n += 1) {
      waiting.push(guards[n % 3]!.withLock('k', { wait: '20s' }, () => void served.push(n)));
      await ended(150);
    }
    await held.release();
    await Promise.all(waiting);
    expect(served).toEqual([0, 1, 2, 3, 4, 5]);
    await Promise.all(
      Array.from({ length: 40 }, (_, n) => guards[n % 3]!.withLock(`many ${n}`, () => undefined)),
    );
  });
});

describe('a server', () => {
  it('[S6] [L2] that is killed and started again keeps its locks, is never read as busy, and wakes waiters after it', async () => {
    const { server } = postgres;
    const locks = locksOn(await place.dataSource());
    const held = await granted(locks, claim({ ttlMs: 60_000 }));
    const wanted = claim({ wait: true, ticketTtlMs: 60_000 });
    const heard: string[] = [];
    const stream = await locks.subscribe!(wanted.session, (notice) => heard.push(notice.type));
    opened.push(() => stream.close());
    expect((await ask(locks, wanted)).status).toBe('queued');
    await server.kill();
    expect(await ask(locks, claim())).toMatchObject({ status: 'failed' });
    expect(await renew(locks, held)).toBe('failed');
    await server.restart({ keepData: true });
    while ((await ask(locks, claim())).status === 'failed') await ended(50);
    expect(await ask(locks, claim())).toMatchObject({ status: 'busy' });
    expect(await renew(locks, held, 60_000)).toBe('renewed');
    while (heard.filter((type) => type === 'gap').length < 2) await ended(20);
    expect(await release(locks, held)).toBe('released');
    while (!heard.includes('granted')) await ended(5);
    expect((await look(locks)).lease?.claim).toBe(wanted.id);
  });

  it('[V14] [S6] that is a standby refuses every claim and renewal of anybody, and serves them once it is promoted', async () => {
    const { server } = postgres;
    const locks = locksOn(await place.dataSource());
    const held = await granted(locks, claim({ key: 'ns/lock/held', ttlMs: 120_000 }));
    const admin = await place.dataSource();
    await admin.query("COPY (SELECT 1) TO PROGRAM 'touch standby.signal'");
    await server.restart({ keepData: true });
    const standby = await place.dataSource();
    expect(await standby.query('SELECT pg_is_in_recovery() AS yes')).toEqual([{ yes: true }]);
    const refused = { code: 'unavailable', message: expect.stringContaining('it is a replica') };
    for (const backend of [locks, locksOn(await place.dataSource())]) {
      // Connections of before the restart are thrown away first.
      while ((await look(backend, held.key).catch(() => undefined)) === undefined) await ended(50);
      for (const wait of [false, true]) {
        expect(await ask(backend, claim({ wait }))).toMatchObject({ status: 'failed', cause: refused });
      }
      expect(await renew(backend, held)).toBe('failed');
      expect(await release(backend, held)).toBe('failed');
      expect(await look(backend, held.key)).toMatchObject({ held: true, token: held.token });
    }
    expect(await standby.query('SELECT pg_promote() AS done')).toEqual([{ done: true }]);
    expect(await renew(locks, held, 120_000)).toBe('renewed');
    expect(await ask(locks, claim({ key: held.key }))).toMatchObject({ status: 'busy' });
    expect((await granted(locks)).token).toBeGreaterThan(held.token);
    expect(await release(locks, held)).toBe('released');
  });
});

describe('housekeeping', () => {
  it('[S3] removes rows that nobody has used for long, and never a live lock, ticket or tombstone', async () => {
    const clock = skewedClock();
    const locks = typeormLocks(await place.dataSource(), { clock });
    opened.push(() => locks.close());
    const dataSource = await place.dataSource();
    const live = await granted(locks, claim({ key: 'ns/lock/live', ttlMs: 60_000 }));
    for (const key of ['ns/lock/idle', 'ns/lock/ahead', 'ns/lock/tomb', 'ns/lock/queue']) {
      const floor = key.endsWith('ahead') ? { floor: 2n ** 62n } : {};
      await release(locks, await granted(locks, claim({ key, ...floor })));
    }
    const table = `"${place.schema}".guard_lock`;
    const longAgo = `${(Date.now() - 3_600_000) * 1_000}`;
    await dataSource.query(
      `UPDATE ${table} SET token = least(token, ${longAgo}) WHERE claim IS NULL AND token < 2^61`,
    );
    const soon = `${(Date.now() + 60_000) * 1_000}`;
    await dataSource.query(`UPDATE ${table} SET tombs = '{"c": ${soon}}' WHERE key = 'ns/lock/tomb'`);
    await dataSource.query(
      `UPDATE ${table} SET queue = '[{"c":"c","s":"s","h":"{}","f":"0","q":1000,"u":${soon}}]' WHERE key = 'ns/lock/queue'`,
    );
    clock.shift(6_000);
    expect(await renew(locks, live)).toBe('renewed');
    const keys = async (): Promise<string[]> =>
      (await dataSource.query(`SELECT key FROM ${table} ORDER BY key`)).map(
        ({ key }: { key: string }) => key,
      );
    while ((await keys()).includes('ns/lock/idle')) await ended(5);
    expect(await keys()).toEqual(['ns/lock/ahead', 'ns/lock/live', 'ns/lock/queue', 'ns/lock/tomb']);
  });
});

/** The real time, some of which a test can let pass at once. */
function skewedClock() {
  let shiftedMs = 0;
  return {
    shift: (ms: number): void => void (shiftedMs += ms),
    now: () => ({ monoMs: performance.now() + shiftedMs, wallMs: Date.now() }),
    setTimer: (run: () => void, ms: number) => {
      const timer = setTimeout(run, ms);
      return { cancel: () => clearTimeout(timer) };
    },
    yield: (run: () => void) => void setImmediate(run),
  };
}

describe('ensureSchema', () => {
  it('survives being raced by many processes', async () => {
    const sources = await Promise.all(Array.from({ length: 8 }, () => place.dataSource()));
    await Promise.all(sources.map((dataSource) => ensureSchema(dataSource, { prefix: 'raced_' })));
    const locks = typeormLocks(sources[0]!, { prefix: 'raced_' });
    await granted(locks);
  });
});

describe('a server that stands still', () => {
  it('[L3] [L5] keeps neither locks that are closed nor their connection for messages', async () => {
    const locks = locksOn(await place.dataSource());
    const sockets = (): number =>
      process.getActiveResourcesInfo().filter((what) => what === 'TCPSocketWrap').length;
    const before = sockets();
    const stream = await locks.subscribe!('session', () => undefined);
    await postgres.server.pause();
    try {
      const startMs = performance.now();
      await Promise.all([locks.close(), stream.close()]);
      expect(performance.now() - startMs).toBeLessThan(5_000);
      await ended(100);
      expect(sockets()).toBeLessThanOrEqual(before);
    } finally {
      await postgres.server.resume();
    }
  });
});
