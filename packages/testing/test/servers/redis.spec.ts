import { Redis } from 'ioredis';
import { Redis as Redis6 } from 'ioredis6';
import { createClient } from 'redis';
import { createClient as createClient6 } from 'redis6';
import { startIndependentRedis, startRedis, type TestServer } from '@guard/testing/servers';
import { describeServer } from './support/describe-server.js';

/** One try and no queue: a client that reconnects would hide what the server does. */
const PLAIN = { retryStrategy: () => null, lazyConnect: true } as const;

describeServer('Redis', {
  start: () => startRedis(),
  nodes: (server) => [server],
  write: async ({ url }, text) => {
    await withClient(url, (client) => client.set('k', text));
  },
  read: ({ url }) => withClient(url, (client) => client.get('k')),
});

describe('Redis for its clients', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  it('serves ioredis 5 and 6', async () => {
    expect(await withClient(server.url, (client) => client.ping())).toBe('PONG');
    const client = new Redis6(server.url, PLAIN);
    await client.connect();
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
  });

  it('serves node-redis 5 and 6', async () => {
    const five = await createClient({ url: server.url }).connect();
    expect(await five.ping()).toBe('PONG');
    five.destroy();
    const six = await createClient6({ url: server.url }).connect();
    expect(await six.ping()).toBe('PONG');
    six.destroy();
  });
});

describe('Independent Redis servers', () => {
  it('are five that share nothing', async () => {
    await using group = await startIndependentRedis();
    expect(new Set(group.nodes.map(({ port }) => port)).size).toBe(5);
    const [first, ...others] = group.nodes.map(({ url }) => url);
    await withClient(first ?? '', (client) => client.set('k', 'only here'));
    for (const url of others) expect(await withClient(url, (client) => client.get('k'))).toBeNull();
  });
});

async function withClient<T>(url: string, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, PLAIN);
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    client.disconnect();
  }
}
