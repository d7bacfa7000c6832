/**
 * What runs promise on SQLite beyond the port: they live in tables of the application's own file, made by a migration
 * or at once, and neither disturb nor lose to the application's transactions.
 */
import { rmSync } from 'node:fs';
import { ensureSchema, guardEntities, guardMigrations, typeormLocks, typeormRuns } from '@guard/typeorm';
import { createGuard, memoryLocks, type RunStore } from '@guard/core';
import { failureOf, VirtualClock } from '@guard/testing';
import type { DataSource, DataSourceOptions } from 'typeorm';
import { targetOf, type SqliteTarget } from '../src/dialect.js';
import { createInFile } from '../src/sqlite/application-schema.js';
import { tableNames } from '../src/tables.js';
import { shell, watchedDriver } from './support/drivers.js';
import { newPlace, type Place } from './support/place.js';
import { expectNamed, created, line, moved, NAMESPACE, record } from './support/running.js';

jest.setTimeout(60_000);

let place: Place;
let opened: (() => Promise<unknown>)[];

beforeEach(() => {
  place = newPlace();
  opened = [];
});

afterEach(async () => {
  for (const close of opened.reverse()) await close();
  place.remove();
});

async function application(options: Partial<DataSourceOptions> = {}): Promise<DataSource> {
  const dataSource = await place.dataSource(options).initialize();
  opened.push(() => dataSource.destroy());
  return dataSource;
}

function open(dataSource: DataSource = place.dataSource(), options: object = {}): RunStore {
  const runs = typeormRuns(dataSource, options);
  opened.push(() => runs.close());
  return runs;
}

async function ready(options: object = {}): Promise<RunStore> {
  await ensureSchema(place.dataSource());
  return open(place.dataSource(), options);
}

/** Does something to the application's file as a person would. */
function byHand<T>(work: (database: ReturnType<typeof shell>) => T): T {
  const database = shell(place.file);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

const tables = (): string[] =>
  byHand((database) =>
    database
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'g%' ORDER BY 1")
      .pluck()
      .all(),
  ) as string[];

describe('the schema', () => {
  it('missing, is one clear error of every call that names the migration and ensureSchema, until it is there', async () => {
    await application();
    byHand((database) => database.exec('CREATE TABLE something (id integer)'));
    const runs = open();
    const missing = {
      code: 'schema-missing',
      message: expect.stringMatching(/GuardTables\d{13}.*ensureSchema/),
    };
    const answers = [
      await runs.create(NAMESPACE, record('k'), line()),
      await runs.transition(NAMESPACE, '1.1', record('k'), line()),
    ];
    for (const answer of answers) expect(answer).toMatchObject({ status: 'failed', cause: missing });
    const calls = [
      () => runs.get(NAMESPACE, { task: 't', key: 'k' }),
      () => runs.due(NAMESPACE, { tasks: ['t'], overdueMs: 0, limit: 1 }),
      () => runs.list(NAMESPACE, { limit: 1 }),
      () => runs.prune(NAMESPACE, { recordsBeforeMs: 1, keysBeforeMs: 1, limit: 1 }),
      () => runs.events(NAMESPACE, { task: 't', key: 'k' }),
      () => runs.task(NAMESPACE, 't'),
      () => runs.putTask(NAMESPACE, null, { task: 't' }),
      () => runs.nodes(NAMESPACE),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject(missing);
    await ensureSchema(place.dataSource());
    await created(runs, record('k'));
  });

  it('comes by a migration, which can be taken back', async () => {
    const dataSource = await application({ migrations: [...guardMigrations()] });
    await dataSource.runMigrations();
    await created(open(dataSource), record('k'));
    await ensureSchema(dataSource);
    expect(await open(dataSource).get(NAMESPACE, { task: 'settlement', key: 'k' })).not.toBeNull();
    await dataSource.undoLastMigration();
    expect(tables()).toEqual([]);
  });

  it('comes by one migration for each prefix and schema, and TypeORM takes them together', async () => {
    const migrations = [...guardMigrations(), ...guardMigrations({ prefix: 'g2_' })];
    const dataSource = await application({ migrations });
    await dataSource.runMigrations();
    expect(tables().filter((name) => name.startsWith('g2_'))).toHaveLength(5);
    expect(await dataSource.showMigrations()).toBe(false);
    const nameOf = (options: object): unknown => Reflect.get(new (guardMigrations(options)[0]!)(), 'name');
    const names = [{}, { prefix: 'a' }, { schema: 'a' }, { prefix: 'a', schema: 'a' }].map(nameOf);
    expect(new Set(names).size).toBe(4);
  });

  it('has a prefix that can be chosen, and two prefixes are two stores', async () => {
    await ensureSchema(place.dataSource());
    await ensureSchema(place.dataSource(), { prefix: 'g2_' });
    const [one, other] = [open(), open(place.dataSource(), { prefix: 'g2_' })];
    await created(one, record('k'));
    expect(await other.get(NAMESPACE, { task: 'settlement', key: 'k' })).toBeNull();
    expect(tables().filter((name) => name.startsWith('g2_'))).toHaveLength(5);
    for (const prefix of ['', '1a', 'a"b', 'a b', 'a'.repeat(33), 7]) {
      expect(() => typeormRuns(place.dataSource(), { prefix } as object)).toThrow(/prefix/);
    }
  });

  it('is what TypeORM would make of the entities: nothing to synchronise, and they can be queried', async () => {
    await ensureSchema(place.dataSource());
    const guard = guardEntities();
    const dataSource = await application({ entities: Object.values(guard) });
    const changes = await dataSource.driver.createSchemaBuilder().log();
    expect(changes.upQueries.map(({ query }) => query)).toEqual([]);
    const runs = open(dataSource);
    const lock = { backend: 'b', key: 'ns/task/settlement', token: '9223372036854775807' };
    const status = { state: 'running', lock, node: { id: 'n', label: 'pod-7' }, startedAtMs: 5 } as const;
    await moved(runs, await created(runs, record('k')), status);
    await runs.putTask(NAMESPACE, null, { task: 'settlement', lowWaterMarkMs: 7 });
    const found = await dataSource.getRepository(guard.run).findBy({ task: 'settlement', state: 'running' });
    expect(found).toMatchObject([{ runKey: 'k', lockToken: lock.token, nodeLabel: 'pod-7', startedAtMs: 5 }]);
    expect(await dataSource.getRepository(guard.runEvent).countBy({ runSeq: found[0]!.seq })).toBe(2);
    expect(await dataSource.getRepository(guard.task).find()).toMatchObject([{ lowWaterMarkMs: 7 }]);
  });

  it('can be queried as entities where the data source has a prefix for all of them', async () => {
    const prefix = 'app_guard_';
    await ensureSchema(place.dataSource(), { prefix });
    await created(open(place.dataSource(), { prefix }), record('k'));
    const guard = guardEntities({ prefix: 'guard_' });
    const dataSource = await application({ entities: Object.values(guard), entityPrefix: 'app_' });
    expect(await dataSource.getRepository(guard.run).find()).toMatchObject([{ runKey: 'k' }]);
  });

  it('may come from synchronize too', async () => {
    await application({ entities: Object.values(guardEntities()), synchronize: true });
    const runs = open();
    await created(runs, record('k'));
    expect(await runs.create(NAMESPACE, record('k'), line())).toMatchObject({ status: 'exists' });
  });
});

describe('the application’s file', () => {
  it('that a connection keeps for itself for good is told of where tables are to be made in it', async () => {
    const alone = await application({ prepareDatabase: (file) => file.pragma('locking_mode = EXCLUSIVE') });
    await alone.query('CREATE TABLE business (id integer)');
    const clock = new VirtualClock();
    const making = failureOf(createInFile(targetOf(place.dataSource()) as SqliteTarget, tableNames(), clock));
    expect((await clock.runUntil(making)).message).toMatch(/keeps it locked, .* locking_mode = EXCLUSIVE/);
  });

  it('keeps its journal mode, and is not made where it is missing', async () => {
    const runs = open();
    expect(await runs.create(NAMESPACE, record('k'), line())).toMatchObject({
      status: 'failed',
      cause: { code: 'SQLITE_CANTOPEN' },
    });
    await ensureSchema(place.dataSource());
    await created(runs, record('k'));
    expect(byHand((database) => database.pragma('journal_mode', { simple: true }))).toBe('delete');
  });

  it.each([false, true])(
    '[S9] [B78] with a transaction open in this process is waited for (WAL: %s)',
    async (enableWAL) => {
      const dataSource = await application({ enableWAL });
      const runs = await ready();
      await dataSource.query('CREATE TABLE business (id integer)');
      const runner = dataSource.createQueryRunner();
      await runner.startTransaction();
      await runner.query('INSERT INTO business VALUES (1)');
      const answer = created(runs, record('k'));
      let isDone = false;
      void answer.then(() => (isDone = true));
      await new Promise((resolve) => setTimeout(resolve, 700));
      expect(isDone).toBe(false);
      await runner.query('INSERT INTO business VALUES (2)');
      await runner.rollbackTransaction();
      await answer;
      expect(await runs.get(NAMESPACE, { task: 'settlement', key: 'k' })).not.toBeNull();
      expect(await dataSource.query('SELECT * FROM business')).toEqual([]);
    },
  );

  it('[S9] is not written while a transaction that has only read so far would fail by it', async () => {
    const dataSource = await application({ enableWAL: true });
    await ensureSchema(dataSource);
    const runs = open(dataSource);
    await dataSource.query('CREATE TABLE business (id integer)');
    const answers: Promise<unknown>[] = [];
    await dataSource.transaction(async (manager) => {
      await manager.query('SELECT * FROM business');
      answers.push(created(runs, record('k')));
      await new Promise((resolve) => setTimeout(resolve, 50));
      await manager.query('INSERT INTO business VALUES (1)');
    });
    await Promise.all(answers);
    expect(await dataSource.query('SELECT * FROM business')).toHaveLength(1);
  });

  it('[S6] that stays busy is failed with its cause; nothing of the try is left', async () => {
    const clock = new VirtualClock();
    const runs = await ready({ clock });
    const blocker = shell(place.file);
    blocker.exec('BEGIN IMMEDIATE');
    const late = runs.create(NAMESPACE, record('k'), line());
    await clock.advance(4_010);
    expect(await late).toMatchObject({ status: 'failed', cause: { code: 'SQLITE_BUSY' } });
    const progress = runs.transition(NAMESPACE, '1.1', record('k'), line('progress'));
    await clock.advance(260);
    expect(await progress).toMatchObject({ status: 'failed' });
    blocker.exec('ROLLBACK');
    blocker.close();
    expect(await runs.get(NAMESPACE, { task: 'settlement', key: 'k' })).toBeNull();
    await created(runs, record('k'));
  });

  it('[B80] with a reader in the way of a commit is waited for, and nothing is written into a dead transaction', async () => {
    const clock = new VirtualClock();
    const runs = await ready({ clock });
    const reader = shell(place.file);
    reader.exec('BEGIN');
    reader.prepare('SELECT * FROM guard_run').all();
    const first = runs.create(NAMESPACE, record('p1'), line());
    await clock.advance(4_010);
    expect(await first).toMatchObject({ status: 'failed', cause: { code: 'SQLITE_BUSY' } });
    reader.exec('COMMIT');
    const second = await created(runs, record('p2'));
    await moved(runs, second, { state: 'completed', finishedAtMs: 2, node: { id: 'n', label: 'l' } });
    const keys = () => byHand((database) => database.prepare('SELECT run_key FROM guard_run').pluck().all());
    expect(keys()).toEqual(['p2']);
    await runs.close();
    expect(keys()).toEqual(['p2']);
    reader.close();
  });

  it('that goes away and comes back is opened again', async () => {
    const clock = new VirtualClock();
    const runs = await ready({ clock });
    await created(runs, record('k'));
    rmSync(place.file);
    await ensureSchema(place.dataSource());
    await clock.advance(1_000);
    expect(await runs.get(NAMESPACE, { task: 'settlement', key: 'k' })).toBeNull();
    await created(runs, record('k'));
  });
});

describe('versions', () => {
  it('are compared to the last digit of 63 bits', async () => {
    const runs = await ready();
    const first = await created(runs, record('k'));
    byHand((database) => database.exec('UPDATE guard_run SET version = 9007199254740993'));
    const [seq] = first.version.split('.');
    for (const version of ['9007199254740992', '9007199254740994', '1']) {
      const stale = { run: first.run, version: `${seq}.${version}` };
      await expect(moved(runs, stale, { state: 'pending', availableAtMs: 1 })).rejects.toThrow(/conflict/);
    }
    const exact = { run: first.run, version: `${seq}.9007199254740993` };
    const next = await moved(runs, exact, { state: 'pending', availableAtMs: 1 });
    expect(next.version).toBe(`${seq}.9007199254740994`);
  });

  it('[B67] guard every write, also against one by hand', async () => {
    const runs = await ready();
    const stored = await created(runs, record('k'));
    byHand((database) => database.exec('UPDATE guard_run SET version = version + 1'));
    await expect(moved(runs, stored, { state: 'pending', availableAtMs: 1 })).rejects.toThrow(/conflict/);
  });

  it('[B180] [S7] of a key never come back, not even after its record was removed and made anew', async () => {
    const runs = await ready();
    const finished = { state: 'completed', finishedAtMs: 2, node: { id: 'n', label: 'l' } } as const;
    const seen = new Set<string>();
    for (let round = 0; round < 3; round += 1) {
      const stored = await created(runs, record('k'));
      const over = await moved(runs, stored, finished);
      for (const { version } of [stored, over]) {
        expect(seen.has(version)).toBe(false);
        seen.add(version);
      }
      expect(await runs.prune(NAMESPACE, { recordsBeforeMs: 10, keysBeforeMs: 10, limit: 10 })).toBe(1);
    }
    expect(await runs.get(NAMESPACE, { task: 'settlement', key: 'k' })).toBeNull();
  });

  it('of another store are a conflict, not an error', async () => {
    const runs = await ready();
    await created(runs, record('k'));
    for (const version of ['', 'x', '17', '1.1; DROP TABLE guard_run', `${'9'.repeat(30)}.1`]) {
      expect(await runs.transition(NAMESPACE, version, record('k'), line())).toMatchObject({
        status: 'conflict',
      });
    }
  });

  it('refuse a cursor that is none', async () => {
    const runs = await ready();
    await expect(runs.list(NAMESPACE, { limit: 1, cursor: 'x' })).rejects.toMatchObject({
      code: 'invalid-argument',
    });
  });
});

describe('the cost', () => {
  it('[C5] of a run is one statement for each lock trip and one transaction for each record trip', async () => {
    await ensureSchema(place.dataSource());
    const seen: [string, string][] = [];
    const driver = watchedDriver((text, file) => seen.push([file === place.file ? 'app' : 'guard', text]));
    const dataSource = place.dataSource({ driver });
    const guard = createGuard({ locks: typeormLocks(dataSource), runs: typeormRuns(dataSource) });
    opened.push(() => guard.close());
    await guard.run('settle', { key: 'warm' }, () => undefined);
    seen.length = 0;
    await guard.run('settle', { key: 'k' }, () => undefined);
    const of = (name: string): string[] =>
      seen.filter(([file]) => file === name).map(([, text]) => /[A-Z]+/.exec(text)![0]);
    expect(of('guard')).toEqual(['INSERT', 'DELETE']);
    const write = (verb: string): string[] => ['BEGIN', verb, 'INSERT', 'COMMIT'];
    expect(of('app')).toEqual([...write('INSERT'), ...write('UPDATE')]);
  });
});

describe('history', () => {
  it('keeps every line but old reports of progress, however many there are', async () => {
    const runs = await ready();
    const stored = await created(runs, record('k'));
    const pending = { state: 'pending', availableAtMs: 1 } as const;
    const claimed = await moved(runs, stored, pending, line('claimed'));
    byHand((database) => {
      const add =
        "INSERT INTO guard_run_event SELECT NULL, 1, 'w', 1, 'progress', '', '', event FROM guard_run_event";
      for (let doubled = 0; doubled < 9; doubled += 1) database.exec(add);
    });
    expect((await runs.events(NAMESPACE, stored.run)).length).toBe(1_024);
    await moved(runs, claimed, pending, line('progress'));
    const events = await runs.events(NAMESPACE, stored.run);
    expect(events.length).toBe(514);
    expect(events.slice(0, 2).map(({ what }) => what)).toEqual(['moved', 'claimed']);
  });
});

describe('a record that cannot be read', () => {
  it('[S6] is named, also where it is a line of a history, a task or a node', async () => {
    await expectNamed(await ready(), (set, spoiled) =>
      byHand((database) => database.prepare(`UPDATE guard_${set} = ?`).run(spoiled)),
    );
  });

  it('[S8] [L4] is told of once by name, and keeps the sweep from no other run', async () => {
    const runs = await ready();
    const guard = createGuard({ locks: memoryLocks(), runs, namespace: 'n', sweepInterval: '1s' });
    opened.push(() => guard.close());
    const errors: unknown[] = [];
    guard.on('error', ({ error }) => void errors.push(error));
    guard.on('backend-unavailable', (event) => void errors.push(event));
    guard.task('pay', async () => undefined);
    await guard.runs.create('pay', { key: 'bad' });
    byHand((database) => database.prepare("UPDATE guard_run SET record = 'none'").run());
    await guard.start();
    for (const key of ['one', 'two', 'three']) {
      await guard.runs.create('pay', { key });
      while ((await guard.runs.get('pay', key))?.run.state !== 'completed') {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
    expect(errors).toMatchObject([{ message: expect.stringContaining('run bad of pay') }]);
  });
});
