/**
 * Whole programs on one SQLite file, as an application would write them: processes of their own, which wait, are told
 * to end, and meet a broken database.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { createGuard, currentRun, singleRun } from '@guard/core';
import { startWorker, type WorkerProcess } from '@guard/testing';
import { ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import { describePrograms } from '../../../test/support/programs/describe-programs.js';
import { shell } from './support/drivers.js';
import { newPlace, type Place } from './support/place.js';
import type { SqlitePlace } from './workers/open-sqlite.js';

jest.setTimeout(90_000);

let place: Place;
let cleanups: (() => Promise<unknown>)[];

beforeEach(() => {
  place = newPlace();
  cleanups = [];
});

afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  place.remove();
});

function program<O = unknown>(name: string, input: object): WorkerProcess<O> {
  const worker = startWorker<O>(join(__dirname, 'workers', `${name}.ts`), {
    input,
    execArgv: ['--conditions=@guard/source'],
  });
  cleanups.push(() => worker.close());
  return worker;
}

function guardHere() {
  const locks = typeormLocks(place.dataSource());
  const guard = createGuard({ locks });
  cleanups.push(() => guard.close().then(() => locks.close()));
  return guard;
}

/** The programs go on writing while something is broken: that waits for its turn. */
const BESIDE_OTHERS_MS = 10_000;

/** Takes the right to write first: a reader that wants it later is refused at once, however long it may wait. */
function rename(database: ReturnType<typeof shell>, from: string, to: string): void {
  database.exec(`BEGIN IMMEDIATE; ALTER TABLE ${from} RENAME TO ${to}; COMMIT`);
}

describePrograms('SQLite', {
  opener: join(__dirname, 'workers/open-sqlite.ts'),
  newPlace: async () => {
    const { file, folder, dataSource, remove } = newPlace();
    await ensureSchema(dataSource());
    return { place: { file, folder } satisfies SqlitePlace, remove: async () => remove() };
  },
  away: async (place) => {
    const { folder } = place as SqlitePlace;
    renameSync(folder, `${folder}-away`);
    return async () => renameSync(`${folder}-away`, folder);
  },
  breakages: [
    {
      what: 'their table is missing',
      code: 'schema-missing',
      begin: async (place) => {
        const database = shell((place as SqlitePlace).file, BESIDE_OTHERS_MS);
        rename(database, 'guard_run', 'away');
        return async () => {
          rename(database, 'away', 'guard_run');
          database.close();
        };
      },
    },
    {
      what: 'every lock is refused',
      code: 'unavailable',
      begin: async (place) => {
        const database = shell(`${(place as SqlitePlace).file}-guard`, BESIDE_OTHERS_MS);
        database.exec('BEGIN IMMEDIATE');
        return async () => {
          database.exec('ROLLBACK');
          database.close();
        };
      },
    },
  ],
});

it('[B101] fifty waits for one key cost less than a twentieth of a processor', async () => {
  await guardHere().acquire('busy');
  const share = await program<number>('many-waiters', {
    file: place.file,
    waits: 50,
    measureMs: 4_000,
  }).finish();
  expect(share).toBeLessThan(0.05);
});

it('[S1] [S2] [S6] on a full disk nothing is granted that is not written, and each call says so', async () => {
  const service = program('full-disk', { file: place.file });
  const refused = 'unavailable';
  expect(await service.next()).toEqual({ tried: refused, waited: refused, written: refused, run: refused });
  expect(await service.next()).toEqual({ tried: 'done', held: true, released: 'released' });
  await service.finish();
});

describe('[S9] [B65] a single run inside a transaction of the application', () => {
  it('fails closed where its record cannot be written, and is not undone where it can', async () => {
    await ensureSchema(place.dataSource());
    const dataSource = await place.dataSource().initialize();
    cleanups.push(() => dataSource.destroy());
    const locks = typeormLocks(dataSource);
    const guard = createGuard({ locks, runs: typeormRuns(dataSource) });
    cleanups.push(() => guard.close().then(() => locks.close()));
    await dataSource.query('CREATE TABLE business (id integer)');
    const seen: string[] = [];
    const work = singleRun({ name: 'charge', guard, key: () => 'order 1', ttl: '1s' }, async () => {
      seen.push(currentRun()!.key);
    });
    await dataSource
      .transaction(async (manager) => {
        await manager.query('INSERT INTO business VALUES (1)');
        await expect(work()).rejects.toMatchObject({ code: 'unavailable' });
        throw new Error('the application changes its mind');
      })
      .catch(() => undefined);
    expect(await dataSource.query('SELECT * FROM business')).toEqual([]);
    expect(seen).toEqual([]);
    await work();
    expect(seen).toEqual(['order 1']);
    expect(await guard.runs.get('charge', 'order 1')).toMatchObject({ run: { state: 'completed' } });
  });
});
