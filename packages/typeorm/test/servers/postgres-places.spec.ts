/** Stores of one Postgres database that differ in their tables or their schema, and pools with one connection. */
import { createGuard, type Guard } from '@guard/core';
import {
  completeRun,
  createRun,
  ensureSchema,
  typeormLocks,
  typeormRuns,
  type TypeormTableOptions,
} from '@guard/typeorm';
import { DataSource } from 'typeorm';
import { completing, recordsIn } from '../support/place-cases.js';
import { newSchema, onPostgres } from '../support/postgres.js';
import { describeServerPlaces } from '../support/server-place-cases.js';

jest.setTimeout(60_000);

const postgres = onPostgres();
describeServerPlaces('Postgres', {
  newPlace: async () => {
    // Statements of the cases name no schema.
    const place = await newSchema(postgres.server.url);
    const extra = { options: `-c search_path=${place.schema}` };
    return {
      ...place,
      dataSource: (options) =>
        place.dataSource({ ...options, extra: { ...extra, ...(options.extra as object) } }),
    };
  },
  poolOfOne: { extra: { max: 1 } },
});

describe('two schemas of one Postgres database', () => {
  const refused = { code: 'invalid-argument', message: expect.stringContaining('schema') };
  const opened: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  async function source(options: { readonly schema?: string; readonly path?: string } = {}) {
    const { path, ...schema } = options;
    const { url } = postgres.server;
    const extra = path === undefined ? {} : { extra: { options: `-c search_path=${path}` } };
    const made = await new DataSource({ type: 'postgres', url, ...schema, ...extra }).initialize();
    opened.push(() => made.destroy());
    return made;
  }

  async function newSchemas(): Promise<[string, string]> {
    const db = await source();
    const [one, other] = [1, 2].map((n) => `s${n}_${Math.trunc(performance.now() * 1000)}`) as [
      string,
      string,
    ];
    for (const schema of [one, other]) {
      await db.query(`CREATE SCHEMA ${schema}`);
      await ensureSchema(db, { schema });
    }
    return [one, other];
  }

  function guardIn(db: DataSource, schema?: string): Guard {
    const options = schema === undefined ? {} : { schema };
    const guard = createGuard({
      ...{ locks: typeormLocks(db, options), runs: typeormRuns(db, options), namespace: 'n' },
    });
    opened.push(() => guard.close());
    return guard;
  }

  it('[S7] have their own runs completed and asked for, where one data source serves both', async () => {
    const [one, other] = await newSchemas();
    const db = await source();
    const [first, second] = [guardIn(db, one), guardIn(db, other)];
    for (const guard of [first, second, first]) await guard.run('t', { key: 'k' }, completing(db));
    await db.transaction((manager) => createRun(manager, first, 't', { key: 'l' }));
    expect(await recordsIn(db, `${one}.guard_run`)).toEqual(['k completed', 'l pending']);
    expect(await recordsIn(db, `${other}.guard_run`)).toEqual(['k completed']);
  });

  it('[S7] are not reached by a manager of the other, whose run of the same key goes on', async () => {
    const [one, other] = await newSchemas();
    const [a, b] = [await source({ schema: one }), await source({ schema: other })];
    const [first, second] = [guardIn(a), guardIn(b)];
    const theirs = second.run('t', { key: 'k' }, async () => {
      await first.run('t', { key: 'k' }, () =>
        b.transaction(async (manager) => {
          await expect(completeRun(manager)).rejects.toMatchObject(refused);
          await expect(createRun(manager, first, 't', { key: 'l' })).rejects.toMatchObject(refused);
        }),
      );
      return 'mine';
    });
    expect(await theirs).toMatchObject({ status: 'completed', value: 'mine' });
    for (const schema of [one, other])
      expect(await recordsIn(a, `${schema}.guard_run`)).toEqual(['k completed']);
  });

  it('[S7] are told apart by the search path, where nothing else names them', async () => {
    const [one, other] = await newSchemas();
    const [a, b] = [await source({ path: one }), await source({ path: other })];
    const first = guardIn(a);
    guardIn(b);
    await first.run('t', { key: 'k' }, () =>
      b.transaction((manager) => expect(completeRun(manager)).rejects.toMatchObject(refused)),
    );
    const again = await source({ path: one });
    await first.run('t', { key: 'l' }, completing(again));
    await first.run('t', { key: 'm' }, completing(await source({ schema: one })));
    expect(await recordsIn(a, 'guard_run')).toEqual(['k completed', 'l completed', 'm completed']);
    expect(await recordsIn(b, 'guard_run')).toEqual([]);
  });

  it('[S7] keep their runs where a transaction leads its search path to a run of the same numbers', async () => {
    const [one, other] = await newSchemas();
    const db = await source({ path: one });
    const [first, second] = [guardIn(db), guardIn(await source({ path: other }))];
    const theirs = second.run('t', { key: 'k' }, async () => {
      const led = (manager: { query(text: string): Promise<unknown> }) =>
        manager.query(`SET LOCAL search_path = ${other}`);
      const work = first.run('t', { key: 'k' }, completing(db, led));
      await expect(work).rejects.toMatchObject({ code: 'stale-token' });
      return 'mine';
    });
    expect(await theirs).toMatchObject({ status: 'completed', value: 'mine' });
  });

  it('are one place where one store is told the schema that the data source of another names', async () => {
    const [one] = await newSchemas();
    const [plain, named] = [await source(), await source({ schema: one })];
    expect(typeormLocks(plain, { schema: one }).name).toBe(typeormLocks(named).name);
    for (const [key, guard, db] of [
      ['k', guardIn(named), plain],
      ['l', guardIn(plain, one), named],
    ] as const) {
      await guard.run('t', { key }, completing(db));
    }
    expect(await recordsIn(plain, `${one}.guard_run`)).toEqual(['k completed', 'l completed']);
  });

  it('are reached by another address where the application gave both one name', async () => {
    const [one] = await newSchemas();
    const direct = await source({ schema: one });
    const url = new URL(postgres.server.url);
    url.hostname = url.hostname === 'localhost' ? '127.0.0.1' : 'localhost';
    const around = await new DataSource({ type: 'postgres', url: url.href, schema: one }).initialize();
    opened.push(() => around.destroy());
    const named = (db: DataSource) => typeormRuns(db, { name: 'main' });
    const guard = createGuard({ locks: typeormLocks(direct), runs: named(direct) });
    opened.push(() => guard.close());
    await guard.run('t', { key: 'k' }, () =>
      around.transaction((manager) => expect(completeRun(manager)).rejects.toMatchObject(refused)),
    );
    named(around);
    await guard.run('t', { key: 'l' }, completing(around));
    expect(await recordsIn(direct, `${one}.guard_run`)).toEqual(['k completed', 'l completed']);
  });

  it('are named where they are missing: the schema that a store was told, and not that of its data source', async () => {
    const [one] = await newSchemas();
    const [plain, named] = [await source(), await source({ schema: one })];
    const missing = async (db: DataSource, options: TypeormTableOptions, call: string): Promise<void> => {
      const asked = typeormRuns(db, { ...options, prefix: 'none_' }).get('n', { task: 't', key: 'k' });
      await expect(asked).rejects.toMatchObject({
        code: 'schema-missing',
        message: expect.stringContaining(`call ensureSchema(dataSource, ${call})`),
      });
    };
    await missing(plain, { schema: one }, `{ prefix: "none_", schema: "${one}" }`);
    await missing(named, {}, '{ prefix: "none_" }');
    await missing(named, { schema: one }, '{ prefix: "none_" }');
  });
});
