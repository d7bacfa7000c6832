/** Redis with Sentinel: a master, its replicas, and the sentinels that put a replica in its place. */
import { GuardError } from '@guard/core';
import { checkGiven, whole } from './arguments.js';
import { addressesIn, type AddressForm } from './environment.js';
import { freePort, LOOPBACK } from './ports.js';
import type { Recipe } from './recipe.js';
import { firstAnswer } from './redis-cluster.js';
import { externalRedis, REDIS_CHECKS, redisGroup, redisRecipe, type RedisOptions } from './redis.js';
import { orStop, startTogether, type ServerGroup, type TestServer } from './server.js';
import { startServer } from './start.js';
import { eventually } from './until-ready.js';
import { redisCommand } from './wire.js';

const VARIABLE = 'GUARD_REDIS_SENTINEL_URLS';
const NAME_VARIABLE = 'GUARD_REDIS_SENTINEL_NAME';
const SENTINEL_ADDRESS: AddressForm = { schemes: ['redis'], defaultPort: 26379 };
const CONFIG = 'sentinel.conf';
const CHECKS = {
  ...REDIS_CHECKS,
  replicas: whole(0, 8),
  sentinels: whole(1, 32),
  downAfterMs: whole(1, 3_600_000),
};

/** How it is set up. */
export interface RedisSentinelOptions extends RedisOptions {
  /** Replicas of the master. Default 1. */
  readonly replicas?: number;
  /** Default 3; more than half of them have to agree on a new master. */
  readonly sentinels?: number;
  /** After this silence a sentinel takes the master for dead. Default 1000. */
  readonly downAfterMs?: number;
}

/** The service, and its two kinds of servers: `nodes` holds all of them. */
export interface RedisSentinel extends ServerGroup {
  /** The name under which sentinels know the master. */
  readonly masterName: string;
  readonly sentinels: readonly TestServer[];
  /** Master and replicas, as they were started. Empty where the servers come from the environment. */
  readonly servers: readonly TestServer[];
  /** The port of the master that the sentinels name now. */
  masterPort(): Promise<number>;
}

/** Redis with Sentinel: from `GUARD_REDIS_SENTINEL_URLS` and `GUARD_REDIS_SENTINEL_NAME`, or started. */
export async function startRedisSentinel(options: RedisSentinelOptions = {}): Promise<RedisSentinel> {
  checkGiven('startRedisSentinel options', options, CHECKS);
  const urls = addressesIn(VARIABLE, SENTINEL_ADDRESS);
  if (urls !== undefined) {
    const masterName = process.env[NAME_VARIABLE];
    if (!masterName) throw new GuardError('invalid-argument', `${VARIABLE} needs ${NAME_VARIABLE} beside it`);
    const sentinels = await startTogether(urls.map((url) => externalRedis(VARIABLE, url)));
    return service(masterName, sentinels, []);
  }
  const started: TestServer[] = [];
  return orStop(started, () => startAll(options, started));
}

async function startAll(options: RedisSentinelOptions, started: TestServer[]): Promise<RedisSentinel> {
  const { replicas = 1, sentinels: wanted = 3, downAfterMs = 1_000 } = options;
  const start = async (recipe: (port: number) => Recipe): Promise<TestServer> => {
    const server = await startServer({
      variable: VARIABLE,
      recipe: async () => recipe(await freePort()),
      finish: (each) => each,
    });
    started.push(server);
    return server;
  };
  const many = (count: number, recipe: (port: number) => Recipe): Promise<TestServer[]> =>
    startTogether(Array.from({ length: count }, () => start(recipe)));

  const atOnce = ['--repl-diskless-sync-delay', '0', ...(options.args ?? [])];
  const master = await start((port) => redisRecipe(port, { ...options, args: atOnce }));
  const follow = ['--replicaof', master.host, String(master.port)];
  const followers = await many(replicas, (port) =>
    redisRecipe(port, { ...options, args: [...follow, ...atOnce] }),
  );
  await Promise.all(followers.map(untilFollowing));
  const config = sentinelConfig(master.port, Math.floor(wanted / 2) + 1, downAfterMs);
  const sentinels = await many(wanted, (port) => sentinelRecipe(port, config));
  await Promise.all(sentinels.map(hasten));
  await Promise.all(sentinels.map((sentinel) => untilInformed(sentinel, replicas, wanted)));
  return service('guard', sentinels, [master, ...followers]);
}

function service(
  masterName: string,
  sentinels: readonly TestServer[],
  servers: readonly TestServer[],
): RedisSentinel {
  const masterPort = (): Promise<number> =>
    eventually('an answer of a sentinel', async () => {
      const reply = await firstAnswer(sentinels, ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName]);
      return Array.isArray(reply) ? Number(reply[1]) : undefined;
    });
  return { ...redisGroup([...servers, ...sentinels]), masterName, sentinels, servers, masterPort };
}

function sentinelRecipe(port: number, config: string): Recipe {
  return {
    ...redisRecipe(port, {}),
    // Sentinel rewrites its configuration, so it is a file and not arguments.
    files: () => ({ [CONFIG]: config }),
    args: (folder) => [
      ...[`${folder}/${CONFIG}`, '--sentinel'],
      ...['--port', String(port), '--bind', LOOPBACK, '--protected-mode', 'no', '--dir', folder],
    ],
    data: [CONFIG],
  };
}

function sentinelConfig(masterPort: number, quorum: number, downAfterMs: number): string {
  return [
    `sentinel monitor guard ${LOOPBACK} ${masterPort} ${quorum}`,
    `sentinel down-after-milliseconds guard ${downAfterMs}`,
    `sentinel failover-timeout guard ${Math.max(3 * downAfterMs, 3_000)}`,
    'sentinel parallel-syncs guard 1',
    '',
  ].join('\n');
}

/** Sentinels look around every 2 and 10 seconds; a test cannot wait for that. Redis 7 and later know the command. */
async function hasten({ port }: TestServer): Promise<void> {
  const periods = ['INFO-PERIOD', '500', 'PUBLISH-PERIOD', '200', 'ASK-PERIOD', '500'];
  await redisCommand(port, ['SENTINEL', 'DEBUG', ...periods]).catch(() => undefined);
}

function untilFollowing({ port }: TestServer): Promise<unknown> {
  return eventually('the replica follows its master', async () => {
    const info = String(await redisCommand(port, ['INFO', 'replication']));
    return info.includes('master_link_status:up') ? true : undefined;
  });
}

/** A sentinel that does not know the replica, or its peers, could not replace the master. */
function untilInformed({ port }: TestServer, replicas: number, sentinels: number): Promise<unknown> {
  return eventually('the sentinel knows replicas and peers', async () => {
    const info = String(await redisCommand(port, ['INFO', 'sentinel']));
    return info.includes(`slaves=${replicas},sentinels=${sentinels}`) ? true : undefined;
  });
}
