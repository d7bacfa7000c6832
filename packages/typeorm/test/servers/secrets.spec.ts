/**
 * [S6] What a guard says never holds the password of the data source that it was handed: while all is well, after the
 * server ended its connections and lets nobody in, and while nothing listens.
 */
import { inspect } from 'node:util';
import { createGuard } from '@guard/core';
import { everythingSaid, secretsIn, startTcpProxy, type TcpProxy } from '@guard/testing';
import type { SqlServer } from '@guard/testing/servers';
import { ensureSchema, typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import { DataSource } from 'typeorm';
import { onMariadb } from '../support/mariadb.js';
import { onPostgres } from '../support/postgres.js';

const PASSWORD = 'geheim/p@ss';
const SECRETS = [PASSWORD, 'geheim'];

/** A user with the password: how it comes to be, and how it is thrown out. */
interface Users {
  readonly type: 'postgres' | 'mariadb';
  readonly on: { readonly server: SqlServer };
  readonly create: (admin: DataSource, user: string) => Promise<unknown>;
  readonly expel: (admin: DataSource, user: string) => Promise<unknown>;
}

const postgres: Users = {
  type: 'postgres',
  on: onPostgres(),
  create: (admin, user) => admin.query(`CREATE ROLE ${user} LOGIN SUPERUSER PASSWORD '${PASSWORD}'`),
  expel: async (admin, user) => {
    await admin.query(`ALTER ROLE ${user} NOLOGIN`);
    await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${user}'`);
  },
};

const mariadb: Users = {
  type: 'mariadb',
  on: onMariadb(),
  create: async (admin, user) => {
    await admin.query(`CREATE USER ${user}@'%' IDENTIFIED BY '${PASSWORD}'`);
    await admin.query(`GRANT ALL ON *.* TO ${user}@'%'`);
  },
  expel: async (admin, user) => {
    await admin.query(`ALTER USER ${user}@'%' ACCOUNT LOCK`);
    await admin.query(`KILL HARD USER ${user}`);
  },
};

async function saidAfter(
  { type, on, create }: Users,
  harm: (admin: DataSource, user: string, proxy: TcpProxy) => Promise<unknown>,
) {
  const { url, port } = on.server;
  const admin = await new DataSource({ type, url }).initialize();
  const user = `r${Date.now()}`;
  await create(admin, user);
  const proxy = await startTcpProxy({ target: { host: '127.0.0.1', port } });
  const address = new URL(url);
  Object.assign(address, {
    username: user,
    password: encodeURIComponent(PASSWORD),
    port: String(proxy.port),
  });
  const dataSource = await new DataSource({ type, url: address.href }).initialize();
  try {
    await ensureSchema(dataSource);
    const [locks, state, runs] = [
      typeormLocks(dataSource),
      typeormState(dataSource),
      typeormRuns(dataSource),
    ];
    const guard = createGuard({ locks, state, runs, namespace: user });
    await harm(admin, user, proxy);
    const said = await everythingSaid(guard);
    await Promise.all([locks.close(), state.close(), runs.close()]);
    return said;
  } finally {
    await dataSource.destroy();
    await proxy.close();
    await admin.destroy();
  }
}

it.each([postgres, mariadb])(
  '[S6] no secret of the data source is told on $type, whatever becomes of the server',
  async (users) => {
    const well = await saidAfter(users, async () => undefined);
    const refused = await saidAfter(users, users.expel);
    const alone = await saidAfter(users, (_admin, _user, proxy) => proxy.close());
    expect(inspect(well, { depth: 3 })).toContain('lock-granted');
    for (const said of [refused, alone]) expect(inspect(said, { depth: 3 })).toContain('[unavailable]');
    for (const said of [well, refused, alone]) expect(secretsIn(said, SECRETS)).toEqual([]);
  },
  120_000,
);
