/**
 * The public surface of `@guard/redis`, written by hand: nothing is exported by accident. A subpath for each client library
 * makes a connection of it: `@guard/redis/ioredis`, `@guard/redis/node-redis`.
 */
export { redisLocks } from './locks.js';
export type { RedisLocksOptions } from './locks.js';
export { redisState } from './state.js';
export type { Channel, RedisConnection, RedisConnectionOptions } from './connection.js';
