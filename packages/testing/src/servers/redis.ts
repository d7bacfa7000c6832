/** Single Redis servers: one, or several that know nothing of each other. */
import { GuardError } from '@guard/core';
import { checkGiven, flag, texts, whole } from './arguments.js';
import { addressesIn, addressIn, type AddressForm } from './environment.js';
import { freePort, LOOPBACK } from './ports.js';
import type { Recipe } from './recipe.js';
import { controlAll, startTogether, type ServerGroup, type TestServer } from './server.js';
import { externalServer, startServer } from './start.js';
import { redisCommand, refusedLogin } from './wire.js';

/** Addresses of Redis. */
export const REDIS_ADDRESS: AddressForm = { schemes: ['redis'], defaultPort: 6379 };

/** What options of a Redis server may be. */
export const REDIS_CHECKS = { appendOnly: flag, args: texts };

const MAX_INDEPENDENT = 64;

/** How a Redis server is set up. */
export interface RedisOptions {
  /**
   * Whether every acknowledged write survives `kill` and `restart`: Redis then writes its log before it answers,
   * though it does not wait for the disk. Default `true`; `false` for measurements.
   */
  readonly appendOnly?: boolean;
  /** More arguments of `redis-server`, after Guard's own. */
  readonly args?: readonly string[];
}

/** One Redis server: from `GUARD_REDIS_URL`, or started. */
export async function startRedis(options: RedisOptions = {}): Promise<TestServer> {
  checkGiven('startRedis options', options, REDIS_CHECKS);
  const url = addressIn('GUARD_REDIS_URL', REDIS_ADDRESS);
  return url === undefined ? startOne('GUARD_REDIS_URL', options) : externalRedis('GUARD_REDIS_URL', url);
}

/** Independent servers, as a quorum needs them: from `GUARD_REDIS_URLS`, or started. Default: five. */
export async function startIndependentRedis(count = 5, options: RedisOptions = {}): Promise<ServerGroup> {
  whole(1, MAX_INDEPENDENT)('startIndependentRedis count', count);
  checkGiven('startIndependentRedis options', options, REDIS_CHECKS);
  const urls = addressesIn('GUARD_REDIS_URLS', REDIS_ADDRESS, count);
  const nodes = await startTogether(
    urls?.map((url) => externalRedis('GUARD_REDIS_URLS', url)) ??
      Array.from({ length: count }, () => startOne('GUARD_REDIS_URLS', options)),
  );
  return redisGroup(nodes);
}

/** Several servers as one service. */
export function redisGroup(nodes: readonly TestServer[]): ServerGroup {
  const [first] = nodes;
  if (first === undefined) throw new GuardError('invalid-argument', 'a group needs at least one server');
  return { kind: 'redis', version: first.version, source: first.source, nodes, ...controlAll(nodes) };
}

/** A server that somebody else runs. */
export function externalRedis(variable: string, url: URL): Promise<TestServer> {
  return externalServer('redis', variable, url, async () => {
    const info = String(await redisCommand(Number(url.port), ['INFO', 'server'], url));
    return /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown';
  });
}

/** The recipe of one server on a given port. */
export function redisRecipe(port: number, { appendOnly = true, args = [] }: RedisOptions): Recipe {
  return {
    kind: 'redis',
    port,
    program: 'redis-server',
    packages: ['redis-server'],
    args: (folder) => [
      ...['--port', String(port), '--bind', LOOPBACK, '--protected-mode', 'no', '--dir', folder],
      ...['--save', '', '--appendonly', appendOnly ? 'yes' : 'no', '--appendfsync', 'everysec'],
      ...args,
    ],
    data: ['appendonlydir', 'dump.rdb'],
    image: { variable: 'GUARD_REDIS_IMAGE', name: 'redis:7.4' },
    isReady: () => serves(port),
  };
}

function startOne(variable: string, options: RedisOptions): Promise<TestServer> {
  return startServer({
    variable,
    recipe: async () => redisRecipe(await freePort(), options),
    finish: (server) => server,
  });
}

async function serves(port: number): Promise<boolean> {
  try {
    await redisCommand(port, ['PING']);
    return true;
  } catch (error) {
    const refusal = refusedLogin(error);
    if (refusal === undefined) return false;
    throw new Error(
      `it asks for a password (${refusal}), which is not supported: leave requirepass out of args`,
      {
        cause: error,
      },
    );
  }
}
