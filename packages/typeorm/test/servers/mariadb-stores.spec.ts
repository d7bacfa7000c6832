/**
 * State and runs on MariaDB beyond the contract: what other transactions, lost answers and the application's own use of
 * the tables do to them.
 */
import { typeormState } from '@guard/typeorm';
import { newDatabase, onMariadb } from '../support/mariadb.js';
import { describeStores, versionOf, wish } from '../support/store-cases.js';

const mariadb = onMariadb();
const stage = describeStores('MariaDB', {
  type: 'mariadb',
  newPlace: () => newDatabase(mariadb.server.url),
  entries: () => 'guard_entry',
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('writes on MariaDB', () => {
  it('[B63] make each of fifty keys once, whoever asks in whatever order, and meet no deadlock', async () => {
    const keys = Array.from({ length: 50 }, (_, n) => `s/${String(n).padStart(2, '0')}`);
    const states = await Promise.all(
      [1, 2, 3, 4].map(async () => typeormState(await stage.place.dataSource())),
    );
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
    const state = typeormState(stage.dataSource);
    let [answer] = await state.write([wish('s/k', '"v"', { expect: 'absent' })]);
    for (let n = 0; n < 5; n += 1) {
      const last = versionOf(answer);
      [answer] = await state.write([wish('s/k', '"v"', { expect: { version: String(last) } })]);
      expect(answer).toMatchObject({ status: 'written' });
      expect(versionOf(answer)).toBeGreaterThan(last);
    }
  });

  it('[B179] know keys apart by every byte: spaces at the end, case and accents', async () => {
    const state = typeormState(stage.dataSource);
    const keys = ['s/a', 's/a ', 's/A', 's/\u00e1', 's/a\u0301'];
    for (const key of keys) {
      const [answer] = await state.write([wish(key, '1', { expect: 'absent' })]);
      expect(answer!.status).toBe('written');
    }
  });

  it('carry more than one message of the server takes', async () => {
    const state = typeormState(stage.dataSource);
    const value = JSON.stringify('"'.repeat(500_000));
    const answers = await state.write(Array.from({ length: 16 }, (_, n) => wish(`s/${n + 10}`, value)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(['written']));
    const [entry] = await state.read(['s/20']);
    expect(entry?.value.length).toBe(value.length);
  });
});

describe('watches of state on MariaDB', () => {
  it('hear of a write that becomes visible late, after others', async () => {
    const state = typeormState(stage.dataSource);
    stage.opened.push(() => state.close());
    const heard: string[] = [];
    const watch = await state.watch('s/', ({ key, entry }) => heard.push(`${key}=${entry?.value ?? 'gone'}`));
    stage.opened.push(() => watch.close());
    const runner = stage.dataSource.createQueryRunner();
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
