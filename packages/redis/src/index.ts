/** The public surface of `@guard/redis`, written by hand: nothing is exported by accident. */
export { redisLocks } from './locks.js';
export type { RedisLocksOptions } from './locks.js';
export { redisState } from './state.js';
export { fromIoredis } from './ioredis.js';
export type { IoredisClient } from './ioredis.js';
export { fromNodeRedis } from './node-redis.js';
export type { NodeRedisClient } from './node-redis.js';
export type { Channel, RedisConnection, RedisConnectionOptions } from './connection.js';
