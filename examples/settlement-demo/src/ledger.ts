/**
 * The books: deliveries of payments, one posting for every merchant and occurrence, and the merchants' balances. No
 * unique index guards the postings: what keeps them right is the fence alone, so that its absence shows.
 *
 * TypeORM has one SQLite connection per data source, and what runs on it at the same time shares one transaction;
 * so transactions of one process wait for each other here.
 */
import { DataSource, EntitySchema, type EntityManager } from 'typeorm';
import { type Delivery, MERCHANTS } from './payments.js';

/** One line of the books: so much was paid out to a merchant for an occurrence. */
export interface Posting {
  readonly occurrence: number;
  readonly merchant: number;
  readonly cents: number;
  /** Who wrote the line. */
  readonly node: string;
}

/** What a merchant has got in all. */
export interface Balance {
  readonly merchant: number;
  readonly cents: number;
}

/** What a merchant has still to get for an occurrence. */
export type Owed = Omit<Posting, 'node'>;

/** Rows of one INSERT; SQLite takes some 30,000 parameters in a statement. */
const ROWS_PER_INSERT = 1_000;

const id = { type: 'integer', primary: true, generated: 'increment' } as const;
const integer = { type: 'integer' } as const;
const text = { type: 'text' } as const;

const deliveries = new EntitySchema<Delivery & { readonly id: number }>({
  name: 'Delivery',
  tableName: 'delivery',
  columns: { id, payment: text, merchant: integer, occurrence: integer, cents: integer },
  indices: [{ columns: ['payment'] }, { columns: ['occurrence'] }],
});
const postings = new EntitySchema<Posting & { readonly id: number }>({
  name: 'Posting',
  tableName: 'posting',
  columns: { id, occurrence: integer, merchant: integer, cents: integer, node: text },
  indices: [{ columns: ['occurrence', 'merchant'] }],
});
const balances = new EntitySchema<Balance>({
  name: 'Balance',
  tableName: 'balance',
  columns: { merchant: { type: 'integer', primary: true }, cents: integer },
});

/** Payments of an occurrence by merchant: each where it came first, and without merchants who got theirs. */
const OWED = `
  SELECT occurrence, merchant, SUM(cents) AS cents
  FROM delivery AS d
  WHERE occurrence = ?
    AND NOT EXISTS (SELECT 1 FROM delivery AS e WHERE e.payment = d.payment AND e.id < d.id)
    AND NOT EXISTS (SELECT 1 FROM posting AS p WHERE p.occurrence = d.occurrence AND p.merchant = d.merchant)
  GROUP BY occurrence, merchant
  ORDER BY merchant`;

/** The ledger as one process sees it. */
export class Ledger {
  private last: Promise<unknown> = Promise.resolve();

  private constructor(readonly dataSource: DataSource) {}

  /** Opens the ledger in a file. */
  static async open(file: string, { create = false } = {}): Promise<Ledger> {
    const dataSource = new DataSource({
      type: 'better-sqlite3',
      database: file,
      enableWAL: true,
      entities: [deliveries, postings, balances],
      synchronize: create,
    });
    return new Ledger(await dataSource.initialize());
  }

  /** Writes what has to be settled, and a balance of zero for everybody. */
  async fill(rows: readonly Delivery[]): Promise<void> {
    await this.transaction(async (manager) => {
      for (let start = 0; start < rows.length; start += ROWS_PER_INSERT) {
        await manager.insert(deliveries, rows.slice(start, start + ROWS_PER_INSERT));
      }
      const merchants = Array.from({ length: MERCHANTS }, (_, index) => index + 1);
      await manager.insert(
        balances,
        merchants.map((merchant) => ({ merchant, cents: 0 })),
      );
    });
  }

  /** Runs `work` in a transaction, after those that this process began before. */
  transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.alone(() => this.dataSource.transaction(work));
  }

  /** Runs `work` while this process has no transaction open. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.last.then(work);
    this.last = result.catch(() => undefined);
    return result;
  }

  /** Every line, in the order of writing. */
  async postings(): Promise<readonly Posting[]> {
    return this.dataSource.getRepository(postings).find({ order: { id: 'ASC' } });
  }

  /** Every balance. */
  async balances(): Promise<readonly Balance[]> {
    return this.dataSource.getRepository(balances).find();
  }

  /** Closes the file, after the transactions that go on. */
  async close(): Promise<void> {
    await this.alone(() => this.dataSource.destroy());
  }
}

/** What is still to be paid for an occurrence. */
export async function owedIn(manager: EntityManager, occurrence: number): Promise<readonly Owed[]> {
  return manager.query<Owed[]>(OWED, [occurrence]);
}

/** Pays: a line in the books, and the balance. */
export async function pay(manager: EntityManager, owed: readonly Owed[], node: string): Promise<void> {
  await manager.insert(
    postings,
    owed.map((line) => ({ ...line, node })),
  );
  for (const { merchant, cents } of owed) await manager.increment(balances, { merchant }, 'cents', cents);
}
