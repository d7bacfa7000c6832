import { Cluster } from 'ioredis';
import { until } from '@guard/testing';
import { startRedisCluster, type RedisCluster } from '@guard/testing/servers';
import { describeServer } from './support/describe-server.js';

/** One key in each third of the slots. */
const KEYS = ['a', 'b', 'c'];

describeServer('Redis Cluster', {
  start: () => startRedisCluster(),
  nodes: ({ nodes }) => nodes,
  write: async (cluster, text) => {
    await withClient(cluster, (client) => Promise.all(KEYS.map((key) => client.set(key, text))));
  },
  read: async (cluster) => {
    const texts = await withClient(cluster, (client) => Promise.all(KEYS.map((key) => client.get(key))));
    expect(new Set(texts).size).toBe(1);
    return texts[0] ?? null;
  },
});

describe('A cluster', () => {
  it('has three masters, and goes on with a replica when one is killed', async () => {
    await using cluster = await startRedisCluster();
    expect(cluster.nodes).toHaveLength(6);
    const [lost, ...others] = await cluster.masters();
    expect(others).toHaveLength(2);
    await lost?.kill();
    await until('three masters without it', async () => {
      const ports = (await cluster.masters()).map(({ port }) => port);
      return ports.length === 3 && !ports.includes(lost?.port ?? 0);
    });
  });
});

async function withClient<T>({ nodes }: RedisCluster, work: (client: Cluster) => Promise<T>): Promise<T> {
  const client = new Cluster(
    nodes.map(({ host, port }) => ({ host, port })),
    { clusterRetryStrategy: (times) => (times > 40 ? null : 100), retryDelayOnClusterDown: 100 },
  );
  client.on('error', () => undefined);
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}
