/** What is made of answers that no script of Guard gives. */
import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf } from '@guard/testing';
import { startRedis, type TestServer } from '@guard/testing/servers';
import { Redis } from 'ioredis6';
import { redisLocks, redisState, type RedisConnection } from '../src/index.js';
import { fromIoredis } from '../src/ioredis.js';
import { Stage } from './support/stage.js';

/** A connection over which everything is answered alike. */
function answering(value: unknown): RedisConnection {
  const never = (): Promise<never> => Promise.reject(new Error('not here'));
  const run = async () => ({ value, resent: false, acks: 0 });
  return { place: 'strange', scope: '', cluster: false, run, scan: never, subscribe: never };
}

const key = 'n/lock/k';
const session = 'session';
const lease = { key, claim: 'claim', session, token: 5n };
const holder = { label: 'test' };
const claim = { key, id: 'claim', session, ttlMs: 1_000, wait: false, ticketTtlMs: 1_000, holder };
const write = { key: 'n/state/k', value: '1', expect: 'any', writeId: 'w', ttl: 'keep' } as const;

describe.each<[string, unknown]>([
  ['QUEUED, on a client with an open transaction', 'QUEUED'],
  ['OK', 'OK'],
  ['nothing', null],
  ['a list of strange things', ['Q']],
  ['another number', 7],
  ['too short a list', []],
])('[S6] Answered by %s', (_, value) => {
  const locks = redisLocks(answering(value));
  const state = redisState(answering(value));

  it.each<[string, () => Promise<unknown>]>([
    ['an acquire', () => locks.acquire([claim])],
    ['acquires', () => locks.acquire([claim, { ...claim, key: `${key}2`, id: 'other' }])],
    ['a renewal', () => locks.renew([{ ...lease, ttlMs: 1_000 }])],
    ['a release', () => locks.release([lease])],
    ['a cancel', () => locks.release([{ ...lease, cancel: true, tombstoneMs: 0 }])],
    ['a question about a lock', () => locks.inspect({ keys: [key] })],
    ['a read', () => state.read([write.key])],
    ['a write', () => state.write([write])],
    ['a question for the time', () => state.now().then((ms) => ms === 0.007 && Promise.reject(new Error()))],
  ])('%s is a fault, and never a "no"', async (_verb, ask) => {
    const answers = await ask().catch((cause: unknown) => [{ status: 'failed', cause }]);
    for (const answer of answers as readonly unknown[]) expect(answer).toMatchObject({ status: 'failed' });
  });
});

describe('A client of the application', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startRedis({ appendOnly: false });
  });
  afterAll(() => server.stop());

  it('[S6] [L1] with an open transaction loses no lock and hides no entry, and what is wrong is told', async () => {
    await using stage = new Stage();
    const client = new Redis(server.url);
    stage.ends(() => client.disconnect());
    const guard = stage.guard(fromIoredis(client));
    const lock = await guard.acquire('m', { ttl: '6s' });
    const version = await guard.state.set('e', 1);
    await client.multi({ pipeline: false });
    await sleep(2_500); // a renewal was due
    expect(lock.isHeld()).toBe(true);
    expect(lock.signal.aborted).toBe(false);
    const reading = guard.state.get('e');
    const refused = await failureOf(guard.tryAcquire('other'));
    expect(refused).toMatchObject({ code: 'unavailable' });
    expect(refused.message).toMatch(/QUEUED.*MULTI/);
    await client.exec();
    expect(await reading).toEqual({ value: 1, version });
    expect(await lock.release()).toBe('released');
    expect(await guard.tryAcquire('m')).not.toBeNull();
  });
});
