/** What places are called, and stores of one SQLite file that differ in their tables. */
import { createGuard, memoryLocks } from '@guard/core';
import type * as adapter from '@guard/typeorm';
import {
  completeRun,
  ensureSchema,
  typeormLocks,
  typeormRuns,
  typeormState,
  type TypeormTableOptions,
} from '@guard/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { newFile } from './support/file.js';
import { describePlaces, recordsIn } from './support/place-cases.js';

jest.setTimeout(60_000);

describePlaces('SQLite', { newPlace: async () => newFile(), poolOfOne: {} });

describe('two copies of the package in one process', () => {
  it('know where each other has the tables of runs', async () => {
    const place = newFile();
    const dataSource = await place.dataSource({});
    await ensureSchema(dataSource, { prefix: 'x_' });
    let copy: typeof adapter | undefined;
    jest.isolateModules(() => {
      copy = jest.requireActual<typeof adapter>('@guard/typeorm');
    });
    expect(copy!.completeRun).not.toBe(completeRun);
    const guard = createGuard({ locks: memoryLocks(), runs: typeormRuns(dataSource, { prefix: 'x_' }) });
    await guard.run('t', { key: 'k' }, () => dataSource.transaction((manager) => copy!.completeRun(manager)));
    await dataSource.transaction((manager) => copy!.createRun(manager, guard, 't', { key: 'l' }));
    expect(await recordsIn(dataSource, 'x_run')).toEqual(['k completed', 'l pending']);
    await guard.close();
    await place.close();
  });
});

const server = { host: 'db', database: 'app' } as const;
const stores = [typeormLocks, typeormState, typeormRuns];

function namesOf(source: DataSourceOptions, options?: TypeormTableOptions): string[] {
  const dataSource = new DataSource(source);
  return [...new Set(stores.map((store) => store(dataSource, options).name))];
}

describe('the name of a place', () => {
  it('tells schemas and prefixes of a server apart, and is the bare database for the usual ones', () => {
    const postgres = { type: 'postgres', ...server } as const;
    expect(namesOf(postgres)).toEqual(['postgres:db:5432/app']);
    expect(namesOf(postgres, { schema: 'public', prefix: 'guard_' })).toEqual(['postgres:db:5432/app']);
    expect(namesOf({ ...postgres, schema: 'public' })).toEqual(['postgres:db:5432/app']);
    expect(namesOf({ ...postgres, schema: '' })).toEqual(['postgres:db:5432/app']);
    expect(namesOf({ ...postgres, schema: 'a' })).toEqual(['postgres:db:5432/app?schema=a']);
    expect(namesOf(postgres, { schema: 'a' })).toEqual(['postgres:db:5432/app?schema=a']);
    expect(namesOf({ ...postgres, schema: 'a' }, { schema: 'b&prefix=x_' })).toEqual([
      'postgres:db:5432/app?schema=b%26prefix%3Dx_',
    ]);
    expect(namesOf(postgres, { prefix: 'x_' })).toEqual(['postgres:db:5432/app?prefix=x_']);
    expect(namesOf(postgres, { name: 'main', schema: 'a', prefix: 'x_' })).toEqual([
      'main?schema=a&prefix=x_',
    ]);
    const mariadb = { type: 'mariadb', ...server } as const;
    expect(namesOf(mariadb, { prefix: 'x_' })).toEqual(['mariadb:db:3306/app?prefix=x_']);
  });

  it('is one for a database that is named by an address or by its parts, and no database takes that of another', () => {
    const url = 'postgres://u:secret@db/my%20app';
    expect(namesOf({ type: 'postgres', url })).toEqual(
      namesOf({ type: 'postgres', ...server, database: 'my app' }),
    );
    expect(namesOf({ type: 'postgres', ...server, database: 'app?prefix=x_' })).not.toEqual(
      namesOf({ type: 'postgres', ...server }, { prefix: 'x_' }),
    );
  });

  it('[S6] is read out of every address that the drivers take, and never holds its login', () => {
    const names: Readonly<Record<string, string>> = {
      'mariadb://u:pa#ss@db/app': 'mariadb:db:3306/app',
      'mariadb://u:pa?ss@db:3307/app?x=1': 'mariadb:db:3307/app',
      'mariadb://u:p@ss@db/app': 'mariadb:db:3306/app',
      'mariadb://u:pa/ss@db/app': 'mariadb:db:3306/app',
      'mariadb://u:12/ss@db/app': 'mariadb:db:3306/app',
      'mariadb://u/ss@db/app': 'mariadb:db:3306/app',
      'mariadb://db/a@b': 'mariadb:db:3306/a@b',
      'mariadb://db': 'mariadb:db:3306/',
      'postgres://u:p@[::1]:6432/app': 'postgres:[::1]:6432/app',
      'postgresql://u:p@Db/app?application_name=a@b': 'postgres:Db:5432/app',
      'postgres://u:p@db/app?host=other&port=6432': 'postgres:other:6432/app',
      'postgres://u:p@db': 'postgres:db:5432/u',
      'no address': 'postgres:no address:5432/',
    };
    for (const [url, name] of Object.entries(names)) {
      const type = name.startsWith('postgres') ? 'postgres' : 'mariadb';
      expect({ url, names: namesOf({ type, url }) }).toEqual({ url, names: [name] });
    }
  });

  it('[S2] tells servers apart that are reached by a socket, however the socket is named', () => {
    const socket = (folder: string): readonly DataSourceOptions[] => [
      { type: 'postgres', host: folder, database: 'app' },
      { type: 'postgres', url: `postgres:///app?host=${folder}` },
      { type: 'postgres', url: `postgres://u:p@/app?host=${folder}` },
      { type: 'postgres', url: `postgres://u:p@${encodeURIComponent(folder)}/app` },
      { type: 'postgres', url: `socket:${folder}?db=app` },
      { type: 'postgres', database: 'app', extra: { host: folder } },
      { type: 'postgres', extra: { connectionString: `postgres:///app?host=${folder}` } },
      { type: 'postgres', replication: { master: { host: folder, database: 'app' }, slaves: [] } },
    ];
    for (const folder of ['/run/a', '/run/b']) {
      for (const options of socket(folder)) expect(namesOf(options)).toEqual([`postgres:${folder}:5432/app`]);
    }
    for (const socketPath of ['/run/a.sock', '/run/b.sock']) {
      const name = `mariadb:${socketPath}/app`;
      const mariadb = { type: 'mariadb', database: 'app' } as const;
      expect(namesOf({ ...mariadb, socketPath })).toEqual([name]);
      expect(namesOf({ ...mariadb, extra: { socketPath } })).toEqual([name]);
      const replication = { master: { socketPath, database: 'app' }, slaves: [], restoreNodeTimeout: 1_000 };
      expect(namesOf({ type: 'mariadb', replication })).toEqual([name]);
    }
  });

  it('[S2] tells databases of Postgres apart that are named after their users', () => {
    expect(namesOf({ type: 'postgres', host: 'db', username: 'a' })).toEqual(['postgres:db:5432/a']);
    expect(namesOf({ type: 'postgres', host: 'db', extra: { user: 'b' } })).toEqual(['postgres:db:5432/b']);
  });

  it('has no prefix where SQLite keeps locks and state in one file for all, and one spelling for one table', () => {
    const dataSource = new DataSource({ type: 'better-sqlite3', database: '/none/app.sqlite' });
    for (const store of [typeormLocks, typeormState]) {
      expect(store(dataSource, { prefix: 'x_' }).name).toBe('sqlite:/none/app.sqlite-guard');
    }
    expect(typeormRuns(dataSource, { prefix: 'X_' }).name).toBe('sqlite:/none/app.sqlite?prefix=x_');
    expect(typeormRuns(dataSource, { prefix: 'GUARD_' }).name).toBe('sqlite:/none/app.sqlite');
  });
});
