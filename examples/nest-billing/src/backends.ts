/**
 * Where everything is kept: Postgres by `POSTGRES_URL`, else embedded SQLite in the file of `BILLING_FILE`; locks on
 * Redis by `REDIS_URL`, else in the database. Runs are always in the database, beside the books.
 */
import type { GuardModuleOptions } from '@guard/nestjs';
import { redisLocks } from '@guard/redis';
import { fromIoredis } from '@guard/redis/ioredis';
import { ensureSchema, typeormLocks, typeormRuns } from '@guard/typeorm';
import type { TypeOrmModuleOptions } from '@nestjs/typeorm';
import { Redis } from 'ioredis';
import type { DataSource } from 'typeorm';
import { Account, Charge, Settlement } from './entities.js';

const { POSTGRES_URL, REDIS_URL, BILLING_FILE = 'billing.sqlite', REPLICA = 'replica' } = process.env;
const entities = [Account, Charge, Settlement];

/** The name of this replica. */
export const replica = REPLICA;

/** The client of the locks, which the application closes; `undefined`: they are in the database. */
export const redis = REDIS_URL === undefined ? undefined : new Redis(REDIS_URL);

/** Options of TypeORM. One process makes the tables, before the others start. */
export function databaseOptions(synchronize: boolean): TypeOrmModuleOptions {
  if (POSTGRES_URL !== undefined) return { type: 'postgres', url: POSTGRES_URL, entities, synchronize };
  return { type: 'better-sqlite3', database: BILLING_FILE, enableWAL: true, entities, synchronize };
}

/** Options of the guard. Leases are short, so that a takeover can be watched. */
export async function guardOptions(dataSource: DataSource): Promise<GuardModuleOptions> {
  await ensureSchema(dataSource);
  return {
    locks: redis === undefined ? typeormLocks(dataSource) : redisLocks(fromIoredis(redis)),
    runs: typeormRuns(dataSource),
    namespace: 'billing',
    node: { label: replica },
    defaults: { ttl: '2s', wait: '10s' },
    sweepInterval: '1s',
    grace: '5s',
  };
}
