/**
 * Cases of what Guard writes inside the application's transactions on a database server: the fence of a stale holder,
 * and the completion of a run together with its effect. The last part kills the process at every statement.
 */
import { createGuard, memoryLocks, memoryState, type Guard, type GuardOptions, type Lock } from '@guard/core';
import { VirtualClock, type WorkerProcess } from '@guard/testing';
import {
  assertFence,
  completeRun,
  ensureSchema,
  guardMigrations,
  typeormLocks,
  typeormRuns,
} from '@guard/typeorm';
import type { DataSource, DataSourceOptions, EntityManager } from 'typeorm';
import { endChildren, startChild } from './child.js';
import type { Place } from './place-on-server.js';
import { account, describeCompareAndSave, describeCreateRun } from './transaction-cases.js';

/** What differs between databases. */
export interface TransactionParts {
  readonly newPlace: () => Promise<Place>;
  /** More options of its data sources. */
  readonly options: (place: Place) => Partial<DataSourceOptions>;
  /** Makes the table `ledger` with a number of its own and a text. */
  readonly createLedger: string;
  /** Writes a line: one parameter. */
  readonly insert: string;
  /** How the statements of a settlement begin, from the first of its transaction to the last. */
  readonly statements: readonly string[];
  /** Counts open transactions of other sessions: `open`. */
  readonly openTransactions: string;
}

/** Cases for a database server. */
export function describeTransactions(database: string, parts: TransactionParts): void {
  let place: Place;
  let dataSource: DataSource;
  let opened: (() => Promise<unknown>)[];
  /** One guard for a whole case. */
  let shared: Guard | undefined;

  beforeEach(async () => {
    opened = [];
    shared = undefined;
    place = await parts.newPlace();
    dataSource = await place.dataSource({
      migrations: [...guardMigrations()],
      entities: [account],
      ...parts.options(place),
    });
    await dataSource.runMigrations();
    await dataSource.synchronize();
    await dataSource.query(parts.createLedger);
  });

  afterEach(async () => {
    for (const close of opened.reverse()) await close();
    await endChildren();
    await place.close();
  });

  function guardOf(options: GuardOptions): Guard {
    const guard = createGuard(options);
    opened.push(() => guard.close());
    return guard;
  }

  const locked = (): Guard =>
    guardOf({
      ...{ locks: typeormLocks(dataSource), runs: typeormRuns(dataSource), namespace: 'billing' },
      sweepInterval: '1s',
    });

  function settle(manager: EntityManager, what = 'settled'): Promise<unknown> {
    return manager.query(parts.insert, [what]);
  }

  async function ledger(): Promise<string[]> {
    const rows: { what: string }[] = await dataSource.query('SELECT what FROM ledger ORDER BY id');
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

  describe(`assertFence on ${database}`, () => {
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

    it('says which table is missing', async () => {
      const [, lock] = await staleAndNewer();
      const elsewhere = dataSource.transaction((manager) => assertFence(manager, lock, { prefix: 'other_' }));
      await expect(elsewhere).rejects.toMatchObject({
        code: 'schema-missing',
        message: expect.stringContaining('ensureSchema'),
      });
    });
  });

  describe(`completeRun on ${database}`, () => {
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
      const history = await guard.runs.history('settle', 'k');
      expect(history.map(({ to }) => to)).toEqual(['running', 'completed']);
    });

    it('[V23] with a rollback leaves neither effect nor completion: the run can be run again', async () => {
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

    it('leaves a run completed whose work throws after the commit', async () => {
      const guard = locked();
      const call = guard.run('settle', { key: 'k' }, async () => {
        await dataSource.transaction(async (manager) => {
          await settle(manager);
          await completeRun(manager);
        });
        throw new Error('too late');
      });
      await call.catch(() => undefined);
      expect((await guard.runs.get('settle', 'k'))?.run.state).toBe('completed');
      expect(await ledger()).toEqual(['settled']);
    });

    it('leaves a run failed whose work swallows the rollback and returns', async () => {
      const guard = locked();
      const call = guard.run('settle', { key: 'k' }, async () => {
        await dataSource
          .transaction(async (manager) => {
            await settle(manager);
            await completeRun(manager);
            throw new Error('rolled back');
          })
          .catch(() => undefined);
      });
      await call.catch(() => undefined);
      expect((await guard.runs.get('settle', 'k'))?.run.state).toBe('failed');
      expect(await ledger()).toEqual([]);
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
      await guard.run('settle', { key: 'k' }, () =>
        dataSource.transaction((manager) => completeRun(manager)),
      );
      expect(await dataSource.query('SELECT state FROM mine_run')).toEqual([{ state: 'completed' }]);
    });

    it('wants the database that the run is kept in', async () => {
      const elsewhere = guardOf({
        locks: typeormLocks(dataSource),
        state: memoryState(),
        namespace: 'other',
      });
      await elsewhere.run('settle', { key: 'k' }, () =>
        dataSource.transaction(async (manager) => {
          await expect(completeRun(manager)).rejects.toMatchObject({
            code: 'invalid-argument',
            message: expect.stringMatching(/kept in memory/),
          });
        }),
      );
    });
  });

  describeCreateRun(database, {
    dataSource: () => dataSource,
    guard: () => (shared ??= locked()),
    elsewhere: () => guardOf({ locks: typeormLocks(dataSource), state: memoryState(), namespace: 'billing' }),
  });

  describeCompareAndSave(database, () => dataSource);

  describe(`a process that dies in a transaction on ${database}`, () => {
    const deaths = [
      ...parts.statements.flatMap((statement, index) =>
        (['before', 'after'] as const).map((when) => ({ when, statement, dieAt: index + 1 })),
      ),
      { when: 'under way', statement: 'COMMIT', dieAt: parts.statements.length },
    ];
    const options = () => dataSource.options as unknown as Record<string, unknown>;
    const settling = (more: object): WorkerProcess => {
      const { type, url, schema, extra } = options();
      return startChild('settle-on-server.ts', { options: { type, url, schema, extra }, ...more });
    };

    it('has those statements in it', async () => {
      const child = settling({});
      const { statements } = await child.next<{ statements: string[] }>();
      await child.finish();
      expect(
        statements.map((text) => (text === parts.statements[0] ? text : /[A-Z]+/.exec(text)![0])),
      ).toEqual(parts.statements);
      expect(await ledger()).toEqual(['settled']);
    });

    it.each(deaths)(
      '[S7] [V29] $when $statement ($dieAt) leaves effect and record in agreement, and the run happens once in the end',
      async ({ dieAt, when, statement }) => {
        const child = settling({ dieAt, when });
        expect((await child.ended).signal).toBe('SIGKILL');
        const guard = locked();
        await endedSessions();
        const before = (await guard.runs.get('settle', '2026-11-29'))!.run;
        // A commit that was on its way may or may not have arrived.
        const states = statement !== 'COMMIT' || when === 'before' ? ['running'] : ['completed'];
        if (when === 'under way' && statement === 'COMMIT') states.push('running');
        expect(states).toContain(before.state);
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

    /** Waits until the server has done with the sessions of the dead process. */
    async function endedSessions(): Promise<void> {
      for (let tries = 0; tries < 100; tries += 1) {
        const [found]: { open: string }[] = await dataSource.query(parts.openTransactions);
        if (found?.open === '0') return;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error('sessions of the dead process are still open');
    }
  });
}
