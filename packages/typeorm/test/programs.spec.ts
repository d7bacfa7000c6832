/**
 * Whole programs on one SQLite file, as an application would write them: processes of their own, which wait, are told
 * to end, and meet a broken database.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { createGuard, currentRun, singleRun } from '@guard/core';
import { startWorker, type WorkerProcess } from '@guard/testing';
import { ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import { shell } from './support/drivers.js';
import { newPlace, type Place } from './support/place.js';
import type { Tick, TickInput } from './workers/tick.js';

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

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('[B106] [L5] a program that waits', () => {
  it('lives until it has the lock, and ends once it gave it back', async () => {
    const held = await guardHere().acquire('ex');
    const waiter = program('wait-and-go', { file: place.file });
    await pause(2_000);
    await held.release();
    expect(await waiter.next()).toBe('got');
    await waiter.finish();
  });

  it('lives while the database is not there', async () => {
    const away = `${place.folder}-away`;
    renameSync(place.folder, away);
    const waiter = program('wait-and-go', { file: place.file });
    await pause(2_000);
    renameSync(away, place.folder);
    expect(await waiter.next()).toBe('got');
    await waiter.finish();
  });

  it('lives until a late answer to its release has come', async () => {
    const waiter = program('wait-and-go', { file: place.file, releaseLateMs: 1_500 });
    expect(await waiter.next()).toBe('got');
    await waiter.finish();
  });
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

/** A service, and all that it told. */
function service(options: Partial<TickInput> = {}) {
  const input: TickInput = {
    file: place.file,
    everyMs: 250,
    bodyMs: 1_500,
    grace: '10s',
    ttl: '6s',
    ...options,
  };
  const worker = program('tick', input);
  const told: Tick[] = [];
  const next = async (...whats: Tick['what'][]): Promise<Tick> => {
    for (;;) {
      const tick = await worker.next<Tick>();
      told.push(tick);
      if (whats.includes(tick.what)) return tick;
    }
  };
  return { worker, told, next };
}

describe('[B110] a service that is told to end while its run works', () => {
  beforeEach(() => ensureSchema(place.dataSource()));

  it('lets it finish, begins nothing new, and leaves the next one to another node at once', async () => {
    const [first, second] = [service(), service()];
    const { mine, other } = await Promise.race([
      first.next('begin').then(() => ({ mine: first, other: second })),
      second.next('begin').then(() => ({ mine: second, other: first })),
    ]);
    mine.worker.signal('SIGTERM');
    const end = await mine.next('end', 'cut');
    expect(end.what).toBe('end');
    await mine.worker.finish();
    const begin = await other.next('begin');
    expect(begin.atMs).toBeGreaterThan(end.atMs);
    // The lease would have lasted six seconds.
    expect(begin.atMs - end.atMs).toBeLessThan(4_000);
    expect(mine.told.map(({ what }) => what)).toEqual(['begin', 'end']);
    other.worker.signal('SIGTERM');
    await other.worker.finish();
  });

  it('stops it at the end of the grace, gives the lock back, and ends', async () => {
    const first = service({ bodyMs: 60_000, grace: '1s' });
    const begin = await first.next('begin');
    first.worker.signal('SIGTERM');
    const cut = await first.next('end', 'cut');
    expect(cut.what).toBe('cut');
    expect(cut.atMs - begin.atMs).toBeGreaterThan(900);
    await first.worker.finish();
    const second = service({ bodyMs: 10 });
    const next = await second.next('begin');
    expect(next.atMs).toBeGreaterThan(cut.atMs);
    second.worker.signal('SIGTERM');
    await second.worker.finish();
  });
});

describe('[B125] services whose database breaks', () => {
  beforeEach(() => ensureSchema(place.dataSource()));

  /** Breaks something once all services are at work; answers what each said meanwhile. */
  async function whileBroken(breakIt: () => () => Promise<unknown>): Promise<string[]> {
    const services = Array.from({ length: 3 }, () => service({ everyMs: 300, bodyMs: 10, ttl: '1s' }));
    await Promise.all(services.map(({ next }) => next('begin')));
    const repair = breakIt();
    const codes: string[] = [];
    for (const { next } of services) codes.push((await next('error')).code!);
    const brokenAtMs = Number(process.hrtime.bigint()) / 1e6;
    await pause(1_000);
    const repairedAtMs = Number(process.hrtime.bigint()) / 1e6;
    await repair();
    for (const { next } of services) {
      let begin: Tick;
      do begin = await next('begin');
      while (begin.atMs < brokenAtMs);
      // Nothing began until the repair, and then it went on.
      expect(begin.atMs).toBeGreaterThan(repairedAtMs);
    }
    for (const { worker } of services) worker.signal('SIGTERM');
    for (const { worker } of services) await worker.finish();
    return codes;
  }

  it('run nothing without their table, say so, and go on after the repair', async () => {
    const codes = await whileBroken(() => {
      const database = shell(place.file);
      database.exec('ALTER TABLE guard_run RENAME TO away');
      return async () => {
        database.exec('ALTER TABLE away RENAME TO guard_run');
        database.close();
      };
    });
    expect(new Set(codes)).toEqual(new Set(['schema-missing']));
  });

  it('run nothing while every lock is refused, say so, and go on after the repair', async () => {
    const codes = await whileBroken(() => {
      const database = shell(`${place.file}-guard`);
      database.exec('BEGIN IMMEDIATE');
      return async () => {
        database.exec('ROLLBACK');
        database.close();
      };
    });
    expect(new Set(codes)).toEqual(new Set(['unavailable']));
  });
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
