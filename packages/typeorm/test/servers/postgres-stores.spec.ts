/**
 * State and runs on Postgres beyond the contract: what other transactions, lost answers and the application's own use of
 * the tables do to them.
 */
import { typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import { ask, claim, look } from '../support/locking.js';
import { newSchema, onPostgres } from '../support/postgres.js';
import { created, moved, NAMESPACE, record } from '../support/running.js';
import { describeStores, wish } from '../support/store-cases.js';

const postgres = onPostgres();
const stage = describeStores('Postgres', {
  type: 'postgres',
  newPlace: () => newSchema(postgres.server.url),
  entries: ({ schema }) => `"${schema}".guard_entry`,
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('watches of state on Postgres', () => {
  it('hear of every write once, also while an older transaction is open, and of that one after its commit', async () => {
    const state = typeormState(stage.dataSource);
    stage.opened.push(() => state.close());
    const runner = stage.dataSource.createQueryRunner();
    await runner.startTransaction();
    const table = `"${stage.place.schema}".guard_entry`;
    await runner.query(
      `INSERT INTO ${table} (key, value, version, write_id, written_by) VALUES ('s/old', '"old"', 1, 'w', txid_current())`,
    );
    await state.write([wish('s/before', '0')]);
    const heard: string[] = [];
    const watch = await state.watch('s/', ({ key, entry }) => heard.push(`${key}=${entry?.value ?? 'gone'}`));
    stage.opened.push(() => watch.close());
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
  it('[S1] [S6] do not take what a session makes of NULL in an array: what was deleted is gone, with a fence and without', async () => {
    const plain = typeormState(stage.dataSource);
    const odd = typeormState(await stage.place.dataSource({ extra: { options: '-c array_nulls=off' } }));
    const fence = { lock: 'b|l', token: 5n };
    const written = await odd.write([
      ...[wish('s/a', '"NULL"', { fence }), wish('s/b', '1'), wish('s/c', '1', { fence })],
      wish('s/d', null),
    ]);
    expect(written.map(({ status }) => status)).toEqual(Array(4).fill('written'));
    await odd.write([wish('s/b', null), wish('s/c', null, { fence })]);
    for (const state of [plain, odd]) {
      const there = await state.read(['s/a', 's/b', 's/c', 's/d']);
      expect(there.map((entry) => entry?.value)).toEqual(['"NULL"', undefined, undefined, undefined]);
      const [late] = await state.write([wish('s/c', '2', { fence: { ...fence, token: 4n } })]);
      expect(late).toEqual({ status: 'fenced', token: 5n });
    }
  });

  it('[S4] know their own earlier sending also while that is still under way', async () => {
    const [one, other] = [typeormState(stage.dataSource), typeormState(await stage.place.dataSource())];
    const blocker = stage.dataSource.createQueryRunner();
    await one.write([wish('s/k', '0')]);
    await blocker.startTransaction();
    await blocker.query(`SELECT 1 FROM "${stage.place.schema}".guard_entry FOR UPDATE`);
    const write = wish('s/k', '1');
    const sent = [one.write([write]), other.write([write])];
    await pause(100);
    await blocker.commitTransaction();
    await blocker.release();
    const [first, second] = await Promise.all(sent);
    expect(first![0]!.status).toBe('written');
    expect(second).toEqual(first);
  });
});

describe('results of Postgres', () => {
  it('[S6] in binary are refused by name, and the server is asked for nothing', async () => {
    const { postgres: pg } = stage.dataSource.driver as unknown as {
      postgres: { defaults: { binary: boolean } };
    };
    pg.defaults.binary = true;
    try {
      const locks = typeormLocks(await stage.place.dataSource());
      expect(await ask(locks, claim({ ttlMs: 30_000 }))).toMatchObject({
        status: 'failed',
        cause: {
          code: 'invalid-argument',
          message: expect.stringContaining('do not set pg.defaults.binary'),
        },
      });
    } finally {
      pg.defaults.binary = false;
    }
    expect((await look(typeormLocks(stage.dataSource))).held).toBe(false);
  });
});

describe('columns of Postgres', () => {
  it('hold labels and notes with a U+0000, which Postgres knows in no text', async () => {
    const runs = typeormRuns(stage.dataSource);
    const lock = { backend: 'b', key: 'ns/task/settlement', token: '1' };
    const status = { state: 'running', lock, node: { id: 'n', label: 'a\0b' }, startedAtMs: 5.5 } as const;
    const stored = await moved(runs, await created(runs, record('k')), status);
    expect(await runs.get(NAMESPACE, stored.run)).toEqual(stored);
    const task = { task: 'settlement', paused: { note: 'a\0b', sinceMs: 1 } };
    await runs.putTask(NAMESPACE, null, task);
    expect((await runs.task(NAMESPACE, 'settlement'))?.record).toEqual(task);
    const locks = typeormLocks(stage.dataSource);
    const holder = { label: 'a\0b', run: '\ud800' };
    await ask(locks, claim({ holder, ttlMs: 30_000 }));
    await ask(locks, claim({ holder, wait: true, ticketTtlMs: 30_000 }));
    expect((await look(locks)).holder).toEqual(holder);
  });
});
