/** Grants that too few replicas confirmed, and what is sent to undo them. */
import type { Claim } from '@guard/core';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { redisLocks, type RedisConnection } from '../src/index.js';
import { RELEASE } from '../src/scripts/release.lua.js';
import { viaIoredis6 } from './support/clients.js';
import { Stage } from './support/stage.js';

describe('An undo', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startRedis({ appendOnly: false });
  });
  afterAll(() => server.stop());

  const claim = (id: string): Claim => {
    const holder = { label: 'test' };
    return {
      ...{ key: 'n/lock/k', id, session: `of ${id}`, holder },
      ...{ ttlMs: 10_000, wait: false, ticketTtlMs: 10_000 },
    };
  };

  it.each<[string, 'before' | 'after']>([
    ['the claim has its lock again', 'after'],
    ['the claim asks again', 'before'],
  ])('[S1] [S3] that comes late, when %s, frees no lock that somebody holds', async (_, when) => {
    await using stage = new Stage();
    const client = await viaIoredis6({ single: server });
    stage.ends(() => client.end());
    await stage.admin(server).flushall();
    let confirmed = 0;
    const held: (() => Promise<unknown>)[] = [];
    /** Replicas confirm what the test says, and the first undo is given up and carried out later. */
    const connection: RedisConnection = {
      ...client.connection,
      run: async (script, keys, args) => {
        const run = () => client.connection.run(script, keys, args);
        if (script === RELEASE.lone && held.length === 0) {
          held.push(run);
          throw new Error('the connection broke');
        }
        return { ...(await run()), acks: confirmed };
      },
    };
    const locks = redisLocks(connection, { acks: { replicas: 1, timeoutMs: 10 } });
    expect(await locks.acquire([claim('first')])).toMatchObject([{ status: 'failed' }]);
    expect(held).toHaveLength(1);
    if (when === 'before') await held[0]!();
    confirmed = 1;
    const [granted] = await locks.acquire([claim('first')]);
    expect(granted).toMatchObject({ status: 'granted' });
    await held[0]!();
    expect(await locks.acquire([claim('second')])).toMatchObject([{ status: 'busy' }]);
    // It is known by its token, asked again or renewed.
    expect(await locks.acquire([claim('first')])).toEqual([granted]);
    const { token } = granted as { readonly token: bigint };
    const lease = { key: 'n/lock/k', claim: 'first', session: 'of first', token };
    expect(await locks.renew([{ ...lease, ttlMs: 10_000 }])).toEqual([{ status: 'renewed' }]);
    expect(await locks.release([lease])).toEqual([{ status: 'released' }]);
  });
});
