import { DataSource } from 'typeorm';
import type { MysqlConnection } from '../src/mariadb/connections.js';
import {
  assertFence,
  ensureSchema,
  guardEntities,
  guardMigrations,
  typeormLocks,
  typeormRuns,
  typeormState,
} from '../src/index.js';
import { claim } from './support/locking.js';

const code = expect.objectContaining({ code: 'invalid-argument' });
const db = new DataSource({ type: 'better-sqlite3', database: 'never-opened.sqlite' });
const factories = [typeormLocks, typeormState, typeormRuns] as unknown as ((...args: unknown[]) => unknown)[];

describe('what is no data source, and options that do not exist', () => {
  it('are refused before any file is opened', () => {
    for (const factory of factories) {
      for (const source of [undefined, null, 5, {}]) expect(() => factory(source)).toThrow(code);
      for (const options of [null, 5, { unknown: 1 }]) expect(() => factory(db, options)).toThrow(code);
    }
    expect(() => typeormRuns(db, { prefix: 'a"b' })).toThrow(code);
  });
});

describe('a MariaDB with replication', () => {
  const master = { host: 'db', database: 'app' };
  const sourceWith = (restoreNodeTimeout: unknown): DataSource =>
    new DataSource({
      type: 'mariadb',
      replication: { master, slaves: [master], restoreNodeTimeout: restoreNodeTimeout as number },
    });

  it('is refused where one outage would put it out for good, with what to set', () => {
    for (const none of [undefined, 0, -1, Number.NaN, Infinity, '1000']) {
      for (const factory of factories) {
        expect(() => factory(sourceWith(none))).toThrow(
          expect.objectContaining({
            ...code.sample,
            message: expect.stringMatching(/restoreNodeTimeout must be a positive number .* such as 1000/),
          }),
        );
      }
    }
    for (const factory of factories) expect(factory(sourceWith(1_000))).toBeDefined();
  });
});

describe('a Postgres whose connections answer in binary', () => {
  it('[S6] is refused by name before anything is asked of it', async () => {
    const source = new DataSource({ type: 'postgres', extra: { binary: true } });
    const refused = expect.objectContaining({
      ...code.sample,
      message: expect.stringContaining('dataSource.options.extra.binary must not be set'),
    });
    for (const factory of factories) expect(() => factory(source)).toThrow(refused);
    await expect(ensureSchema(source)).rejects.toEqual(refused);
    const plain = new DataSource({ type: 'postgres', extra: { binary: false } });
    for (const factory of factories) expect(factory(plain)).toBeDefined();
  });
});

describe('options that are not what they should be', () => {
  const tables = [
    { schema: '' },
    { schema: 5 },
    { schema: 'a\0b' },
    { schema: 'a\ud800' },
    { schema: 'é'.repeat(32) },
    { prefix: '' },
    { prefix: 7 },
    { prefix: null },
    { shema: 'x' },
  ] as unknown as { readonly schema: string }[];
  const clocks = [{}, null, 5, { now: () => 0 }];

  it('are refused by every store, with their name', () => {
    const bad: Readonly<Record<string, readonly unknown[]>> = {
      name: [5, '', null, 'a\0b', '\udc00', 'x'.repeat(513)],
      clock: clocks,
      random: [...clocks, { id: () => '' }],
      machineTime: [3, {}, { nowMs: () => 0 }, { boot: 5, nowMs: () => 0 }],
    };
    for (const factory of factories) {
      for (const options of tables) expect(() => factory(db, options)).toThrow(code);
      for (const [option, values] of Object.entries(bad)) {
        for (const value of values) {
          expect(() => factory(db, { [option]: value })).toThrow(
            expect.objectContaining({ ...code.sample, message: expect.stringContaining(option) }),
          );
        }
      }
    }
  });

  it('are refused where they do nothing: only Postgres has schemas', async () => {
    const schema = 'app';
    const refused = /schema must not be given for .*: only Postgres has schemas/;
    const mariadb = new DataSource({ type: 'mariadb', host: 'db', database: 'app' });
    for (const source of [db, mariadb]) {
      for (const factory of factories) expect(() => factory(source, { schema })).toThrow(refused);
      await expect(ensureSchema(source, { schema })).rejects.toThrow(refused);
      const manager = { queryRunner: { isTransactionActive: true }, connection: source } as never;
      const lock = { fullKey: 'k', backendName: 'b' } as never;
      await expect(assertFence(manager, lock, { schema })).rejects.toThrow(refused);
      const [Tables] = guardMigrations({ schema });
      await expect(new Tables!().up({ connection: source } as never)).rejects.toThrow(refused);
    }
    for (const type of ['better-sqlite3', 'mariadb', 'mysql'] as const) {
      expect(() => guardEntities({ type, schema })).toThrow(refused);
    }
  });

  it('are refused by assertFence, ensureSchema, guardMigrations and guardEntities too', async () => {
    for (const options of tables) {
      expect(() => guardMigrations(options)).toThrow(code);
      expect(() => guardEntities({ type: 'postgres', ...options })).toThrow(code);
      await expect(ensureSchema(db, options)).rejects.toThrow(code);
      await expect(assertFence(undefined as never, undefined as never, options)).rejects.toMatchObject({
        code: 'invalid-argument',
        message: expect.stringMatching(/schema|prefix/),
      });
    }
  });
});

/** A data source whose server says that it is this version. MySQL does not know all that a MariaDB is asked for. */
function speaking(version: string): DataSource {
  const unknown = Object.assign(new Error("Unknown system variable 'tx_isolation'"), {
    errno: 1193,
    sqlState: 'HY000',
  });
  const connection: MysqlConnection = {
    execute: ({ sql }, done) =>
      sql.includes('tx_isolation') && !version.includes('MariaDB')
        ? done(unknown, [])
        : done(null, [{ version }]),
    release: () => undefined,
    destroy: () => undefined,
  };
  const driver = { pool: {}, obtainMasterConnection: async () => connection };
  return { options: { type: 'mysql', host: 'db', database: 'app' }, driver } as unknown as DataSource;
}

describe('a server that is none of those that are supported', () => {
  it.each(['8.0.36', '5.7.44-log', '10.5.23-MariaDB', '5.5.5-10.4.32-MariaDB'])(
    'is refused by its version at the first use, and nothing is written: %s',
    async (version) => {
      const [answer] = await typeormLocks(speaking(version)).acquire([claim()]);
      expect(answer).toMatchObject({
        status: 'failed',
        cause: {
          code: 'invalid-argument',
          message: expect.stringContaining(
            `mariadb:db:3306/app is ${version}: @guard/typeorm needs MariaDB 10.6 or later`,
          ),
        },
      });
      await expect(typeormState(speaking(version)).read(['k'])).rejects.toMatchObject({
        code: 'invalid-argument',
      });
    },
  );
});
