/** State and runs beyond the contract, as far as it is the same on every database server. */
import type { StateWrite } from '@guard/core';
import { ensureSchema, guardEntities, typeormRuns, typeormState } from '@guard/typeorm';
import type { DataSource } from 'typeorm';
import { describeLostAnswers } from './lost-answer-cases.js';
import type { Place } from './place-on-server.js';
import { expectNamed, created, line, moved, NAMESPACE, record } from './running.js';

/** What differs between servers. */
export interface StoreParts {
  readonly type: 'postgres' | 'mariadb';
  readonly newPlace: () => Promise<Place>;
  /** The table of entries, as a statement names it. */
  readonly entries: (place: Place) => string;
}

/** What the cases of one file have in their hands. */
export interface StoreStage {
  readonly place: Place;
  /** One in which the tables are. */
  readonly dataSource: DataSource;
  /** Closed after the case, the last one first. */
  readonly opened: (() => Promise<unknown>)[];
}

let writes = 0;

/** A write of state with a write id of its own. */
export function wish(key: string, value: string | null, over: Partial<StateWrite> = {}): StateWrite {
  writes += 1;
  return { key, value, expect: 'any', writeId: `write ${writes}`, ttl: 'none', ...over };
}

/** The version of an answer that must have one. */
export function versionOf(answer: unknown): bigint {
  return BigInt((answer as { version: string }).version);
}

/** Makes a place with tables for each case, and describes the common ones; answers what the file's own ones need. */
export function describeStores(database: string, { type, newPlace, entries }: StoreParts): StoreStage {
  const opened: (() => Promise<unknown>)[] = [];
  let place: Place;
  let dataSource: DataSource;

  beforeEach(async () => {
    place = await newPlace();
    dataSource = await place.dataSource();
    await ensureSchema(dataSource);
  });

  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
    await place.close();
  });

  describe(`versions on ${database}`, () => {
    it('[S2] [B180] keep growing over a delete that was forgotten', async () => {
      const state = typeormState(dataSource);
      const [first] = await state.write([wish('s/k', '1')]);
      const [gone] = await state.write([wish('s/k', null)]);
      expect(gone).toMatchObject({ status: 'written' });
      await dataSource.query(`DELETE FROM ${entries(place)}`);
      const [again] = await state.write([wish('s/k', '2')]);
      expect(versionOf(again)).toBeGreaterThan(versionOf(first) + 1n);
    });
  });

  describeLostAnswers(database, () => place);

  describe(`the tables of runs on ${database}`, () => {
    const lock = { backend: 'b', key: 'ns/task/settlement', token: '9223372036854775807' };
    const status = { state: 'running', lock, node: { id: 'n', label: 'pod-7' }, startedAtMs: 5 } as const;

    it('are what TypeORM would make of the entities: nothing to synchronise, and they can be queried', async () => {
      const guard = guardEntities({ type });
      const application = await place.dataSource({ entities: Object.values(guard) });
      const changes = await application.driver.createSchemaBuilder().log();
      expect(changes.upQueries.map(({ query }) => query)).toEqual([]);
      const runs = typeormRuns(application);
      await moved(runs, await created(runs, record('k')), status);
      const running = { task: 'settlement', state: 'running' };
      const found = await application.getRepository(guard.run).findBy(running);
      expect(found).toMatchObject([
        { runKey: 'k', lockToken: lock.token, nodeLabel: 'pod-7', startedAtMs: '5' },
      ]);
      expect(await application.getRepository(guard.runEvent).countBy({ runSeq: found[0]!.seq })).toBe(2);
    });

    it('[S6] are missed by name, with what to do about it', async () => {
      const runs = typeormRuns(dataSource, { prefix: 'none_' });
      expect(await runs.create(NAMESPACE, record('k'), line())).toMatchObject({
        status: 'failed',
        cause: { code: 'schema-missing', message: expect.stringContaining('ensureSchema') },
      });
    });

    it('[S6] [L4] with one that cannot be read are due without it, which is named', async () => {
      const runs = typeormRuns(dataSource);
      for (const key of ['a', 'bad', 'c']) await created(runs, record(key));
      const table = entries(place).replace('guard_entry', 'guard_run');
      for (const spoiled of ['not json', '{}']) {
        await dataSource.query(`UPDATE ${table} SET record = '${spoiled}' WHERE run_key = 'bad'`);
        const query = { tasks: ['settlement'], overdueMs: 0, limit: 10 };
        const { runs: due, unreadable } = await runs.due(NAMESPACE, query);
        expect(due.map(({ run }) => run.key)).toEqual(['a', 'c']);
        expect(unreadable).toMatchObject([
          { code: 'unavailable', message: expect.stringContaining('run bad of settlement') },
        ]);
      }
    });

    it('[S6] name what else cannot be read: a line of a history, a task, a node', async () => {
      const run = entries(place).replace('guard_entry', 'guard_run');
      await expectNamed(typeormRuns(dataSource), (set, spoiled) =>
        dataSource.query(`UPDATE ${run.replace(/run$/, set)} = '${spoiled}'`),
      );
    });

    it('keep no more progress than anybody reads, and every other line', async () => {
      const runs = typeormRuns(dataSource);
      let stored = await created(runs, record('k'));
      for (let n = 0; n < 530; n += 1) stored = await moved(runs, stored, status, line('progress'));
      const events = await runs.events(NAMESPACE, stored.run);
      expect(events.length).toBeGreaterThanOrEqual(512);
      expect(events.length).toBeLessThanOrEqual(514);
      expect(events[0]!.what).not.toBe('progress');
    });
  });

  return {
    opened,
    get place() {
      return place;
    },
    get dataSource() {
      return dataSource;
    },
  };
}
