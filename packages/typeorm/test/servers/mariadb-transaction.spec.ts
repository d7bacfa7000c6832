/** What Guard writes inside the application's transactions, on a real MariaDB. */
import { createGuard, type Guard, type Lock } from '@guard/core';
import { assertFence, completeRun, createRun, ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import type { DataSource } from 'typeorm';
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

  it('[S9] keeps nobody from asking for other runs while a change of its run waits for it', async () => {
    const runs = typeormRuns(dataSource);
    const stored = await created(runs, record('k'));
    const change = await dataSource.transaction(async (manager) => {
      await manager.query('SELECT seq FROM guard_run FORCE INDEX (PRIMARY) WHERE seq = 1 FOR UPDATE');
      const waiting = moved(runs, stored, { state: 'skipped', reason: 'missed', finishedAtMs: 1 });
      await new Promise((resolve) => setTimeout(resolve, 100));
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
