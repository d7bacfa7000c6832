/** Locks that were closed: nothing keeps a lock alive any more, so nothing is granted. */
import { failureOf } from '@guard/testing';
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
