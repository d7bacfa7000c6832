/**
 * State and runs on MariaDB beyond the contract: what other transactions, lost answers and the application's own use of
 * the tables do to them.
 */
import { ensureSchema, guardEntities, typeormRuns, typeormState } from '@guard/typeorm';
import type { StateWrite } from '@guard/core';
import type { DataSource } from 'typeorm';
import { describeLostAnswers } from '../support/lost-answer-cases.js';
import { newDatabase, onMariadb } from '../support/mariadb.js';
import type { Place } from '../support/place-on-server.js';
import { created, line, moved, NAMESPACE, record } from '../support/running.js';

const mariadb = onMariadb();
let place: Place;
let dataSource: DataSource;
let opened: (() => Promise<unknown>)[];

beforeEach(async () => {
  opened = [];
  place = await newDatabase(mariadb.server.url);
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
const version = (answer: unknown): bigint => BigInt((answer as { version: string }).version);

describe('writes on MariaDB', () => {
  it('[B63] make each of fifty keys once, whoever asks in whatever order, and meet no deadlock', async () => {
    const keys = Array.from({ length: 50 }, (_, n) => `s/${String(n).padStart(2, '0')}`);
    const states = await Promise.all([1, 2, 3, 4].map(async () => typeormState(await place.dataSource())));
    const made = new Map<string, number>();
    const work = Array.from({ length: 20 }, async (_, worker) => {
      const own = keys.filter((_key, n) => (n * 7 + worker) % 3 > 0);
      const answers = await states[worker % 4]!.write(own.map((key) => wish(key, '1', { expect: 'absent' })));
      for (const [n, { status }] of answers.entries()) {
        expect(['written', 'conflict']).toContain(status);
        if (status === 'written') made.set(own[n]!, (made.get(own[n]!) ?? 0) + 1);
      }
    });
    await Promise.all(work);
    expect([...made.values()]).toEqual(Array<number>(50).fill(1));
  });

  it('[B68] [B70] [B71] chain versions without reading, also where the value stays the same', async () => {
    const state = typeormState(dataSource);
    let [answer] = await state.write([wish('s/k', '"v"', { expect: 'absent' })]);
    for (let n = 0; n < 5; n += 1) {
      const last = version(answer);
      [answer] = await state.write([wish('s/k', '"v"', { expect: { version: String(last) } })]);
      expect(answer).toMatchObject({ status: 'written' });
      expect(version(answer)).toBeGreaterThan(last);
    }
  });

  it('[S2] [B180] keep versions growing over a delete that was forgotten', async () => {
    const state = typeormState(dataSource);
    const [first] = await state.write([wish('s/k', '1')]);
    await state.write([wish('s/k', null)]);
    await dataSource.query('DELETE FROM guard_entry');
    const [again] = await state.write([wish('s/k', '2')]);
    expect(version(again)).toBeGreaterThan(version(first));
  });

  it('[B179] know keys apart by every byte: spaces at the end, case and accents', async () => {
    const state = typeormState(dataSource);
    const keys = ['s/a', 's/a ', 's/A', 's/\u00e1', 's/a\u0301'];
    for (const key of keys) {
      const [answer] = await state.write([wish(key, '1', { expect: 'absent' })]);
      expect(answer!.status).toBe('written');
    }
  });

  it('carry more than one message of the server takes', async () => {
    const state = typeormState(dataSource);
    const value = JSON.stringify('"'.repeat(500_000));
    const answers = await state.write(Array.from({ length: 16 }, (_, n) => wish(`s/${n + 10}`, value)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(['written']));
    const [entry] = await state.read(['s/20']);
    expect(entry?.value.length).toBe(value.length);
  });
});

describe('watches of state on MariaDB', () => {
  it('hear of a write that becomes visible late, after others', async () => {
    const state = typeormState(dataSource);
    opened.push(() => state.close());
    const heard: string[] = [];
    const watch = await state.watch('s/', ({ key, entry }) => heard.push(`${key}=${entry?.value ?? 'gone'}`));
    opened.push(() => watch.close());
    const runner = dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query(
      `INSERT INTO guard_entry (\`key\`, value, version, write_id, written_by) VALUES
      ('s/late', '"late"', 1, 'w', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))`,
    );
    await state.write([wish('s/k', '1')]);
    while (heard.length < 1) await pause(5);
    await pause(250);
    await runner.commitTransaction();
    await runner.release();
    while (heard.length < 2) await pause(5);
    expect(heard).toEqual(['s/k=1', 's/late="late"']);
  });
});

describeLostAnswers('MariaDB', () => place);

describe('the tables of runs on MariaDB', () => {
  it('are what TypeORM would make of the entities: nothing to synchronise, and they can be queried', async () => {
    const guard = guardEntities({ type: 'mariadb' });
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
