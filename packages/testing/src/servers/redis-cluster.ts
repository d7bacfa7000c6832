/** Redis Cluster: masters that share the 16,384 slots, each with replicas. */
import { checkGiven, whole } from './arguments.js';
import { addressesIn } from './environment.js';
import { freePort } from './ports.js';
import {
  externalRedis,
  REDIS_ADDRESS,
  REDIS_CHECKS,
  redisGroup,
  redisRecipe,
  type RedisOptions,
} from './redis.js';
import { orStop, startTogether, type ServerGroup, type TestServer } from './server.js';
import { startServer } from './start.js';
import { eventually } from './until-ready.js';
import { redisCommand } from './wire.js';

const SLOTS = 16_384;
/** Members talk to each other on their port and this. */
const BUS = 10_000;
const VARIABLE = 'GUARD_REDIS_CLUSTER_URLS';
const CHECKS = {
  ...REDIS_CHECKS,
  masters: whole(1, 32),
  replicas: whole(0, 8),
  nodeTimeoutMs: whole(1, 3_600_000),
};

/** How a cluster is set up. */
export interface RedisClusterOptions extends RedisOptions {
  /** Default 3. */
  readonly masters?: number;
  /** Replicas of each master. Default 1. */
  readonly replicas?: number;
  /** After this silence a member takes another one for dead. Default 2000. */
  readonly nodeTimeoutMs?: number;
}

/** A cluster. Its nodes can be killed and restarted one by one; without data, a node keeps its place. */
export interface RedisCluster extends ServerGroup {
  /** The nodes that are masters now, as the first node that answers says. */
  masters(): Promise<TestServer[]>;
}

/** A cluster: from `GUARD_REDIS_CLUSTER_URLS`, or started. */
export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  checkGiven('startRedisCluster options', options, CHECKS);
  const urls = addressesIn(VARIABLE, REDIS_ADDRESS);
  if (urls !== undefined)
    return cluster(await startTogether(urls.map((url) => externalRedis(VARIABLE, url))));
  const { masters = 3, replicas = 1 } = options;
  const starts = Array.from({ length: masters * (1 + replicas) }, () => startNode(options));
  const nodes = await startTogether(starts);
  return orStop(nodes, async () => {
    await join(nodes, masters);
    return cluster(nodes);
  });
}

function cluster(nodes: readonly TestServer[]): RedisCluster {
  const masters = (): Promise<TestServer[]> =>
    eventually('the masters of the cluster', async () => {
      const seen = await firstAnswer(nodes, ['CLUSTER', 'NODES']);
      const ports = lines(seen)
        .filter((line) => line.includes('master') && !line.includes('fail'))
        .map((line) => Number(/:(\d+)@/.exec(line)?.[1]));
      const found = nodes.filter(({ port }) => ports.includes(port));
      return found.length > 0 ? found : undefined;
    });
  return { ...redisGroup(nodes), masters };
}

function startNode(options: RedisClusterOptions): Promise<TestServer> {
  const { nodeTimeoutMs = 2_000, args = [] } = options;
  const own = [
    ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'],
    ...['--cluster-node-timeout', String(nodeTimeoutMs), '--repl-diskless-sync-delay', '0'],
  ];
  return startServer({
    variable: VARIABLE,
    recipe: async () =>
      redisRecipe(await freePort((port) => [port + BUS]), { ...options, args: [...own, ...args] }),
    finish: (server) => server,
  });
}

/** What `redis-cli --cluster create` does, without needing it. */
async function join(nodes: readonly TestServer[], masters: number): Promise<void> {
  const [first] = nodes;
  const ids = await Promise.all(
    nodes.map(async ({ port }) => String(await redisCommand(port, ['CLUSTER', 'MYID']))),
  );
  for (const [index, { port }] of nodes.entries()) {
    if (index < masters) await redisCommand(port, ['CLUSTER', 'ADDSLOTS', ...slotsOf(index, masters)]);
    await redisCommand(port, ['CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1)]);
    if (first !== undefined && index > 0)
      await redisCommand(port, ['CLUSTER', 'MEET', first.host, String(first.port)]);
  }
  await untilAll(nodes, 'the members know each other', async ({ port }) => {
    return lines(await redisCommand(port, ['CLUSTER', 'NODES'])).length === nodes.length;
  });
  for (const [index, { port }] of nodes.entries()) {
    if (index >= masters) await redisCommand(port, ['CLUSTER', 'REPLICATE', ids[index % masters] ?? '']);
  }
  await untilAll(nodes, 'the cluster is ready', async ({ port }) => {
    const info = String(await redisCommand(port, ['CLUSTER', 'INFO']));
    const replication = String(await redisCommand(port, ['INFO', 'replication']));
    const known = lines(await redisCommand(port, ['CLUSTER', 'NODES']));
    return (
      info.includes('cluster_state:ok') &&
      known.filter((line) => line.includes('master')).length === masters &&
      // A replica that has not caught up could not take over.
      !replication.includes('master_link_status:down')
    );
  });
}

function untilAll(
  nodes: readonly TestServer[],
  what: string,
  look: (node: TestServer) => Promise<boolean>,
): Promise<unknown> {
  return Promise.all(
    nodes.map((node) => eventually(what, async () => ((await look(node)) ? node : undefined))),
  );
}

/** The reply of the first node that gives one. */
export async function firstAnswer(
  nodes: readonly TestServer[],
  command: readonly string[],
): Promise<unknown> {
  for (const { port, url } of nodes) {
    const reply = await redisCommand(port, command, new URL(url)).catch((): undefined => undefined);
    if (reply !== undefined) return reply;
  }
  return undefined;
}

function slotsOf(index: number, masters: number): string[] {
  const from = Math.ceil((index * SLOTS) / masters);
  const to = Math.ceil(((index + 1) * SLOTS) / masters);
  return Array.from({ length: to - from }, (_, offset) => String(from + offset));
}

function lines(reply: unknown): string[] {
  return (typeof reply === 'string' ? reply : '').split('\n').filter(Boolean);
}
