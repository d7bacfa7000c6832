/**
 * What Guard writes inside the application's transactions: the fence of a stale holder, and the completion of a run
 * together with its effect. The last part kills the process at every statement.
 */
import {
  assertFence,
  completeRun,
  ensureSchema,
  guardMigrations,
  typeormLocks,
  typeormRuns,
} from '@guard/typeorm';
import { createGuard, memoryLocks, memoryState, type Guard, type GuardOptions, type Lock } from '@guard/core';
import { VirtualClock } from '@guard/testing';
import type { DataSource, EntityManager } from 'typeorm';
import { endChildren, startChild } from './support/child.js';
import { newPlace, type Place } from './support/place.js';
import { account, describeCompareAndSave, describeCreateRun } from './support/transaction-cases.js';

jest.setTimeout(120_000);

let place: Place;
let dataSource: DataSource;
let opened: (() => Promise<unknown>)[];
/** One guard for a whole case. */
let shared: Guard | undefined;

beforeEach(async () => {
  place = newPlace();
  opened = [];
  shared = undefined;
  dataSource = await application(place);
});

afterEach(async () => {
  for (const close of opened.reverse()) await close();
  await endChildren();
  place.remove();
});

async function application(where: Place): Promise<DataSource> {
  const made = await where
    .dataSource({ migrations: [...guardMigrations()], entities: [account] })
    .initialize();
  opened.push(() => made.destroy());
  await made.runMigrations();
  await made.synchronize();
  await made.query('CREATE TABLE ledger (id integer PRIMARY KEY, what text)');
  return made;
}

function guardOf(options: GuardOptions): Guard {
  const guard = createGuard(options);
  opened.push(() => guard.close());
  return guard;
}

function settle(manager: EntityManager, what = 'settled'): Promise<unknown> {
  return manager.query('INSERT INTO ledger (what) VALUES (?)', [what]);
}

async function ledger(of: DataSource = dataSource): Promise<string[]> {
  const rows: { what: string }[] = await of.query('SELECT what FROM ledger ORDER BY id');
  return rows.map(({ what }) => what);
}

/** Two locks on one key, the older of which its holder has not let go of but was lost to the newer. */
async function staleAndNewer(): Promise<[Lock, Lock]> {
  const clock = new VirtualClock();
  const locks = memoryLocks({ clock });
  const [one, other] = [guardOf({ locks, clock }), guardOf({ locks, clock })];
  const stale = await one.acquire('account:1', { ttl: '10s', renew: false });
  clock.block(11_000);
  return [stale, await other.acquire('account:1', { ttl: '1m' })];
}

describe('assertFence', () => {
  it('[B04] refuses a stale holder in the transaction, which leaves nothing of it', async () => {
    const [stale, newer] = await staleAndNewer();
    await dataSource.transaction(async (manager) => {
      await assertFence(manager, newer);
      await settle(manager, 'newer');
    });
    const late = dataSource.transaction(async (manager) => {
      await settle(manager, 'stale');
      await assertFence(manager, stale);
    });
    await expect(late).rejects.toMatchObject({ code: 'stale-token', key: 'account:1' });
    expect(await ledger()).toEqual(['newer']);
  });

  it('lets a holder through again and again, and remembers nothing of what was rolled back', async () => {
    const [stale, newer] = await staleAndNewer();
    const undone = dataSource.transaction(async (manager) => {
      await assertFence(manager, newer);
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    const lost = dataSource.transaction((manager) => assertFence(manager, stale));
    await expect(lost).rejects.toMatchObject({ code: 'lock-lost' });
    for (const what of ['a', 'b']) {
      await dataSource.transaction(async (manager) => {
        await assertFence(manager, newer);
        await settle(manager, what);
      });
    }
    expect(await ledger()).toEqual(['a', 'b']);
  });

  it('compares tokens of one lock of one backend only', async () => {
    const [, newer] = await staleAndNewer();
    await dataSource.transaction((manager) => assertFence(manager, newer));
    const guard = guardOf({ locks: typeormLocks(dataSource, { name: 'another' }) });
    await using same = await guard.acquire('account:1');
    await using other = await guard.acquire('account:2');
    expect(same.token).not.toBe(newer.token);
    for (const lock of [same, other]) await dataSource.transaction((manager) => assertFence(manager, lock));
  });

  it('wants an open transaction and a lock, and says which table is missing', async () => {
    const [, lock] = await staleAndNewer();
    const refused = { code: 'invalid-argument' };
    await expect(assertFence(dataSource.manager, lock)).rejects.toMatchObject(refused);
    await dataSource.transaction(async (manager) => {
      for (const none of [undefined, null, {}, { token: 1n, key: 'k' }]) {
        await expect(assertFence(manager, none as unknown as Lock)).rejects.toMatchObject(refused);
      }
      await expect(assertFence(manager, lock, { prefix: 'other_' })).rejects.toMatchObject({
        code: 'schema-missing',
        message: expect.stringContaining('ensureSchema'),
      });
    });
  });
});

describe('completeRun', () => {
  const locked = (): Guard =>
    guardOf({ locks: typeormLocks(dataSource), runs: typeormRuns(dataSource), namespace: 'billing' });

  it('[S7] completes the run with its effect: what was committed is never run again', async () => {
    const guard = locked();
    const call = () =>
      guard.run('settle', { key: 'k', onDuplicate: 'result' }, async () => {
        await dataSource.transaction(async (manager) => {
          await settle(manager);
          await completeRun(manager, { total: '12.30' });
        });
        return { total: '12.30' };
      });
    expect(await call()).toMatchObject({ status: 'completed', value: { total: '12.30' } });
    expect(await call()).toMatchObject({ status: 'completed', value: { total: '12.30' } });
    expect(await ledger()).toEqual(['settled']);
    const view = await guard.runs.get('settle', 'k');
    expect(view?.run).toMatchObject({ state: 'completed', value: '{"total":"12.30"}' });
    const history = await guard.runs.history('settle', 'k');
    expect(history.map(({ to }) => to)).toEqual(['running', 'completed']);
  });

  it('with a rollback leaves neither effect nor completion: the run can be run again', async () => {
    const guard = locked();
    let fails = true;
    const call = () =>
      guard.run('settle', { key: 'k' }, () =>
        dataSource.transaction(async (manager) => {
          await settle(manager);
          await completeRun(manager);
          if (fails) throw new Error('no');
        }),
      );
    await expect(call()).rejects.toThrow('no');
    expect(await ledger()).toEqual([]);
    expect((await guard.runs.get('settle', 'k'))?.run).toMatchObject({ state: 'failed' });
    fails = false;
    expect(await call()).toMatchObject({ status: 'completed' });
    expect(await ledger()).toEqual(['settled']);
  });

  it('waits for no progress that the open transaction itself is in the way of', async () => {
    const guard = locked();
    const startMs = performance.now();
    await guard.run('settle', { key: 'k' }, (run) =>
      dataSource.transaction(async (manager) => {
        await settle(manager);
        run.progress({ done: 1 });
        await new Promise((resolve) => setTimeout(resolve, 20));
        await completeRun(manager);
      }),
    );
    expect(performance.now() - startMs).toBeLessThan(2_000);
    expect((await guard.runs.get('settle', 'k'))?.run.state).toBe('completed');
  });

  it('[S7] is refused where somebody else moved the run on, and takes the effect along', async () => {
    const guard = locked();
    const call = guard.run('settle', { key: 'k' }, () =>
      dataSource.transaction(async (manager) => {
        await settle(manager);
        await manager.query("UPDATE guard_run SET version = version + 1 WHERE run_key = 'k'");
        await completeRun(manager);
      }),
    );
    await expect(call).rejects.toMatchObject({ code: 'stale-token' });
    expect(await ledger()).toEqual([]);
  });

  it('finds the tables of its run, whatever the store is named and prefixed', async () => {
    await ensureSchema(dataSource, { prefix: 'mine_' });
    const runs = typeormRuns(dataSource, { name: 'main', prefix: 'mine_' });
    const guard = guardOf({ locks: typeormLocks(dataSource), runs });
    await guard.run('settle', { key: 'k' }, () => dataSource.transaction((manager) => completeRun(manager)));
    expect(await dataSource.query('SELECT state FROM mine_run')).toEqual([{ state: 'completed' }]);
  });

  it('wants a run, an open transaction, and the database that the run is kept in', async () => {
    const refused = { code: 'invalid-argument' };
    await dataSource.transaction(async (manager) => {
      await expect(completeRun(manager)).rejects.toMatchObject(refused);
    });
    const elsewhere = guardOf({ locks: typeormLocks(dataSource), state: memoryState(), namespace: 'other' });
    await elsewhere.run('settle', { key: 'k' }, () =>
      dataSource.transaction(async (manager) => {
        await expect(completeRun(manager)).rejects.toMatchObject({
          ...refused,
          message: expect.stringMatching(/kept in memory/),
        });
      }),
    );
    await locked().run('settle', { key: 'k' }, async () => {
      await expect(completeRun(dataSource.manager)).rejects.toMatchObject(refused);
    });
  });
});

describeCreateRun('SQLite', {
  dataSource: () => dataSource,
  guard: () =>
    (shared ??= guardOf({
      ...{ locks: typeormLocks(dataSource), runs: typeormRuns(dataSource), namespace: 'billing' },
      sweepInterval: '1s',
    })),
  elsewhere: () => guardOf({ locks: typeormLocks(dataSource), state: memoryState(), namespace: 'billing' }),
});

describeCompareAndSave('SQLite', () => dataSource);

describe('a process that dies in the transaction', () => {
  const STATEMENTS = ['BEGIN TRANSACTION', 'INSERT', 'UPDATE', 'INSERT', 'COMMIT'];
  const deaths = STATEMENTS.flatMap((statement, index) =>
    (['before', 'after'] as const).map((when) => ({ when, statement, dieAt: index + 1 })),
  );

  it('has those statements in it', async () => {
    const child = startChild('settle.ts', { file: place.file });
    const { statements } = await child.next<{ statements: string[] }>();
    await child.finish();
    const verbs = statements.map((text) => (STATEMENTS.includes(text) ? text : /[A-Z]+/.exec(text)![0]));
    expect(verbs).toEqual(STATEMENTS);
    expect(await ledger()).toEqual(['settled']);
  });

  it.each(deaths)(
    '[S7] $when $statement ($dieAt) leaves effect and record in agreement, and the run happens once in the end',
    async ({ dieAt, when, statement }) => {
      const child = startChild('settle.ts', { file: place.file, dieAt, when });
      expect((await child.ended).signal).toBe('SIGKILL');
      const guard = guardOf({
        locks: typeormLocks(dataSource),
        runs: typeormRuns(dataSource),
        namespace: 'billing',
      });
      const before = (await guard.runs.get('settle', '2026-11-29'))!.run;
      expect(before.state).toBe(when === 'after' && statement === 'COMMIT' ? 'completed' : 'running');
      expect(await ledger()).toEqual(before.state === 'completed' ? ['settled'] : []);
      const join = { key: '2026-11-29', wait: '10s', ttl: '1s', onDuplicate: 'result' } as const;
      const again = await guard.run('settle', join, () =>
        dataSource.transaction(async (manager) => {
          await settle(manager);
          await completeRun(manager);
        }),
      );
      expect(again).toMatchObject({ status: 'completed' });
      expect(await ledger()).toEqual(['settled']);
      expect((await guard.runs.get('settle', '2026-11-29'))!.run.state).toBe('completed');
    },
  );
});
