/** What `compareAndSave` writes of relations: what TypeORM's own `save()` writes. The same on every database. */
import { compareAndSave } from '@guard/typeorm';
import { EntitySchema, type DataSource, type EntityManager } from 'typeorm';

/** What payments point to. Its key has two parts where `Transfer` points to it. */
class Payee {
  id!: number;
  bank!: number;
}

/** A relation whose column is a property too. */
class Payment {
  id!: number;
  payee?: Payee | null;
  payeeId?: number | null;
  version!: number;
}

/** A relation whose columns are none. */
class Transfer {
  id!: number;
  branch?: Branch | null;
  version!: number;
}

class Branch {
  bank!: number;
  number!: number;
}

const id = { type: Number, primary: true } as const;
const version = { type: Number, version: true } as const;

/** Their tables are made by `synchronize`. */
export const relationEntities = [
  new EntitySchema<Payee>({ name: 'Payee', target: Payee, tableName: 'payee', columns: { id } }),
  new EntitySchema<Branch>({
    ...{ name: 'Branch', target: Branch, tableName: 'branch', columns: { bank: id, number: id } },
  }),
  new EntitySchema<Payment>({
    ...{ name: 'Payment', target: Payment, tableName: 'payment' },
    columns: { id, version, payeeId: { type: Number, nullable: true } },
    relations: {
      payee: { type: 'many-to-one', target: 'Payee', joinColumn: { name: 'payeeId' }, nullable: true },
    },
  }),
  new EntitySchema<Transfer>({
    ...{ name: 'Transfer', target: Transfer, tableName: 'transfer', columns: { id, version } },
    relations: { branch: { type: 'many-to-one', target: 'Branch', nullable: true } },
  }),
];

type Save = (manager: EntityManager, entity: Payment | Transfer) => Promise<unknown>;
const both: readonly Save[] = [(manager, entity) => manager.save(entity), compareAndSave];
const payee = (n: number): Payee => Object.assign(new Payee(), { id: n });
const branch = (number: number): Branch => Object.assign(new Branch(), { bank: 7, number });

/** The data source knows `relationEntities`, and their tables are there and empty. */
export function describeRelations(database: string, dataSourceOf: () => DataSource): void {
  describe(`relations that compareAndSave writes on ${database}`, () => {
    beforeEach(async () => {
      for (const n of [1, 2, 3]) await dataSourceOf().manager.save([payee(n), branch(n)]);
    });

    it.each<[string, number | null, Partial<Payment>, number | null]>([
      ['the relation set', 1, { payee: payee(2), payeeId: 1 }, 2],
      ['the relation set to null', 1, { payee: null, payeeId: 1 }, null],
      ['the relation set to null, and the column not loaded', 1, { payee: null, payeeId: undefined! }, null],
      ['the relation left as it was', 1, { payee: payee(1), payeeId: 1 }, 1],
      ['the relation left without one', null, { payee: null, payeeId: null }, null],
      ['the relation not loaded', 1, { payee: undefined!, payeeId: 1 }, 1],
      ['the column alone, the relation not loaded', 1, { payee: undefined!, payeeId: 2 }, 2],
      ['the column set to null, the relation not loaded', 1, { payee: undefined!, payeeId: null }, null],
      ['the column alone, where the relation was none', null, { payee: null, payeeId: 2 }, 2],
      ['the column alone, beside a loaded relation', 1, { payee: payee(1), payeeId: 2 }, 1],
      ['both, to two keys', 1, { payee: payee(2), payeeId: 3 }, 2],
      ['both, the relation to null', 1, { payee: null, payeeId: 3 }, 3],
      ['both, the column to null', 1, { payee: payee(2), payeeId: null }, 2],
      ['the relation, to one without a key', 1, { payee: new Payee(), payeeId: 1 }, 1],
    ])('[V21] are what save() writes: %s', async (_, before, change, after) => {
      const { manager } = dataSourceOf();
      for (const save of both) {
        await manager.clear(Payment);
        await manager.save(Object.assign(new Payment(), { id: 1, payeeId: before }));
        const loaded = await manager.findOneByOrFail(Payment, { id: 1 });
        await save(manager, Object.assign(loaded, change));
        expect(await manager.findOneByOrFail(Payment, { id: 1 })).toMatchObject({ payeeId: after });
      }
    });

    it.each<[string, Branch | null, Branch | null]>([
      ['to another', branch(1), branch(2)],
      ['to none', branch(1), null],
      ['from none', null, branch(3)],
    ])('[V21] are what save() writes where the key has two parts: %s', async (_, before, after) => {
      const { manager } = dataSourceOf();
      for (const save of both) {
        await manager.clear(Transfer);
        await manager.save(Object.assign(new Transfer(), { id: 1, branch: before }));
        const load = (): Promise<Transfer | null> =>
          manager.findOne(Transfer, { where: { id: 1 }, relations: { branch: true } });
        await save(manager, Object.assign((await load())!, { branch: after }));
        expect((await load())!.branch).toEqual(after);
      }
    });

    it('[V21] are not written over a version that somebody else wrote', async () => {
      const { manager } = dataSourceOf();
      await manager.save(Object.assign(new Payment(), { id: 1, payeeId: 1 }));
      const mine = await manager.findOneByOrFail(Payment, { id: 1 });
      await manager.update(Payment, { id: 1 }, { payeeId: 3 });
      expect(await compareAndSave(manager, Object.assign(mine, { payee: null, payeeId: 1 }))).toBe(false);
      expect(await manager.findOneByOrFail(Payment, { id: 1 })).toMatchObject({ payeeId: 3, version: 2 });
    });
  });
}
