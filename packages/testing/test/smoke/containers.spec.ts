/**
 * Every server once in a container, through the same functions that start programs elsewhere. Run by
 * `npm run test:smoke`, which brings an engine and images.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Etcd3 } from 'etcd3';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import { Client } from 'pg';
import {
  startEtcd,
  startMariadb,
  startPgbouncer,
  startPostgres,
  startRedis,
  startRedisCluster,
  startRedisSentinel,
  type SqlServer,
} from '@guard/testing/servers';
import { freePort } from '../../src/servers/ports.js';
import { redisRecipe } from '../../src/servers/redis.js';
import { startServer } from '../../src/servers/start.js';

jest.setTimeout(120_000);

describe('In a container', () => {
  it('Redis serves a client, pauses, keeps its data over a crash and loses it on demand', async () => {
    await using redis = await startRedis();
    expect(redis).toMatchObject({ source: 'container', version: expect.stringMatching(/^\d+\.\d+/) });
    const client = new Redis(redis.url);
    client.on('error', () => undefined);
    await client.set('k', 'v');
    await redis.pause();
    const late = client.get('k');
    await redis.resume();
    expect(await late).toBe('v');
    await redis.kill();
    await redis.restart({ keepData: true });
    expect(await client.get('k')).toBe('v');
    await redis.restart({ keepData: false });
    expect(await client.get('k')).toBeNull();
    client.disconnect();
  });

  it('Redis is never somebody else’s server that took the port first: another port is tried', async () => {
    const squatter = createServer((socket) => {
      socket.on('error', () => undefined).on('data', () => socket.write('+PONG\r\n'));
    }).listen(0, '127.0.0.1');
    await once(squatter, 'listening');
    const taken = (squatter.address() as AddressInfo).port;
    const ports = [taken, await freePort()];
    await using redis = await startServer({
      variable: 'GUARD_REDIS_URL',
      recipe: async () => redisRecipe(ports.shift() ?? (await freePort()), {}),
      finish: (server) => server,
    });
    squatter.close();
    expect(redis.port).not.toBe(taken);
  });

  it('Redis with Sentinel names its master', async () => {
    await using service = await startRedisSentinel({ sentinels: 1 });
    expect(await service.masterPort()).toBe(service.servers[0]?.port);
  });

  it('Redis Cluster has its masters', async () => {
    await using cluster = await startRedisCluster({ replicas: 0 });
    expect(await cluster.masters()).toHaveLength(3);
  });

  it('etcd serves a client', async () => {
    await using etcd = await startEtcd();
    expect(etcd.source).toBe('container');
    const client = new Etcd3({ hosts: [...etcd.urls] });
    await client.put('k').value('v');
    expect(await client.get('k').string()).toBe('v');
    client.close();
  });

  it('Postgres serves a client, directly and behind PgBouncer', async () => {
    await using postgres = await startPostgres();
    await using pgbouncer = await startPgbouncer({ postgres });
    expect([postgres.source, pgbouncer.source]).toEqual(['container', 'container']);
    expect(await one(postgres)).toBe(1);
    expect(await one(pgbouncer)).toBe(1);
  });

  it('MariaDB serves a client', async () => {
    await using mariadb = await startMariadb();
    expect(mariadb.source).toBe('container');
    const { host, port, user, password, database } = mariadb;
    const connection = await createConnection({ host, port, user, password, database });
    const [rows] = await connection.query('SELECT 1 AS one');
    expect(rows).toEqual([{ one: 1 }]);
    await connection.end();
  });
});

async function one(server: SqlServer): Promise<unknown> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  const { rows } = await client.query<{ one: number }>('SELECT 1 AS one');
  await client.end();
  return rows[0]?.one;
}
