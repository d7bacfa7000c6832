/** Cases of what Guard does in a transaction of the application that are the same on every database. */
import type { Guard } from '@guard/core';
import { compareAndSave, createRun } from '@guard/typeorm';
import { EntitySchema, type DataSource } from 'typeorm';

/** An entity of an application. */
export class Account {
  id!: number;
  owner!: string;
  cents!: number;
  version!: number;
  holder!: { name: string; city: string };
}

const holder = new EntitySchema<Account['holder']>({
  name: 'AccountHolder',
  columns: { name: { type: String, length: 50 }, city: { type: String, length: 50 } },
});

/** Its table is made by `synchronize`. */
export const account = new EntitySchema<Account>({
  name: 'Account',
  target: Account,
  tableName: 'account',
  columns: {
    id: { type: Number, primary: true },
    owner: { type: String, length: 50 },
    cents: { type: Number },
    version: { type: Number, version: true },
  },
  embeddeds: { holder: { schema: holder, prefix: 'holder_' } },
});

/** Cases of `compareAndSave`; the data source knows `account`, and its table is there and empty. */
export function describeCompareAndSave(database: string, dataSourceOf: () => DataSource): void {
  describe(`compareAndSave on ${database}`, () => {
    beforeEach(async () => {
      const made = Object.assign(new Account(), {
        ...{ id: 1, owner: 'ann', cents: 100, holder: { name: 'Ann', city: 'Ulm' } },
      });
      await dataSourceOf().manager.save(made);
    });
    const load = (): Promise<Account> => dataSourceOf().manager.findOneByOrFail(Account, { id: 1 });

    it('[V21] saves over the version that was loaded, and on no other, however often it is tried', async () => {
      const { manager } = dataSourceOf();
      const [mine, theirs] = [await load(), await load()];
      Object.assign(mine, { cents: 50 });
      expect(await compareAndSave(manager, mine)).toBe(true);
      expect(mine.version).toBe(theirs.version + 1);
      Object.assign(theirs, { cents: 0, owner: 'bob' });
      for (let tries = 0; tries < 2; tries += 1) expect(await compareAndSave(manager, theirs)).toBe(false);
      expect(await load()).toEqual(mine);
      mine.holder.city = 'Bonn';
      expect(await compareAndSave(manager, mine)).toBe(true);
      expect(await load()).toMatchObject({
        cents: 50,
        version: mine.version,
        holder: { name: 'Ann', city: 'Bonn' },
      });
    });

    it('[V21] answers false where the row is gone', async () => {
      const mine = await load();
      await dataSourceOf().manager.delete(Account, { id: 1 });
      expect(await compareAndSave(dataSourceOf().manager, mine)).toBe(false);
    });

    it('[V21] lets one of many win, and writes also where nothing but the version changes', async () => {
      const loaded = await Promise.all(Array.from({ length: 10 }, load));
      const saved = await Promise.all(loaded.map((one) => compareAndSave(dataSourceOf().manager, one)));
      expect(saved.filter(Boolean)).toHaveLength(1);
      expect((await load()).version).toBe(2);
    });

    it('is undone with its transaction', async () => {
      const mine = await load();
      const undone = dataSourceOf().transaction(async (manager) => {
        expect(await compareAndSave(manager, Object.assign(mine, { cents: 1 }))).toBe(true);
        throw new Error('undone');
      });
      await expect(undone).rejects.toThrow('undone');
      expect(await load()).toMatchObject({ cents: 100, version: 1 });
    });

    it('refuses what is no loaded entity of the manager', async () => {
      const { manager } = dataSourceOf();
      const loaded = await load();
      const spoiled = [
        ...[{ id: null }, { id: undefined }, { id: NaN }],
        ...[{ version: null }, { version: NaN }, { version: 1.5 }, { version: Infinity }, { version: '1' }],
      ].map((change) => Object.assign(new Account(), loaded, change));
      for (const none of [undefined, null, {}, new Account(), ...spoiled]) {
        const refused = compareAndSave(manager, none as Account);
        await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' });
      }
    });
  });
}

/** Cases of `createRun`; the guard keeps its runs in the data source's database, `elsewhere` does not. */
export function describeCreateRun(
  database: string,
  parts: {
    readonly dataSource: () => DataSource;
    readonly guard: () => Guard;
    readonly elsewhere: () => Guard;
  },
): void {
  describe(`createRun on ${database}`, () => {
    const { dataSource, guard, elsewhere } = parts;

    it('asks for a run with the commit, which a started node carries out, and shows the one that is there', async () => {
      const options = { key: 'k', input: { cents: 5 } };
      const first = await dataSource().transaction((manager) => createRun(manager, guard(), 'pay', options));
      expect(first).toMatchObject({ created: true, run: { task: 'pay', key: 'k', state: 'pending' } });
      const again = await dataSource().transaction((manager) => createRun(manager, guard(), 'pay', options));
      expect(again).toEqual({ created: false, run: first.run });
      expect((await guard().runs.get('pay', 'k'))?.run).toEqual(first.run);
      expect(await guard().runs.history('pay', 'k')).toHaveLength(1);
      const inputs: unknown[] = [];
      guard().task('pay', async (_run, input: unknown) => void inputs.push(input));
      await guard().start();
      while ((await guard().runs.get('pay', 'k'))?.run.state !== 'completed') {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect(inputs).toEqual([{ cents: 5 }]);
    });

    it('asks for nothing where the transaction is rolled back', async () => {
      const undone = dataSource().transaction(async (manager) => {
        expect((await createRun(manager, guard(), 'pay', { key: 'k' })).created).toBe(true);
        throw new Error('undone');
      });
      await expect(undone).rejects.toThrow('undone');
      expect(await guard().runs.get('pay', 'k')).toBeNull();
      expect(await guard().runs.history('pay', 'k')).toEqual([]);
    });

    it('makes every run that is asked for at once in one transaction, and each key once', async () => {
      const keys = ['a', 'b', 'c', 'a', 'b'];
      const made = await dataSource().transaction((manager) =>
        Promise.all(keys.map((key) => createRun(manager, guard(), 'pay', { key }))),
      );
      expect(made.map(({ created, run }) => `${run.key} ${created}`)).toEqual([
        ...['a true', 'b true', 'c true', 'a false', 'b false'],
      ]);
      expect((await guard().runs.list({ task: 'pay' })).runs).toHaveLength(3);
      for (const key of ['a', 'b', 'c']) expect(await guard().runs.history('pay', key)).toHaveLength(1);
    });

    it.each(['{', 'null', '5', '{}', '"text"'])(
      '[S6] names a record that something else wrote, and what to do with it: %s',
      async (record) => {
        await guard().runs.create('pay', { key: 'k' });
        await dataSource().query(`UPDATE guard_run SET record = '${record}'`);
        const spoiled = {
          code: 'unavailable',
          message: expect.stringMatching(
            / the record of run k of pay cannot be read: .*repair or delete its row$/,
          ),
        };
        const asked = dataSource().transaction((manager) => createRun(manager, guard(), 'pay', { key: 'k' }));
        await expect(asked).rejects.toMatchObject(spoiled);
      },
    );

    it('wants a guard that keeps its runs in the database of an open transaction', async () => {
      const refused = { code: 'invalid-argument' };
      await expect(createRun(dataSource().manager, guard(), 'pay')).rejects.toMatchObject(refused);
      await dataSource().transaction(async (manager) => {
        await expect(createRun(manager, elsewhere(), 'pay')).rejects.toMatchObject(refused);
        await expect(createRun(manager, undefined as unknown as Guard, 'pay')).rejects.toMatchObject(refused);
      });
    });
  });
}
