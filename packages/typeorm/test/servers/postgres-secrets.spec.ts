/**
 * [S6] What a guard says never holds the password of the data source that it was handed: while all is well, after the
 * server ended its connections and lets nobody in, and while nothing listens.
 */
import { inspect } from 'node:util';
import { createGuard } from '@guard/core';
import { everythingSaid, secretsIn, startTcpProxy, type TcpProxy } from '@guard/testing';
import { ensureSchema, typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import { DataSource } from 'typeorm';
import { onPostgres } from '../support/postgres.js';

const PASSWORD = 'geheim/p@ss';
const SECRETS = [PASSWORD, 'geheim'];

const postgres = onPostgres();

async function saidAfter(harm: (admin: DataSource, role: string, proxy: TcpProxy) => Promise<unknown>) {
  const { url, port } = postgres.server;
  const admin = await new DataSource({ type: 'postgres', url }).initialize();
  const role = `r${Date.now()}`;
  await admin.query(`CREATE ROLE ${role} LOGIN SUPERUSER PASSWORD '${PASSWORD}'`);
  const proxy = await startTcpProxy({ target: { host: '127.0.0.1', port } });
  const address = new URL(url);
  Object.assign(address, {
    username: role,
    password: encodeURIComponent(PASSWORD),
    port: String(proxy.port),
  });
  const dataSource = await new DataSource({ type: 'postgres', url: address.href }).initialize();
  try {
    await ensureSchema(dataSource);
    const [locks, state, runs] = [
      typeormLocks(dataSource),
      typeormState(dataSource),
      typeormRuns(dataSource),
    ];
    const guard = createGuard({ locks, state, runs, namespace: role });
    await harm(admin, role, proxy);
    const said = await everythingSaid(guard);
    await Promise.all([locks.close(), state.close(), runs.close()]);
    return said;
  } finally {
    await dataSource.destroy();
    await proxy.close();
    await admin.destroy();
  }
}

it('[S6] no secret of the data source is told, whatever becomes of the server', async () => {
  const well = await saidAfter(async () => undefined);
  const refused = await saidAfter(async (admin, role) => {
    await admin.query(`ALTER ROLE ${role} NOLOGIN`);
    await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`);
  });
  const alone = await saidAfter((_admin, _role, proxy) => proxy.close());
  expect(inspect(well, { depth: 3 })).toContain('lock-granted');
  for (const said of [refused, alone]) expect(inspect(said, { depth: 3 })).toContain('[unavailable]');
  for (const said of [well, refused, alone]) expect(secretsIn(said, SECRETS)).toEqual([]);
}, 120_000);
