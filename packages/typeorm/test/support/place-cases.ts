/**
 * Stores of one database that differ in their tables, and guards on a pool with one connection: the same cases for every
 * database. A place is where the tables of a store are, and nothing of one place reaches another.
 */
import { createGuard, memoryLocks, systemClock, type Clock, type Guard, type LockBackend } from '@guard/core';
import {
  assertFence,
  completeRun,
  createRun,
  ensureSchema,
  guardMigrations,
  typeormLocks,
  typeormRuns,
} from '@guard/typeorm';
import type { DataSource, DataSourceOptions, EntityManager } from 'typeorm';
import type { TransactionPlace } from './transaction-stage.js';

/** What differs between databases. */
export interface PlaceParts {
  readonly newPlace: () => Promise<TransactionPlace>;
  /** Options of a data source whose pool has one connection. */
  readonly poolOfOne: Partial<DataSourceOptions>;
}

/** What the cases of one file have in their hands. */
export interface PlaceStage {
  readonly place: TransactionPlace;
  /** A guard with its locks and runs in these tables, closed after the case. */
  guardOn(
    dataSource: DataSource,
    options?: {
      readonly prefix?: string;
      readonly schema?: string;
      readonly clock?: Clock;
      readonly locks?: LockBackend;
    },
  ): Guard;
}

/** The records of a table, as `key state`. */
export async function recordsIn(dataSource: DataSource, table: string): Promise<string[]> {
  const rows: { run_key: string; state: string }[] = await dataSource.query(
    `SELECT run_key, state FROM ${table} ORDER BY seq`,
  );
  return rows.map(({ run_key, state }) => `${run_key} ${state}`);
}

/** Work that is completed in a transaction. */
export const completing =
  (dataSource: DataSource, effect: (manager: EntityManager) => unknown = () => undefined) =>
  (): Promise<void> =>
    dataSource.transaction(async (manager) => {
      await effect(manager);
      await completeRun(manager);
    });

/** Cases for one database. */
export function describePlaces(database: string, { newPlace, poolOfOne }: PlaceParts): PlaceStage {
  let place: TransactionPlace;
  const guards: Guard[] = [];

  beforeEach(async () => {
    place = await newPlace();
  });

  afterEach(async () => {
    for (const guard of guards.splice(0)) await guard.close();
    await place.close();
  });

  const guardOn: PlaceStage['guardOn'] = (dataSource, { clock, locks, ...options } = {}) => {
    const guard = createGuard({
      ...{ locks: locks ?? typeormLocks(dataSource, options), runs: typeormRuns(dataSource, options) },
      namespace: 'n',
      ...(clock === undefined ? {} : { clock }),
    });
    guards.push(guard);
    return guard;
  };

  describe(`two prefixes in one data source on ${database}`, () => {
    async function two(): Promise<{ dataSource: DataSource; first: Guard; second: Guard }> {
      const dataSource = await place.dataSource({});
      await ensureSchema(dataSource);
      await ensureSchema(dataSource, { prefix: 'x_' });
      // On SQLite all prefixes have their locks in one file, and a guard would wait for the other.
      const [first, second] = [
        guardOn(dataSource, { locks: memoryLocks() }),
        guardOn(dataSource, { locks: memoryLocks(), prefix: 'x_' }),
      ];
      return { dataSource, first, second };
    }

    it('[S7] have their own runs completed in a transaction, whichever store was made last', async () => {
      const { dataSource, first, second } = await two();
      for (const guard of [first, second, first]) await guard.run('t', { key: 'k' }, completing(dataSource));
      expect(await recordsIn(dataSource, 'guard_run')).toEqual(['k completed']);
      expect(await recordsIn(dataSource, 'x_run')).toEqual(['k completed']);
    });

    it('[S7] leave the run of the other alone, also where it has the same task, key and version', async () => {
      const { dataSource, first, second } = await two();
      let end!: () => void;
      const ended = new Promise<void>((resolve) => (end = resolve));
      let begin!: () => void;
      const begun = new Promise<void>((resolve) => (begin = resolve));
      const theirs = second.run('t', { key: 'k' }, async () => {
        begin();
        await ended;
        throw new Error('failed');
      });
      await begun;
      try {
        await first.run('t', { key: 'k' }, completing(dataSource));
        expect(await recordsIn(dataSource, 'x_run')).toEqual(['k running']);
      } finally {
        end();
      }
      await expect(theirs).rejects.toThrow('failed');
      expect(await recordsIn(dataSource, 'guard_run')).toEqual(['k completed']);
      expect(await recordsIn(dataSource, 'x_run')).toEqual(['k failed']);
    });

    it('are asked for runs in their own tables', async () => {
      const { dataSource, first, second } = await two();
      await dataSource.transaction((manager) => createRun(manager, first, 't', { key: 'mine' }));
      await dataSource.transaction((manager) => createRun(manager, second, 't', { key: 'theirs' }));
      expect(await recordsIn(dataSource, 'guard_run')).toEqual(['mine pending']);
      expect(await recordsIn(dataSource, 'x_run')).toEqual(['theirs pending']);
    });

    it('are told apart also where the application gave both one name, and after one was closed and made anew', async () => {
      const { dataSource } = await two();
      const one = typeormRuns(dataSource, { name: 'main' });
      const other = typeormRuns(dataSource, { name: 'main', prefix: 'x_' });
      expect(other.name).not.toBe(one.name);
      await one.close();
      const guard = createGuard({
        ...{ locks: typeormLocks(dataSource), runs: typeormRuns(dataSource, { name: 'main' }) },
      });
      guards.push(guard);
      await guard.run('t', { key: 'k' }, completing(dataSource));
      expect(await recordsIn(dataSource, 'guard_run')).toEqual(['k completed']);
      expect(await recordsIn(dataSource, 'x_run')).toEqual([]);
    });
  });

  describe(`tables that are missing on ${database}`, () => {
    it('are named by the options in use, with the migration and the call that make them', async () => {
      const dataSource = await place.dataSource({});
      for (const options of [{}, { prefix: 'x_' }]) {
        const written = 'prefix' in options ? '{ prefix: "x_" }' : '';
        const [Migration] = guardMigrations(options);
        const said = {
          code: 'schema-missing',
          message: expect.stringContaining(
            `add guardMigrations(${written}) to the migrations of the data source and run them ` +
              `(${new Migration!().name}), or call ensureSchema(dataSource${written && `, ${written}`})`,
          ),
        };
        const guard = guardOn(dataSource, { ...options, locks: memoryLocks() });
        await expect(
          typeormRuns(dataSource, options).get('n', { task: 't', key: 'k' }),
        ).rejects.toMatchObject(said);
        const asked = dataSource.transaction((manager) => createRun(manager, guard, 't', { key: 'k' }));
        await expect(asked).rejects.toMatchObject(said);
        await using lock = await guard.acquire('k');
        const passed = dataSource.transaction((manager) => assertFence(manager, lock, options));
        await expect(passed).rejects.toMatchObject(said);
      }
    });
  });

  describe(`two data sources of one database on ${database}`, () => {
    it('are one place: a run of a guard on one can be asked for, and completed, in a transaction of the other', async () => {
      const [one, other] = [await place.dataSource({}), await place.dataSource({})];
      await ensureSchema(one);
      expect(typeormRuns(other).name).toBe(typeormRuns(one).name);
      expect(typeormLocks(other).name).toBe(typeormLocks(one).name);
      const guard = guardOn(one);
      await guard.run('t', { key: 'k' }, completing(other));
      await other.transaction((manager) => createRun(manager, guard, 't', { key: 'l' }));
      expect(await recordsIn(one, 'guard_run')).toEqual(['k completed', 'l pending']);
    });
  });

  describe(`a pool with one connection on ${database}`, () => {
    it('is enough for createRun in a transaction, at first and after the guard was idle for long', async () => {
      const dataSource = await place.dataSource(poolOfOne);
      await ensureSchema(dataSource);
      let idleMs = 0;
      const clock: Clock = {
        ...systemClock,
        now: () => {
          const { monoMs, wallMs } = systemClock.now();
          return { monoMs: monoMs + idleMs, wallMs: wallMs + idleMs };
        },
      };
      const guard = guardOn(dataSource, { clock });
      const startMs = performance.now();
      for (const key of ['first', 'after a minute', 'after hours']) {
        const asked = dataSource.transaction((manager) => createRun(manager, guard, 't', { key }));
        expect((await asked).created).toBe(true);
        idleMs += idleMs === 0 ? 61_000 : 5 * 3_600_000;
      }
      expect(performance.now() - startMs).toBeLessThan(3_000);
      expect(await recordsIn(dataSource, 'guard_run')).toHaveLength(3);
    });

    it('is enough for completeRun behind a report of progress that waits for it', async () => {
      const dataSource = await place.dataSource(poolOfOne);
      await ensureSchema(dataSource);
      const startMs = performance.now();
      const outcome = await guardOn(dataSource).run('t', { key: 'k' }, (run) =>
        dataSource.transaction(async (manager) => {
          await manager.query('SELECT 1');
          run.progress({ done: 1 });
          await new Promise((resolve) => setTimeout(resolve, 20));
          await completeRun(manager);
        }),
      );
      expect(outcome.status).toBe('completed');
      expect(performance.now() - startMs).toBeLessThan(3_000);
    });
  });

  return {
    guardOn,
    get place() {
      return place;
    },
  };
}
