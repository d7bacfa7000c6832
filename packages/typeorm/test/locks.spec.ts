/**
 * What locks promise on SQLite beyond the port: they live in a file of their own, whatever the application's
 * transactions do; a waiter does not write; a fault of the file is a fault; a reboot keeps nobody out and lets nobody
 * in too early.
 */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureSchema, typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import { GuardError, type LockBackend, type StateStore } from '@guard/core';
import { VirtualClock } from '@guard/testing';
import type { DataSource } from 'typeorm';
import { shell, watchedDriver } from './support/drivers.js';
import { ask, claim, granted, look, release, renew } from './support/locking.js';
import { heldBy, newPlace, type Place } from './support/place.js';

const TTL = 3_000;

jest.setTimeout(60_000);

let place: Place;
let clock: VirtualClock;
let opened: { close(): Promise<void> }[];

beforeEach(() => {
  place = newPlace();
  clock = new VirtualClock();
  opened = [];
});

afterEach(async () => {
  for (const one of opened) await one.close();
  place.remove();
});

function open(dataSource: DataSource = place.dataSource(), options: object = heldBy(clock)): LockBackend {
  const locks = typeormLocks(dataSource, options);
  opened.push(locks);
  return locks;
}

function openState(dataSource: DataSource = place.dataSource()): StateStore {
  const state = typeormState(dataSource, heldBy(clock));
  opened.push(state);
  return state;
}

/** Does something to the guard file as a person would. */
function onGuardFile<T>(work: (database: ReturnType<typeof shell>) => T): T {
  const database = shell(`${place.file}-guard`);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

/** Runs `work` while the application has a transaction open that writes, and rolls that back. */
async function inTransaction<T>(work: (dataSource: DataSource) => Promise<T>): Promise<T> {
  const dataSource = await place.dataSource({ enableWAL: true }).initialize();
  opened.push({ close: () => dataSource.destroy() });
  await dataSource.query('CREATE TABLE business (id integer)');
  const runner = dataSource.createQueryRunner();
  await runner.startTransaction();
  await runner.query('INSERT INTO business VALUES (1)');
  const result = await work(dataSource);
  await runner.rollbackTransaction();
  expect(await dataSource.query('SELECT * FROM business')).toEqual([]);
  return result;
}

describe('the data source', () => {
  it.each([':memory:', '', ' ', 'file::memory:?cache=shared'])('is refused where it is %j', (database) => {
    const dataSource = place.dataSource({ database });
    for (const make of [typeormLocks, typeormState]) {
      expect(() => make(dataSource)).toThrow(expect.objectContaining({ code: 'invalid-argument' }));
    }
    expect(() => typeormLocks(dataSource)).toThrow(/no other process can see/);
  });

  it('is refused where it is opened for reading only, by everything that writes', async () => {
    const dataSource = place.dataSource({ readonly: true });
    for (const make of [typeormLocks, typeormState, typeormRuns]) {
      expect(() => make(dataSource)).toThrow(/readonly must not be set: Guard writes to the database/);
    }
    await expect(ensureSchema(dataSource)).rejects.toThrow(/readonly must not be set/);
  });

  it('is refused with the names of the drivers that are supported', () => {
    const dataSource = { options: { type: 'spanner' }, driver: {} } as unknown as DataSource;
    expect(() => typeormLocks(dataSource)).toThrow(/better-sqlite3.*got "spanner"/);
  });

  it('need not be initialized; locks go to a file beside it, made on first use, and nothing to its own', async () => {
    const locks = open();
    const lease = await granted(locks);
    expect(onGuardFile((database) => database.pragma('journal_mode', { simple: true }))).toBe('wal');
    expect(() => shell(join(place.folder, 'app.sqlite')).prepare('SELECT * FROM guard_lock')).toThrow(
      /no such table/,
    );
    expect(await release(locks, lease)).toBe('released');
  });

  it('gives one name to one file, whatever path leads to it', () => {
    mkdirSync(join(place.folder, 'deep'));
    const direct = open().name;
    // The driver takes no space at an end for a part of the path.
    for (const path of [
      join(place.folder, 'deep', '..', 'app.sqlite'),
      ` ${join(place.folder, 'app.sqlite')} `,
    ]) {
      expect(typeormLocks(place.dataSource({ database: path })).name).toBe(direct);
    }
    expect(typeormLocks(place.dataSource(), { name: 'main' }).name).toBe('main');
  });
});

it('[S1] of a relative path are those of the file that was opened, wherever the process is by then', async () => {
  const before = process.cwd();
  process.chdir(place.folder);
  try {
    const dataSource = await place.dataSource({ database: 'app.sqlite' }).initialize();
    await granted(open(dataSource));
    mkdirSync('elsewhere');
    process.chdir('elsewhere');
    expect(await ask(open(dataSource), claim())).toMatchObject({ status: 'busy' });
    expect(existsSync('app.sqlite-guard')).toBe(false);
    await dataSource.destroy();
  } finally {
    process.chdir(before);
  }
});

describe('transactions of the application', () => {
  it('[S9] [B65] do not contain the lock: others see it at once, and a rollback leaves it', async () => {
    const others = open();
    const { mine, lease } = await inTransaction(async (dataSource) => {
      const locks = open(dataSource);
      const held = await granted(locks);
      expect(await ask(others, claim())).toMatchObject({ status: 'busy' });
      return { mine: locks, lease: held };
    });
    expect(await ask(others, claim())).toMatchObject({ status: 'busy' });
    expect(await release(mine, lease)).toBe('released');
    await granted(others);
  });

  it('[S9] [B78] and 20 locks at the same time disturb each other in nothing', async () => {
    await inTransaction(async (dataSource) => {
      const [locks, state] = [open(dataSource), openState(dataSource)];
      await granted(locks, claim({ key: 'held' }));
      const pairs = Array.from({ length: 20 }, async (_, n) => {
        const lease = await granted(locks, claim({ key: `k${n}` }));
        return release(locks, lease);
      });
      expect(new Set(await Promise.all(pairs))).toEqual(new Set(['released']));
      await state.write([{ key: 's', value: '1', expect: 'absent', writeId: 'w', ttl: 'none' }]);
    });
    expect(await look(open(), 'held')).toMatchObject({ held: true });
    expect(await openState().read(['s'])).toMatchObject([{ value: '1' }]);
  });
});

describe('the cost', () => {
  it('[C1] of a lock that nobody else wants is one statement to take, one to renew, one to give back', async () => {
    const seen: string[] = [];
    const locks = open(place.dataSource({ driver: watchedDriver((statement) => seen.push(statement)) }));
    await release(locks, await granted(locks));
    seen.length = 0;
    const lease = await granted(locks);
    expect(seen.map(verb)).toEqual(['INSERT']);
    await renew(locks, lease);
    expect(seen.slice(1).map(verb)).toEqual(['UPDATE']);
    await release(locks, lease);
    expect(seen.slice(2).map(verb)).toEqual(['DELETE']);
  });

  it('[C2] of a batch is one transaction', async () => {
    const seen: string[] = [];
    const locks = open(place.dataSource({ driver: watchedDriver((statement) => seen.push(statement)) }));
    await look(locks);
    seen.length = 0;
    await locks.acquire(Array.from({ length: 30 }, (_, n) => claim({ key: `k${n}` })));
    expect(seen.filter((statement) => statement === 'COMMIT')).toHaveLength(1);
    expect(seen.map(verb)).toEqual(['BEGIN', ...Array<string>(30).fill('INSERT'), 'COMMIT']);
  });

  it('of waiting is one read: a poll that changes nothing does not write, even while nobody could', async () => {
    const [holder, waiting] = [open(), open()];
    await granted(holder, claim({ ttlMs: 600_000 }));
    const wanted = claim({ wait: true, ticketTtlMs: 6_000 });
    expect(await ask(waiting, wanted)).toMatchObject({ status: 'queued', fresh: true });
    const trying = claim();
    expect(await ask(waiting, trying)).toMatchObject({ status: 'busy' });
    const blocker = shell(`${place.file}-guard`);
    blocker.exec('BEGIN IMMEDIATE');
    for (let poll = 0; poll < 10; poll += 1) {
      expect(await ask(waiting, wanted)).toMatchObject({ status: 'queued', ahead: 0, fresh: false });
      expect(await ask(waiting, trying)).toMatchObject({ status: 'busy' });
      await clock.advance(199);
    }
    blocker.exec('ROLLBACK');
    blocker.close();
    await clock.advance(25);
    expect(await ask(waiting, wanted)).toMatchObject({ status: 'queued', ahead: 0, fresh: false });
    await clock.advance(5_000);
    expect(await look(holder)).toMatchObject({ waiting: 1 });
  });

  it('is never a stopped event loop: timers fire while calls follow each other without a pause', async () => {
    const locks = open(place.dataSource(), {});
    let fired = 0;
    const interval = setInterval(() => (fired += 1), 5);
    const endMs = performance.now() + 400;
    while (performance.now() < endMs) await release(locks, await granted(locks));
    clearInterval(interval);
    expect(fired).toBeGreaterThan(8);
  });
});

describe('tokens', () => {
  it('[S2] grow over whatever removes a row, also by hand, and over a wall clock that was set back', async () => {
    const locks = open();
    const other = (await granted(locks, claim({ key: 'other' }))).token;
    const held = (await granted(locks)).token;
    clock.shiftWall(-86_400_000);
    onGuardFile((database) => database.exec("DELETE FROM guard_lock WHERE key <> ''"));
    const next = (await granted(locks)).token;
    expect(next).toBeGreaterThan(held);
    expect((await granted(locks, claim({ key: 'other' }))).token).toBeGreaterThan(other);
  });

  it('[S2] grow over the loss of the whole file, by the time', async () => {
    const first = open();
    const { token } = await granted(first);
    await first.close();
    for (const end of ['', '-wal', '-shm']) rmSync(`${place.file}-guard${end}`, { force: true });
    await clock.advance(1);
    expect((await granted(open())).token).toBeGreaterThan(token);
  });

  it('are exact to 63 bits; a floor beyond is a fault, not a wrong number', async () => {
    const locks = open();
    const floor = 2n ** 62n + 1n;
    const lease = await granted(locks, claim({ floor }));
    expect(lease.token).toBe(floor);
    expect(await release(locks, { ...lease, token: floor - 1n })).toBe('lost');
    expect(await release(locks, lease)).toBe('released');
    expect((await granted(locks)).token).toBe(floor + 1n);
    expect(await ask(locks, claim({ key: 'x', floor: 2n ** 63n }))).toMatchObject({ status: 'failed' });
  });
});

describe('a fault', () => {
  it('[S6] of a file that stays busy is failed with its cause, and a file that is busy for a while is waited for', async () => {
    const locks = open();
    await look(locks);
    const blocker = shell(`${place.file}-guard`);
    blocker.exec('BEGIN IMMEDIATE');
    const late = ask(locks, claim());
    // A turn of the event loop that real time cut short can shift a pause: time goes on until it is settled.
    expect(await clock.runUntil(late)).toMatchObject({ status: 'failed', cause: { code: 'SQLITE_BUSY' } });
    const patient = ask(locks, claim());
    await clock.advance(TTL / 6);
    blocker.exec('COMMIT');
    blocker.close();
    expect(await clock.runUntil(patient)).toMatchObject({ status: 'granted' });
  });

  it('[B88] of a missing table is never taken for busy, and is over when the file is repaired', async () => {
    const locks = open();
    const lease = await granted(locks);
    onGuardFile((database) => database.exec('ALTER TABLE guard_lock RENAME TO away'));
    expect(await ask(locks, claim())).toMatchObject({
      status: 'failed',
      cause: { message: /no such table/ },
    });
    expect(await renew(locks, lease)).toBe('failed');
    expect(await release(locks, lease)).toBe('failed');
    await expect(locks.inspect({ keys: ['k'] })).rejects.toMatchObject({
      message: expect.stringMatching(/no such table/),
    });
    onGuardFile((database) => database.exec('ALTER TABLE away RENAME TO guard_lock'));
    expect(await renew(locks, lease)).toBe('renewed');
    expect(await ask(locks, claim())).toMatchObject({ status: 'busy' });
  });

  it('[B88] of a missing folder, or a file that is no database, says so, and is over when it is repaired', async () => {
    const folder = join(place.folder, 'later');
    const locks = open(place.dataSource({ database: join(folder, 'app.sqlite') }));
    expect(await ask(locks, claim())).toMatchObject({ status: 'failed' });
    mkdirSync(folder);
    writeFileSync(
      join(folder, 'app.sqlite-guard'),
      'something else than a database, and long enough to look at',
    );
    expect(await ask(locks, claim())).toMatchObject({ status: 'failed', cause: { code: 'SQLITE_NOTADB' } });
    rmSync(join(folder, 'app.sqlite-guard'));
    await granted(locks);
  });

  it('of a file that a newer version of the package made is refused, not guessed at', async () => {
    await granted(open());
    onGuardFile((database) => database.pragma('user_version = 99'));
    const answer = await ask(open(), claim());
    expect(answer).toMatchObject({ status: 'failed', cause: { code: 'schema-missing' } });
  });

  it('[S1-assumption] that replaces the file is seen: the holder loses, and all meet in the new file', async () => {
    const [mine, others] = [open(), open()];
    const lease = await granted(mine);
    renameSync(`${place.file}-guard`, join(place.folder, 'moved away'));
    await clock.advance(1_000);
    const next = await granted(others);
    expect(await renew(mine, lease)).toBe('lost');
    expect(await ask(mine, claim())).toMatchObject({ status: 'busy' });
    expect(next.token).toBeGreaterThan(lease.token);
  });

  it('of a backend that was closed is said in every answer', async () => {
    const locks = open();
    const lease = await granted(locks);
    await locks.close();
    const answer = await ask(locks, claim());
    expect(answer.status === 'failed' && GuardError.is(answer.cause, 'closed')).toBe(true);
    expect(await release(locks, lease)).toBe('failed');
  });
});

describe('another boot of the machine', () => {
  const reboot = (table: string): void =>
    onGuardFile((database) => void database.exec(`UPDATE ${table} SET boot = 'another' WHERE boot <> ''`));

  it('[S1] leaves a lease alone until this process has seen it unchanged for its whole ttl', async () => {
    const locks = open();
    const old = await granted(locks);
    reboot('guard_lock');
    await clock.advance(TTL * 10);
    expect(await ask(locks, claim())).toMatchObject({ status: 'busy', expiresInMs: TTL });
    await clock.advance(TTL - 1);
    expect(await ask(locks, claim())).toMatchObject({ status: 'busy', expiresInMs: 1 });
    await clock.advance(1);
    expect((await granted(locks)).token).toBeGreaterThan(old.token);
  });

  it('[S1] is a live one as long as it renews: every change starts the wait anew', async () => {
    const locks = open();
    await granted(locks);
    reboot('guard_lock');
    for (let round = 0; round < 5; round += 1) {
      expect(await ask(locks, claim())).toMatchObject({ status: 'busy' });
      await clock.advance(TTL - 1);
      onGuardFile((database) =>
        database.exec("UPDATE guard_lock SET since = since + 5 WHERE boot = 'another'"),
      );
    }
  });

  it('is seen by a moment in the future where the system does not name its boots', async () => {
    const locks = open();
    await granted(locks);
    onGuardFile((database) =>
      database.exec("UPDATE guard_lock SET since = since + 9e8, deadline = deadline + 9e8 WHERE key <> ''"),
    );
    expect(await ask(locks, claim())).toMatchObject({ status: 'busy', expiresInMs: TTL });
    await clock.advance(TTL);
    await granted(locks);
  });

  it('[L2] leaves a waiter its place for the life of its ticket, and no longer', async () => {
    const locks = open();
    const lease = await granted(locks, claim({ ttlMs: 60_000 }));
    await ask(locks, claim({ wait: true }));
    reboot('guard_ticket');
    expect(await look(locks)).toMatchObject({ waiting: 1 });
    await release(locks, lease);
    expect(await look(locks)).toMatchObject({ held: true, waiting: 0 });
    await clock.advance(900);
    expect(await look(locks)).toMatchObject({ held: false });
  });
});

describe('a stream of claims', () => {
  it('[B07] [L3] does not pass a renewal that came before it, turn after turn', async () => {
    const locks = open(place.dataSource(), {});
    const lease = await granted(locks, claim({ key: 'held' }));
    const endMs = performance.now() + 2_000;
    let taken = 0;
    // Two at a time, each answered in microtasks and followed by the next at once: as batches of one process are.
    const stream = async (name: string): Promise<void> => {
      while (performance.now() < endMs) await ask(locks, claim({ key: `${name}.${(taken += 1)}` }));
    };
    const streams = Promise.all([stream('a'), stream('b')]);
    while (taken < 200) await new Promise(setImmediate);
    expect(await renew(locks, lease)).toBe('renewed');
    expect(performance.now()).toBeLessThan(endMs);
    await streams;
  });
});

describe('the wall clock', () => {
  it.each([3_600_000, -3_600_000, 10 * 365 * 86_400_000])(
    '[B60] may jump by %d ms: no lease ends or lasts by it',
    async (ms) => {
      const locks = open();
      const lease = await granted(locks);
      await clock.advance(TTL / 2);
      clock.shiftWall(ms);
      expect(await ask(locks, claim())).toMatchObject({ status: 'busy', expiresInMs: TTL / 2 });
      expect(await renew(locks, lease)).toBe('renewed');
      await clock.advance(TTL);
      expect((await granted(locks)).token).toBeGreaterThan(lease.token);
    },
  );
});

describe('housekeeping', () => {
  it('[B95] removes what ended, bit by bit, and never touches what lives', async () => {
    const locks = open();
    const count = (table: string): number =>
      onGuardFile((database) => database.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number);
    const keys = Array.from({ length: 500 }, (_, n) => `k${String(n).padStart(3, '0')}`);
    for (const key of keys) await ask(locks, claim({ key }));
    for (const key of keys) {
      await locks.release([
        { cancel: true, key: `x${key}`, claim: `c${key}`, session: 's', tombstoneMs: 1_000 },
      ]);
    }
    const living = claim({ key: 'k250x', ttlMs: 600_000 });
    const lease = await granted(locks, living);
    await ask(locks, claim({ key: living.key, wait: true, ticketTtlMs: 1_000 }));
    await clock.advance(TTL);
    // One that ended is taken again before anybody cleans up.
    const again = await granted(locks, claim({ key: 'k100', ttlMs: 600_000 }));
    for (let round = 0; round < 12; round += 1) {
      await clock.advance(5_000);
      expect(await renew(locks, lease, 600_000)).toBe('renewed');
    }
    expect(count("guard_lock WHERE key <> ''")).toBe(2);
    expect([count('guard_ticket'), count('guard_tombstone')]).toEqual([0, 0]);
    expect(await look(locks, 'k100')).toMatchObject({ held: true, lease: { claim: again.claim } });
    expect(await release(locks, lease)).toBe('released');
  });
});

function verb(statement: string): string {
  return /[A-Z]+/.exec(statement)![0];
}
