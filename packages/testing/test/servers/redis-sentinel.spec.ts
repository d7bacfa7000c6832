import { Redis } from 'ioredis';
import { until } from '@guard/testing';
import { startRedisSentinel, type RedisSentinel } from '@guard/testing/servers';
import { describeServer } from './support/describe-server.js';

describeServer('Redis with Sentinel', {
  start: () => startRedisSentinel(),
  nodes: ({ nodes }) => nodes,
  write: async (service, text) => {
    await withMaster(service, (client) => client.set('k', text));
  },
  read: (service) => withMaster(service, (client) => client.get('k')),
});

describe('Sentinel', () => {
  it('puts the replica in the place of a killed master, and makes a replica of it when it returns', async () => {
    await using service = await startRedisSentinel();
    const [master, replica] = service.servers;
    expect(service.sentinels).toHaveLength(3);
    expect(await service.masterPort()).toBe(master?.port);
    await master?.kill();
    await until('the replica is master', async () => (await service.masterPort()) === replica?.port);
    await master?.restart({ keepData: true });
    const client = new Redis(master?.url ?? '');
    await until('the old master follows', async () => (await client.info()).includes('role:slave'));
    client.disconnect();
  });
});

/** The master may just be changing: the client asks the sentinels, and asks again. */
async function withMaster<T>(service: RedisSentinel, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis({
    sentinels: service.sentinels.map(({ host, port }) => ({ host, port })),
    name: service.masterName,
    sentinelRetryStrategy: (times) => (times > 40 ? null : 100),
    retryStrategy: (times) => (times > 40 ? null : 100),
    maxRetriesPerRequest: 20,
  });
  client.on('error', () => undefined);
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}
