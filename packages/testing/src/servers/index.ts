/**
 * The public surface of `@guard/testing/servers`: real servers for tests. Each comes from an address in the
 * environment, else from an installed program, else from a container, else there is an error that says what to do.
 */
export type {
  RestartOptions,
  ServerControl,
  ServerGroup,
  ServerKind,
  ServerSource,
  TestServer,
} from './server.js';
export { startRedis, startIndependentRedis } from './redis.js';
export type { RedisOptions } from './redis.js';
export { startRedisSentinel } from './redis-sentinel.js';
export type { RedisSentinel, RedisSentinelOptions } from './redis-sentinel.js';
export { startRedisCluster } from './redis-cluster.js';
export type { RedisCluster, RedisClusterOptions } from './redis-cluster.js';
export { startEtcd } from './etcd.js';
export type { EtcdGroup, EtcdOptions, EtcdTls } from './etcd.js';
export { startPgbouncer, startPostgres } from './postgres.js';
export type { PgbouncerOptions, PostgresOptions, SqlServer } from './postgres.js';
export { startMariadb } from './mariadb.js';
export type { MariadbOptions } from './mariadb.js';
