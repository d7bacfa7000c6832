// Compiled, never run: the published types with every supported compiler, libraries checked too.
import { createGuard, kvRuns, memoryLocks, type Lock, type LockBackend } from '@guard/core';
import { redisLocks, redisState } from '@guard/redis';
import { fromIoredis } from '@guard/redis/ioredis';
import { fromNodeRedis } from '@guard/redis/node-redis';
import { startTcpProxy, type TcpProxy } from '@guard/testing';
import { startRedis } from '@guard/testing/servers';
import { guardMigrations, typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import { Redis } from 'ioredis';
import { Redis as Redis6 } from 'ioredis6';
import { createClient } from 'redis';
import { createClient as createClient6 } from 'redis6';
import { DataSource } from 'typeorm';

const guard = createGuard({ locks: memoryLocks(), namespace: 'consumer' });

export async function proxied(): Promise<{ lock: Lock; proxy: TcpProxy }> {
  const { host, port } = await startRedis();
  return {
    lock: await guard.acquire('k', { ttl: '5s' }),
    proxy: await startTcpProxy({ target: { host, port } }),
  };
}

// Each client as it is typed by its library, without a cast.
export const onRedis: readonly LockBackend[] = [
  redisLocks(fromIoredis(new Redis())),
  redisLocks(fromIoredis(new Redis6())),
  redisLocks(fromIoredis(new Redis.Cluster(['redis://127.0.0.1:7000']))),
  redisLocks(fromNodeRedis(createClient())),
  redisLocks(fromNodeRedis(createClient6())),
];
export const runs = kvRuns(redisState(fromIoredis(new Redis())));

const db = new DataSource({
  type: 'better-sqlite3',
  database: 'app.sqlite',
  migrations: [...guardMigrations()],
});
export const onSql = createGuard({
  locks: typeormLocks(db),
  state: typeormState(db),
  runs: typeormRuns(db),
});
