/**
 * State and runs on Postgres beyond the contract: what other transactions, lost answers and the application's own use of
 * the tables do to them.
 */
import { ensureSchema, guardEntities, typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import type { StateWrite } from '@guard/core';
import type { DataSource } from 'typeorm';
import { ask, claim, look } from '../support/locking.js';
import { describeLostAnswers } from '../support/lost-answer-cases.js';
import type { Place } from '../support/place-on-server.js';
import { newSchema, onPostgres } from '../support/postgres.js';
import { created, line, moved, NAMESPACE, record } from '../support/running.js';

const postgres = onPostgres();
let place: Place;
let dataSource: DataSource;
let opened: (() => Promise<unknown>)[];

beforeEach(async () => {
  opened = [];
  place = await newSchema(postgres.server.url);
  dataSource = await place.dataSource();
  await ensureSchema(dataSource);
});

afterEach(async () => {
  for (const close of opened.reverse()) await close();
  await place.close();
});

let writes = 0;

function wish(key: string, value: string | null, over: Partial<StateWrite> = {}): StateWrite {
  writes += 1;
  return { key, value, expect: 'any', writeId: `write ${writes}`, ttl: 'none', ...over };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('watches of state on Postgres', () => {
  it('hear of every write once, also while an older transaction is open, and of that one after its commit', async () => {
    const state = typeormState(dataSource);
    opened.push(() => state.close());
    const runner = dataSource.createQueryRunner();
    await runner.startTransaction();
    const table = `"${place.schema}".guard_entry`;
    await runner.query(
      `INSERT INTO ${table} (key, value, version, write_id, written_by) VALUES ('s/old', '"old"', 1, 'w', txid_current())`,
    );
    await state.write([wish('s/before', '0')]);
    const heard: string[] = [];
    const watch = await state.watch('s/', ({ key, entry }) => heard.push(`${key}=${entry?.value ?? 'gone'}`));
    opened.push(() => watch.close());
    for (const n of [1, 2, 3]) {
      await state.write([wish(`s/k${n}`, String(n))]);
      await pause(250);
    }
    expect(heard).toEqual(['s/k1=1', 's/k2=2', 's/k3=3']);
    await runner.commitTransaction();
    await runner.release();
    while (heard.length < 4) await pause(5);
    expect(heard.at(-1)).toBe('s/old="old"');
    await state.write([wish('s/k1', null)]);
    while (heard.length < 5) await pause(5);
    expect(heard.at(-1)).toBe('s/k1=gone');
  });
});

describe('writes on Postgres', () => {
  it('[S4] know their own earlier sending also while that is still under way', async () => {
    const [one, other] = [typeormState(dataSource), typeormState(await place.dataSource())];
    const blocker = dataSource.createQueryRunner();
    await one.write([wish('s/k', '0')]);
    await blocker.startTransaction();
    await blocker.query(`SELECT 1 FROM "${place.schema}".guard_entry FOR UPDATE`);
    const write = wish('s/k', '1');
    const sent = [one.write([write]), other.write([write])];
    await pause(100);
    await blocker.commitTransaction();
    await blocker.release();
    const [first, second] = await Promise.all(sent);
    expect(first![0]!.status).toBe('written');
    expect(second).toEqual(first);
  });

  it('[S2] [B180] keep versions growing over a delete that was forgotten', async () => {
    const state = typeormState(dataSource);
    const [first] = await state.write([wish('s/k', '1')]);
    await state.write([wish('s/k', null)]);
    await dataSource.query(`DELETE FROM "${place.schema}".guard_entry`);
    const [again] = await state.write([wish('s/k', '2')]);
    const version = (answer: unknown): bigint => BigInt((answer as { version: string }).version);
    expect(version(again)).toBeGreaterThan(version(first) + 1n);
  });
});

describeLostAnswers('Postgres', () => place);

describe('the tables of runs on Postgres', () => {
  it('are what TypeORM would make of the entities: nothing to synchronise, and they can be queried', async () => {
    const guard = guardEntities({ type: 'postgres' });
    const application = await place.dataSource({ entities: Object.values(guard) });
    const changes = await application.driver.createSchemaBuilder().log();
    expect(changes.upQueries.map(({ query }) => query)).toEqual([]);
    const runs = typeormRuns(application);
    const lock = { backend: 'b', key: 'ns/task/settlement', token: '9223372036854775807' };
    const status = { state: 'running', lock, node: { id: 'n', label: 'pod-7' }, startedAtMs: 5 } as const;
    await moved(runs, await created(runs, record('k')), status);
    const found = await application.getRepository(guard.run).findBy({ task: 'settlement', state: 'running' });
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

  it('take labels and notes with a U+0000, which no column of Postgres holds', async () => {
    const runs = typeormRuns(dataSource);
    const lock = { backend: 'b', key: 'ns/task/settlement', token: '1' };
    const status = { state: 'running', lock, node: { id: 'n', label: 'a\0b' }, startedAtMs: 5.5 } as const;
    const stored = await moved(runs, await created(runs, record('k')), status);
    expect(await runs.get(NAMESPACE, stored.run)).toEqual(stored);
    const task = { task: 'settlement', paused: { note: 'a\0b', sinceMs: 1 } };
    await runs.putTask(NAMESPACE, null, task);
    expect((await runs.task(NAMESPACE, 'settlement'))?.record).toEqual(task);
    const locks = typeormLocks(dataSource);
    const holder = { label: 'a\0b', run: '\ud800' };
    await ask(locks, claim({ holder, ttlMs: 30_000 }));
    await ask(locks, claim({ holder, wait: true, ticketTtlMs: 30_000 }));
    expect((await look(locks)).holder).toEqual(holder);
  });

  it('keep no more progress than anybody reads, and every other line', async () => {
    const runs = typeormRuns(dataSource);
    let stored = await created(runs, record('k'));
    const lock = { backend: 'b', key: 'ns/task/settlement', token: '1' };
    const status = { state: 'running', lock, node: { id: 'n', label: 'pod-7' }, startedAtMs: 5 } as const;
    for (let n = 0; n < 530; n += 1) stored = await moved(runs, stored, status, line('progress'));
    const events = await runs.events(NAMESPACE, stored.run);
    expect(events.length).toBeGreaterThanOrEqual(512);
    expect(events.length).toBeLessThanOrEqual(514);
    expect(events[0]!.what).not.toBe('progress');
  });
});
