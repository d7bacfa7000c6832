/** Cases of `completeRun` that are the same on every database. */
import { memoryState } from '@guard/core';
import { completeRun, ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import type { TransactionStage } from './transaction-stage.js';

/** Describes them. */
export function describeCompleteRun(database: string, stage: TransactionStage): void {
  const { dataSource, guardOf, locked, settle, ledger } = stage;

  describe(`completeRun on ${database}`, () => {
    it('[S7] completes the run with its effect: what was committed is never run again', async () => {
      const guard = locked();
      const call = () =>
        guard.run('settle', { key: 'k', onDuplicate: 'result' }, async () => {
          await dataSource().transaction(async (manager) => {
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

    it('[V23] with a rollback leaves neither effect nor completion: the run can be run again', async () => {
      const guard = locked();
      let fails = true;
      const call = () =>
        guard.run('settle', { key: 'k' }, () =>
          dataSource().transaction(async (manager) => {
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
        dataSource().transaction(async (manager) => {
          await settle(manager);
          run.progress({ done: 1 });
          await new Promise((resolve) => setTimeout(resolve, 20));
          await completeRun(manager);
        }),
      );
      expect(performance.now() - startMs).toBeLessThan(2_000);
      expect((await guard.runs.get('settle', 'k'))?.run.state).toBe('completed');
    });

    it('leaves a run completed whose work throws after the commit', async () => {
      const guard = locked();
      const call = guard.run('settle', { key: 'k' }, async () => {
        await dataSource().transaction(async (manager) => {
          await settle(manager);
          await completeRun(manager);
        });
        throw new Error('too late');
      });
      await call.catch(() => undefined);
      expect((await guard.runs.get('settle', 'k'))?.run.state).toBe('completed');
      expect(await ledger()).toEqual(['settled']);
    });

    it.each(['throws', 'returns'])(
      '[S7] leaves a run completed whose work %s while its transaction is still to commit',
      async (how) => {
        const guard = locked();
        let ended: Promise<unknown> | undefined;
        const call = guard.run('settle', { key: 'k' }, async () => {
          await new Promise<void>((staged, failed) => {
            ended = dataSource().transaction(async (manager) => {
              await settle(manager);
              await completeRun(manager, 7);
              staged();
              await new Promise((resolve) => setTimeout(resolve, 400));
            });
            ended.catch(failed);
          });
          if (how === 'throws') throw new Error('the connection broke');
          return 7;
        });
        expect(await call).toMatchObject({ status: 'completed', value: 7 });
        await ended;
        expect((await guard.runs.get('settle', 'k'))?.run.state).toBe('completed');
        expect(await ledger()).toEqual(['settled']);
      },
    );

    it('leaves a run failed whose work swallows the rollback and returns', async () => {
      const guard = locked();
      const call = guard.run('settle', { key: 'k' }, async () => {
        await dataSource()
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
      const call = locked().run('settle', { key: 'k' }, () =>
        dataSource().transaction(async (manager) => {
          await settle(manager);
          await manager.query("UPDATE guard_run SET version = version + 1 WHERE run_key = 'k'");
          await completeRun(manager);
        }),
      );
      await expect(call).rejects.toMatchObject({ code: 'stale-token' });
      expect(await ledger()).toEqual([]);
    });

    it('[S7] is refused a second time, and says who came before: in the same transaction, and in a later one', async () => {
      const again = {
        code: 'invalid-argument',
        message: expect.stringContaining('run k of settle has been completed by its own work before'),
      };
      const twice = locked().run('settle', { key: 'k' }, () =>
        dataSource().transaction(async (manager) => {
          await settle(manager);
          await completeRun(manager, 1);
          await completeRun(manager, 2);
        }),
      );
      await expect(twice).rejects.toMatchObject(again);
      expect(await ledger()).toEqual([]);
      const guard = locked();
      await guard.run('settle', { key: 'k' }, async () => {
        await dataSource().transaction(async (manager) => {
          await settle(manager, 'first');
          await completeRun(manager, 1);
        });
        const later = dataSource().transaction(async (manager) => {
          await settle(manager, 'second');
          await completeRun(manager, 2);
        });
        await expect(later).rejects.toMatchObject(again);
      });
      expect((await guard.runs.get('settle', 'k'))?.run).toMatchObject({ state: 'completed', value: '1' });
      expect(await ledger()).toEqual(['first']);
    });

    it('[S7] is granted again after its first transaction was rolled back', async () => {
      const guard = locked();
      await guard.run('settle', { key: 'k' }, async () => {
        const complete = (value: number): Promise<void> =>
          dataSource().transaction(async (manager) => {
            await settle(manager, String(value));
            await completeRun(manager, value);
            if (value === 1) throw new Error('undone');
          });
        await complete(1).catch(() => undefined);
        await complete(2);
      });
      expect((await guard.runs.get('settle', 'k'))?.run).toMatchObject({ state: 'completed', value: '2' });
      expect(await ledger()).toEqual(['2']);
    });

    it('finds the tables of its run, whatever the store is named and prefixed', async () => {
      await ensureSchema(dataSource(), { prefix: 'mine_' });
      const runs = typeormRuns(dataSource(), { name: 'main', prefix: 'mine_' });
      const guard = guardOf({ locks: typeormLocks(dataSource()), runs });
      await guard.run('settle', { key: 'k' }, () =>
        dataSource().transaction((manager) => completeRun(manager)),
      );
      expect(await dataSource().query('SELECT state FROM mine_run')).toEqual([{ state: 'completed' }]);
    });

    it('wants a run, an open transaction, and the database that the run is kept in', async () => {
      const refused = { code: 'invalid-argument' };
      await dataSource().transaction(async (manager) => {
        await expect(completeRun(manager)).rejects.toMatchObject(refused);
      });
      const locks = typeormLocks(dataSource());
      const elsewhere = guardOf({ locks, state: memoryState(), namespace: 'other' });
      await elsewhere.run('settle', { key: 'k' }, () =>
        dataSource().transaction(async (manager) => {
          await expect(completeRun(manager)).rejects.toMatchObject({
            ...refused,
            message: expect.stringMatching(/kept in memory/),
          });
        }),
      );
      await locked().run('settle', { key: 'k' }, async () => {
        await expect(completeRun(dataSource().manager)).rejects.toMatchObject(refused);
      });
    });
  });
}
