/** The same three replicas with locks on a real Redis and books in a real Postgres: needs a build, some ten seconds. */
import { startPostgres, startRedis } from '@guard/testing/servers';
import { Redis } from 'ioredis';
import { DataSource } from 'typeorm';
import { built, ended, start } from '../../../test/support/example.js';

built();

it('[S3] [S7] [L4] on Postgres and Redis each order is charged once, settled once, and transfers are fenced', async () => {
  await using redis = await startRedis();
  await using postgres = await startPostgres();
  // A database of its own: a server from outside may have been here before.
  const database = `billing_${process.pid}`;
  await using admin = await opened(postgres.url);
  await admin.db.query(`CREATE DATABASE ${database}`);
  const url = Object.assign(new URL(postgres.url), { pathname: `/${database}` }).href;

  const { code, output } = await ended(
    start('nest-billing', [], { POSTGRES_URL: url, REDIS_URL: redis.url }),
  );
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toContain('order-1 was asked for 3 times: 1 charge');
  expect(output).toMatch(/replica-[23] {2}charges order-2 \(takeover\)/);
  expect(output).toContain('The books are right.');

  await using books = await opened(url);
  const count = async (what: string): Promise<number> => {
    const rows = await books.db.query<{ n: string }[]>(`SELECT count(*) AS n FROM ${what}`);
    return Number(rows[0]?.n);
  };
  expect(await count(`charge WHERE "order" = 'order-1'`)).toBe(1);
  expect(await count('settlement')).toBe(
    await count('(SELECT DISTINCT instant FROM settlement) AS instants'),
  );
  // The token of the account's lock came from Redis, and was checked in Postgres, where no lock ever was.
  expect(await count(`guard_fence WHERE resource LIKE '%account%ada%'`)).toBe(1);
  expect(await count('guard_lock')).toBe(0);
  const client = new Redis(redis.url);
  expect((await client.keys('*')).filter((key) => key.includes('billing'))).not.toEqual([]);
  client.disconnect();
}, 120_000);

async function opened(url: string): Promise<{ readonly db: DataSource } & AsyncDisposable> {
  const db = await new DataSource({ type: 'postgres', url }).initialize();
  return { db, [Symbol.asyncDispose]: () => db.destroy() };
}
