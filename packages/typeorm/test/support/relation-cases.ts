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

/** What a program reads of it is less than what is stored. */
class Paper {
  id!: number;
  pages!: number;
  detail!: object;
  version!: number;
}

/** A tree that keeps paths. */
class Folder {
  id!: number;
  name!: string;
  parent?: Folder | null;
  version!: number;
}

/** The same with a parent that is loaded when somebody asks for it. */
class LazyFolder {
  id!: number;
  parent?: Promise<LazyFolder | null>;
  version!: number;
}

/** One table for several classes, and a property for the column that tells them apart. */
class Pet {
  id!: number;
  kind!: string;
  name!: string;
  version!: number;
}

class Dog extends Pet {}

const id = { type: Number, primary: true } as const;
const version = { type: Number, version: true } as const;
const child = { target: 'LazyFolder', lazy: true } as const;

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
  new EntitySchema<Paper>({
    ...{ name: 'Paper', target: Paper, tableName: 'paper' },
    columns: { id, version, pages: { type: Number }, detail: { type: 'simple-json' } },
  }),
  new EntitySchema<Folder & { children: Folder[] }>({
    ...{ name: 'Folder', target: Folder, tableName: 'folder', trees: [{ type: 'materialized-path' }] },
    columns: { id, version, name: { type: String } },
    relations: {
      parent: { type: 'many-to-one', target: 'Folder', treeParent: true, inverseSide: 'children' },
      children: { type: 'one-to-many', target: 'Folder', treeChildren: true, inverseSide: 'parent' },
    },
  }),
  new EntitySchema<LazyFolder & { children: Promise<LazyFolder[]> }>({
    ...{ name: 'LazyFolder', target: LazyFolder, tableName: 'lazy_folder', columns: { id, version } },
    trees: [{ type: 'materialized-path' }],
    relations: {
      parent: { ...child, treeParent: true, inverseSide: 'children', type: 'many-to-one' },
      children: { ...child, treeChildren: true, inverseSide: 'parent', type: 'one-to-many' },
    },
  }),
  new EntitySchema<Pet>({
    ...{ name: 'Pet', target: Pet, tableName: 'pet', inheritance: { pattern: 'STI', column: 'kind' } },
    columns: { id, version, name: { type: String }, kind: { type: String } },
  }),
  new EntitySchema<Dog>({
    ...{ name: 'Dog', target: Dog, type: 'entity-child', discriminatorValue: 'dog', columns: {} },
  }),
];

type Save = (manager: EntityManager, entity: Payment | Transfer | Paper | Pet) => Promise<unknown>;
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

    it('[V21] are not all that is left as it is: a column that nobody changed is not written', async () => {
      const { manager } = dataSourceOf();
      const stored = '{"large":12345678901234567890}';
      for (const save of both) {
        await manager.clear(Paper);
        await manager.save(Object.assign(new Paper(), { id: 1, pages: 1, detail: {} }));
        await manager.query(`UPDATE paper SET detail = '${stored}'`);
        const loaded = await manager.findOneByOrFail(Paper, { id: 1 });
        await save(manager, Object.assign(loaded, { pages: 2 }));
        expect(await manager.query('SELECT pages, detail FROM paper')).toEqual([
          { pages: 2, detail: stored },
        ]);
        await save(manager, Object.assign(loaded, { detail: { large: 1 } }));
        expect(await manager.findOneByOrFail(Paper, { id: 1 })).toMatchObject({ detail: { large: 1 } });
      }
    });

    it('[V21] are refused where they keep a tree, of which the other columns are written', async () => {
      const { manager } = dataSourceOf();
      const [root, other] = [1, 2].map((n) => Object.assign(new Folder(), { id: n, name: 'root' }));
      const leaf = Object.assign(new Folder(), { id: 3, name: 'leaf', parent: root });
      await manager.save([root, other]);
      await manager.save(leaf);
      const loaded = await manager.findOneByOrFail(Folder, { id: 3 });
      expect(await compareAndSave(manager, Object.assign(loaded, { name: 'new' }))).toBe(true);
      const moved = compareAndSave(manager, Object.assign(loaded, { parent: other }));
      await expect(moved).rejects.toMatchObject({ code: 'invalid-argument' });
      const there = await manager.findOneOrFail(Folder, { where: { id: 3 }, relations: { parent: true } });
      expect(there).toMatchObject({ name: 'new', parent: { id: 1 } });
    });

    it('[V21] are refused where they keep a tree and are loaded when somebody asks', async () => {
      const { manager } = dataSourceOf();
      for (const n of [1, 2]) await manager.save(Object.assign(new LazyFolder(), { id: n }));
      const loaded = await manager.findOneByOrFail(LazyFolder, { id: 2 });
      const other = await manager.findOneByOrFail(LazyFolder, { id: 1 });
      loaded.parent = Promise.resolve(other);
      await expect(compareAndSave(manager, loaded)).rejects.toMatchObject({ code: 'invalid-argument' });
      expect(await (await manager.findOneByOrFail(LazyFolder, { id: 2 })).parent).toBeNull();
    });

    it('[V21] are not all that save() leaves alone: what class a row is of does not change', async () => {
      const { manager } = dataSourceOf();
      for (const save of both) {
        await manager.clear(Pet);
        await manager.save(Object.assign(new Dog(), { id: 1, name: 'a' }));
        const loaded = await manager.findOneByOrFail(Dog, { id: 1 });
        await save(manager, Object.assign(loaded, { kind: 'cat', name: 'b' }));
        expect(await manager.query('SELECT kind, name FROM pet')).toEqual([{ kind: 'dog', name: 'b' }]);
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
