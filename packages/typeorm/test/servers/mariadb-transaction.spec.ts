/** What Guard writes inside the application's transactions, on a real MariaDB. */
import { createGuard, type Guard, type Lock } from '@guard/core';
import { assertFence, completeRun, createRun, ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import type { DataSource, EntityManager } from 'typeorm';
import type { Place } from '../support/place-on-server.js';
import { newDatabase, onMariadb } from '../support/mariadb.js';
import { created, moved, record } from '../support/running.js';
import { settlingOnServer } from '../support/settling-on-server.js';
import { describeTransactions } from '../support/transaction-suite.js';

jest.setTimeout(120_000);

const mariadb = onMariadb();
describeTransactions('MariaDB', {
  newPlace: () => newDatabase(mariadb.server.url),
  createLedger: 'CREATE TABLE ledger (id int AUTO_INCREMENT PRIMARY KEY, what text)',
  insert: 'INSERT INTO ledger (what) VALUES (?)',
  statements: ['START TRANSACTION', 'INSERT', 'UPDATE', 'INSERT', 'COMMIT'],
  settling: settlingOnServer,
  // 0: the server's own, of nobody's session.
  openTransactions:
    'SELECT CAST(count(*) AS CHAR) AS open FROM information_schema.innodb_trx WHERE trx_mysql_thread_id NOT IN (0, connection_id())',
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('an open transaction on MariaDB', () => {
  const levels = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;
  let place: Place;
  let dataSource: DataSource;
  let guard: Guard;

  beforeEach(async () => {
    place = await newDatabase(mariadb.server.url);
    dataSource = await place.dataSource({ poolSize: 30 });
    await ensureSchema(dataSource);
    guard = createGuard({ locks: typeormLocks(dataSource), runs: typeormRuns(dataSource), namespace: 'n' });
  });

  afterEach(async () => {
    await guard.close();
    await place.close();
  });

  /** The application goes on in its transaction only once others have asked for twelve runs. */
  async function othersAsk(): Promise<void> {
    const asked = Array.from({ length: 12 }, (_, n) => guard.runs.create('other', { key: `o${n}` }));
    expect((await Promise.all(asked)).map(({ created }) => created)).toEqual(Array<boolean>(12).fill(true));
  }

  it.each(levels)('[S9] keeps nobody from asking for other runs after completeRun, at %s', async (level) => {
    const { status } = await guard.run('t', { key: 'k' }, () =>
      dataSource.transaction(level, async (manager) => {
        await completeRun(manager);
        await othersAsk();
      }),
    );
    expect(status).toBe('completed');
  });

  it.each(levels)('[S9] nor after createRun of a key that is there or of a new one, at %s', async (level) => {
    await guard.runs.create('t', { key: 'k' });
    await dataSource.transaction(level, async (manager) => {
      await manager.query('SELECT 1');
      expect((await createRun(manager, guard, 't', { key: 'k' })).created).toBe(false);
      expect((await createRun(manager, guard, 't', { key: 'new' })).created).toBe(true);
      expect((await createRun(manager, guard, 't', { key: 'new' })).created).toBe(false);
      await othersAsk();
    });
    expect((await guard.runs.list({ task: 't' })).runs).toHaveLength(2);
  });

  it('[S9] asks for a run whose key was rolled back or removed since it saw it, and for none that was committed', async () => {
    for (const [key, ends] of [
      ['rolled back', 'rollbackTransaction'],
      ['committed', 'commitTransaction'],
    ] as const) {
      const other = dataSource.createQueryRunner();
      await other.startTransaction();
      await createRun(other.manager, guard, 't', { key });
      const asked = dataSource.transaction(
        'READ UNCOMMITTED',
        async (manager) => (await createRun(manager, guard, 't', { key })).created,
      );
      await pause(200);
      await other[ends]();
      await other.release();
      expect({ key, created: await asked }).toEqual({ key, created: key === 'rolled back' });
    }
    await dataSource.transaction('REPEATABLE READ', async (manager) => {
      await manager.query('SELECT count(*) FROM guard_run');
      await dataSource.query("DELETE FROM guard_run WHERE run_key = 'committed'");
      expect((await createRun(manager, guard, 't', { key: 'committed' })).created).toBe(true);
    });
    const { runs } = await guard.runs.list({ task: 't' });
    expect(runs.map(({ run }) => run.key).sort()).toEqual(['committed', 'rolled back']);
  });

  it.each(['a fence', 'a run'])(
    '[S9] that asks for %s with two others, the first of which rolls back, is made at once or as a whole again',
    async (what) => {
      const lock = await guard.acquire('k');
      const ask = (manager: EntityManager): Promise<unknown> =>
        what === 'a fence' ? assertFence(manager, lock) : createRun(manager, guard, 't', { key: 'k' });
      const first = dataSource.createQueryRunner();
      await first.startTransaction();
      await ask(first.manager);
      const victims: unknown[] = [];
      const work = (): Promise<void> =>
        dataSource.transaction('READ COMMITTED', async (manager) => {
          await manager.query("INSERT INTO ledger VALUES ('once')");
          await ask(manager);
        });
      const again = (error: { readonly code?: unknown }): Promise<void> => {
        victims.push(error.code);
        return work();
      };
      await dataSource.query('CREATE TABLE ledger (what varchar(10))');
      const others = [work().catch(again), work().catch(again)];
      await pause(200);
      await first.rollbackTransaction();
      await first.release();
      await Promise.all(others);
      // The server decides whether there is one; there are no others.
      expect(['', 'ER_LOCK_DEADLOCK']).toContain(victims.join());
      expect(await dataSource.query('SELECT what FROM ledger')).toHaveLength(2);
      const rows = `SELECT * FROM ${what === 'a fence' ? 'guard_fence' : 'guard_run'}`;
      expect(await dataSource.query(rows)).toHaveLength(1);
    },
  );

  it('[S9] keeps nobody from asking for other runs while a change of its run waits for it', async () => {
    const runs = typeormRuns(dataSource);
    const stored = await created(runs, record('k'));
    const change = await dataSource.transaction(async (manager) => {
      await manager.query('SELECT seq FROM guard_run FORCE INDEX (PRIMARY) WHERE seq = 1 FOR UPDATE');
      const waiting = moved(runs, stored, { state: 'skipped', reason: 'missed', finishedAtMs: 1 });
      await pause(100);
      await othersAsk();
      return { waiting };
    });
    expect((await change.waiting).run.state).toBe('skipped');
  });

  it.each(levels)('[S9] nor from passing the fences of other locks, at %s', async (level) => {
    const locks = await Promise.all(['a', 'b', 'c', 'd'].map((key) => guard.acquire(key)));
    const pass = (lock: Lock): Promise<void> =>
      dataSource.transaction((manager) => assertFence(manager, lock));
    for (const lock of locks.slice(0, 3)) await pass(lock);
    await dataSource.transaction(level, async (manager) => {
      await assertFence(manager, locks[1]!);
      for (const other of [locks[0]!, locks[2]!, locks[3]!]) await pass(other);
    });
  });
});
