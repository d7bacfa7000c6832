/** Locks that were closed: nothing keeps a lock alive any more, so nothing is granted. */
import { systemRandom, type Claim, type GuardError } from '@guard/core';
import { failureOf, until } from '@guard/testing';
import { etcdLocks } from '../src/index.js';
import { countsOf } from './support/counts.js';
import { lateClient } from './support/late.js';
import { server, stopServer } from './support/place.js';
import { keysOf, Stage } from './support/stage.js';

afterAll(stopServer);

it('[S6] Closed locks grant and renew nothing, and say so; what is held can still be given back', async () => {
  await using stage = new Stage();
  const { guard, locks, client } = stage.process((await server()).urls);
  const lock = await guard.acquire('held', { ttl: '10s' });
  await locks.close();
  for (const asked of [guard.tryAcquire('new'), guard.acquire('new', { wait: '5s' }), lock.extend('20s')]) {
    const error = await failureOf(asked);
    expect([error.code, error.message]).toEqual(['closed', expect.stringMatching(/close the guard first/)]);
  }
  expect(await keysOf(client, stage.namespace, 'new')).toEqual([]);
  expect(await lock.release()).toBe('released');
  expect(await keysOf(client, stage.namespace, 'held')).toEqual([]);
});

describe('Locks that are closed while a request is on its way', () => {
  async function closing(stage: Stage) {
    const { urls } = await server();
    const admin = stage.client(urls);
    const late = lateClient(stage.client(urls));
    const locks = etcdLocks(late.client);
    const named = { id: systemRandom.id(), session: 's', holder: { label: 'h' } };
    const times = { ttlMs: 60_000, ticketTtlMs: 6_000, wait: true };
    const claim: Claim = { key: `${stage.namespace}/lock/k`, ...named, ...times };
    /** The claim is on its way while the locks are closed, and lands after that. */
    const landsLate = async (): Promise<GuardError> => {
      const letGo = late.holdRequests();
      const asked = failureOf(locks.acquire([claim]));
      await until('it is on its way', () => late.held === 1);
      await locks.close();
      letGo();
      return asked;
    };
    return { url: urls[0]!, admin, locks, claim, landsLate };
  }

  it('[S6] grant nothing that comes after it, and give its lease back', async () => {
    await using stage = new Stage();
    const { admin, landsLate } = await closing(stage);
    expect((await landsLate()).code).toBe('closed');
    await until(
      'its key is gone',
      async () => (await keysOf(admin, stage.namespace, 'k')).length === 0,
      2_000,
    );
  });

  it('[L5] open no watch after it, neither for what comes late nor for whoever wants to listen', async () => {
    await using stage = new Stage();
    const { url, locks, claim, landsLate } = await closing(stage);
    const other = etcdLocks(stage.client((await server()).urls));
    stage.ends(() => other.close());
    await other.acquire([{ ...claim, id: systemRandom.id() }]);
    await locks.acquire([claim]);
    const { Watch } = await countsOf(url);
    expect((await landsLate()).code).toBe('closed');
    expect((await failureOf(locks.subscribe!('s', () => undefined))).code).toBe('closed');
    expect((await countsOf(url)).Watch).toBe(Watch);
  });
});

it('[L2] A session that begins to listen as the last other one leaves is heard', async () => {
  await using stage = new Stage();
  const { urls } = await server();
  const locks = etcdLocks(stage.client(urls));
  const other = etcdLocks(stage.client(urls));
  stage.ends(() => Promise.all([locks.close(), other.close()]));
  const first = await locks.subscribe!('one', () => undefined);
  const heard: string[] = [];
  const coming = locks.subscribe!('two', ({ type }) => void heard.push(type));
  await first.close();
  await coming;
  const claim = (session: string): Claim => ({
    ...{ key: `${stage.namespace}/lock/k`, id: systemRandom.id(), session, holder: { label: session } },
    ...{ ttlMs: 10_000, ticketTtlMs: 6_000, wait: true },
  });
  const holding = claim('x');
  const [grant] = await other.acquire([holding]);
  if (grant?.status !== 'granted') throw new Error('not granted');
  await locks.acquire([claim('two')]);
  const { key, id, session } = holding;
  await other.release([{ key, claim: id, session, token: grant.token }]);
  await until('the hand-over', () => heard.includes('granted'), 2_000);
});
