/**
 * TypeORM 0.3, which the peer range admits beside 1.x: everything of the adapter that touches the library's own code,
 * once. What Guard does on connections of its own is the same under every version.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createGuard, GuardError, memoryLocks, type Guard } from '@guard/core';
import { VirtualClock } from '@guard/testing';
import {
  assertFence,
  completeRun,
  ensureSchema,
  guardEntities,
  guardMigrations,
  typeormLocks,
  typeormRuns,
  typeormState,
} from '@guard/typeorm';
import { EntitySchema, type DataSource, type DataSourceOptions } from 'typeorm';
import { describeRelations, relationEntities } from './support/relation-cases.js';
import { newPlace, type Place } from './support/place.js';

// For this file, and for the sources of the adapter that it loads.
jest.mock('typeorm', () => jest.requireActual<object>('typeorm03'));

let place: Place;
const opened: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  place = newPlace();
});

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
  place.remove();
});

async function application(options: Partial<DataSourceOptions> = {}): Promise<DataSource> {
  const made = await place.dataSource(options).initialize();
  opened.push(() => made.destroy());
  await made.query('CREATE TABLE IF NOT EXISTS ledger (what text)');
  return made;
}

function guardOn(db: DataSource): Guard {
  const guard = createGuard({ locks: typeormLocks(db), state: typeormState(db), runs: typeormRuns(db) });
  opened.push(() => guard.close());
  return guard;
}

function ledger(db: DataSource): Promise<{ what: string }[]> {
  return db.query<{ what: string }[]>('SELECT what FROM ledger');
}

describe('on TypeORM 0.3', () => {
  it('is the version that is tested here', () => {
    const manifest = readFileSync(join(dirname(require.resolve('typeorm03')), 'package.json'), 'utf8');
    expect(JSON.parse(manifest)).toMatchObject({
      name: 'typeorm',
      version: expect.stringMatching(/^0\.3\./),
    });
    expect(EntitySchema).toBe(jest.requireActual<{ EntitySchema: unknown }>('typeorm03').EntitySchema);
  });

  it('[S1] a lock excludes, and the next holder has a larger token', async () => {
    const guard = guardOn(await application());
    const first = await guard.acquire('k');
    expect(await guard.tryAcquire('k')).toBeNull();
    await first.release();
    const second = await guard.acquire('k');
    expect(second.token).toBeGreaterThan(first.token);
    await second.release();
  });

  it('state is written by compare-and-set', async () => {
    const { state } = guardOn(await application());
    const version = await state.create('rate', 1);
    expect(await state.update('rate', version!, 2)).not.toBeNull();
    expect(await state.update('rate', version!, 3)).toBeNull();
    expect((await state.get('rate'))?.value).toBe(2);
  });

  it('[S7] migrations make the tables, and a run completes in the transaction of its effect', async () => {
    const db = await application({ migrations: [...guardMigrations()], migrationsRun: true });
    const guard = guardOn(db);
    const settle = () =>
      guard.run('settle', { key: '2026-11-29' }, () =>
        db.transaction(async (manager) => {
          await manager.query('INSERT INTO ledger VALUES (?)', ['settled']);
          await completeRun(manager);
        }),
      );
    await expect(settle()).resolves.toMatchObject({ status: 'completed' });
    await expect(settle()).resolves.toMatchObject({ status: 'skipped' });
    expect(await ledger(db)).toEqual([{ what: 'settled' }]);
  });

  it('entities read the records', async () => {
    const entities = guardEntities();
    const db = await application({ entities: Object.values(entities) as EntitySchema[] });
    await ensureSchema(db);
    await guardOn(db).run('settle', { key: 'k' }, async () => undefined);
    const rows = await db.getRepository(entities.run).find();
    expect(rows.map(({ task, state }) => ({ task, state }))).toEqual([
      { task: 'settle', state: 'completed' },
    ]);
  });

  it('[B04] a fence in the transaction refuses a stale holder', async () => {
    const db = await application();
    await ensureSchema(db);
    const clock = new VirtualClock();
    const locks = memoryLocks({ clock });
    const [one, other] = [createGuard({ locks, clock }), createGuard({ locks, clock })];
    opened.push(
      () => one.close(),
      () => other.close(),
    );
    const stale = await one.acquire('account:1', { ttl: '10s', renew: false });
    clock.block(11_000);
    const newer = await other.acquire('account:1', { ttl: '1m' });
    await db.transaction((manager) => assertFence(manager, newer));
    const late: unknown = await db
      .transaction((manager) => assertFence(manager, stale))
      .catch((error: unknown) => error);
    expect(GuardError.is(late, 'stale-token')).toBe(true);
  });
});

describe('on TypeORM 0.3', () => {
  let db: DataSource;
  beforeEach(async () => {
    db = await application({ entities: relationEntities, synchronize: true });
  });
  describeRelations('SQLite', () => db);
});
