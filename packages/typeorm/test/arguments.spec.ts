import { DataSource } from 'typeorm';
import type { MysqlConnection } from '../src/mariadb/connections.js';
import { typeormLocks, typeormRuns, typeormState } from '../src/index.js';
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
