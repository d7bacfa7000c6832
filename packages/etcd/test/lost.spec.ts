/** What others do to keys and leases, and processes that are gone: who holds a lock learns that it does not any more. */
import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf, until } from '@guard/testing';
import { server, stopServer } from './support/place.js';
import { keysOf, Stage } from './support/stage.js';

afterAll(stopServer);

describe('A lock is told to be lost', () => {
  it('[L1] [B20] where its key was deleted by hand, at the next renewal, and its waiter has it', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const [a, b] = [stage.process(urls), stage.process(urls)];
    const lock = await a.guard.acquire('k', { ttl: '3s' });
    const waiting = b.guard.acquire('k', { ttl: '3s', wait: '10s' });
    await until('the ticket stands', async () => (await keysOf(a.client, stage.namespace, 'k')).length === 2);
    const [name] = await keysOf(a.client, stage.namespace, 'k');
    await a.client.delete().key(name!);
    await until('the loss', () => lock.signal.aborted, 3_000);
    expect(lock.isHeld()).toBe(false);
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lock.token);
    expect(await lock.release()).toBe('lost');
    expect(next.isHeld()).toBe(true);
  });

  it('[L1] [B21] where its lease was revoked, with every other lock under it; new ones get a new lease', async () => {
    await using stage = new Stage();
    const { guard, client } = stage.process((await server()).urls);
    const locks = [await guard.acquire('r1', { ttl: '3s' }), await guard.acquire('r2', { ttl: '3s' })];
    const [name] = await keysOf(client, stage.namespace, 'r1');
    const { kvs } = await client.getAll().prefix(name!).exec();
    await client.leaseClient.leaseRevoke({ ID: kvs[0]!.lease });
    await until('the losses', () => locks.every((lock) => lock.signal.aborted), 3_000);
    const again = await guard.acquire('r1', { ttl: '3s' });
    expect(again.token).toBeGreaterThan(locks[1]!.token);
    await sleep(1_500);
    expect(again.isHeld()).toBe(true);
  });

  it('[S5] [B20] and an extension of it says so at once, although its lease lives, and leaves its successor alone', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const [a, b] = [stage.process(urls), stage.process(urls)];
    const lock = await a.guard.acquire('e', { ttl: '10s' });
    const [name] = await keysOf(a.client, stage.namespace, 'e');
    await a.client.delete().key(name!);
    const next = await b.guard.tryAcquire('e', { ttl: '10s' });
    expect(next!.token).toBeGreaterThan(lock.token);
    const standing = await keysOf(a.client, stage.namespace, 'e');
    expect((await failureOf(lock.extend('1m'))).code).toBe('lock-lost');
    expect(lock.signal.aborted).toBe(true);
    expect(await lock.release()).toBe('lost');
    expect(await keysOf(a.client, stage.namespace, 'e')).toEqual(standing);
    await next!.extend('20s');
    expect(await next!.release()).toBe('released');
  });

  it('[S5] [B20] by an extension where nobody came after it, which creates nothing', async () => {
    await using stage = new Stage();
    const { guard, client } = stage.process((await server()).urls);
    const lock = await guard.acquire('e', { ttl: '3s' });
    const [name] = await keysOf(client, stage.namespace, 'e');
    await client.delete().key(name!);
    expect((await failureOf(lock.extend('1m'))).code).toBe('lock-lost');
    expect(await keysOf(client, stage.namespace, 'e')).toEqual([]);
  });
});

describe('A lease that is not kept alive', () => {
  it('[S4] of tombstones may be revoked by hand: the next claim that is given up leaves its own under a new one', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const [holder, other] = [stage.process(urls), stage.process(urls)];
    const lock = await holder.guard.acquire('k', { ttl: '20s' });
    const giveUp = async (): Promise<void> => {
      const giving = new AbortController();
      const asked = failureOf(other.guard.acquire('k', { ttl: '10s', wait: '5s', signal: giving.signal }));
      await new Promise((resolve) => setImmediate(resolve));
      giving.abort();
      await asked;
    };
    const tombstones = async (): Promise<string[]> => {
      const { kvs } = await other.client.getAll().prefix('guard/t/').exec();
      return kvs.map(({ lease }) => lease);
    };
    await until('a tombstone', async () => (await giveUp(), (await tombstones()).length > 0), 10_000);
    for (const ID of new Set(await tombstones())) await other.client.leaseClient.leaseRevoke({ ID });
    expect(await tombstones()).toEqual([]);
    await until('a new tombstone', async () => (await giveUp(), (await tombstones()).length > 0), 10_000);
    expect(await other.guard.tryAcquire('k')).toBeNull();
    expect(await lock.release()).toBe('released');
  });

  it('of entries with a ttl may be revoked by hand: the next entry stands under a new one', async () => {
    await using stage = new Stage();
    const { guard, client } = stage.process((await server()).urls);
    await guard.state.set('first', 1, { ttl: '1m' });
    const [entry] = (await client.getAll().prefix('guard/s/').exec()).kvs.filter(
      ({ lease }) => lease !== '0',
    );
    await client.leaseClient.leaseRevoke({ ID: entry!.lease });
    expect(await guard.state.get('first')).toBeNull();
    await guard.state.set('second', 2, { ttl: '1m' });
    expect((await guard.state.get('second'))?.value).toBe(2);
  });
});

describe('A process that is gone', () => {
  it('[L2] with a ticket that was handed the lock holds up the next one for its ticket’s life only', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const [holder, gone, next] = [stage.process(urls), stage.process(urls), stage.process(urls)];
    const lock = await holder.guard.acquire('q', { ttl: '2s' });
    const lost = gone.guard.acquire('q', { ttl: '2s', wait: '20s' });
    lost.catch(() => undefined);
    await until('its ticket', async () => (await keysOf(holder.client, stage.namespace, 'q')).length === 2);
    const waiting = next.guard.acquire('q', { ttl: '2s', wait: '20s' });
    await until('the next', async () => (await keysOf(holder.client, stage.namespace, 'q')).length === 3);
    gone.client.close();
    await lock.release();
    const startedMs = performance.now();
    expect((await waiting).isHeld()).toBe(true);
    // Its ticket's ttl and the granularity, and a third of a ticket's life until the next one asks.
    expect(performance.now() - startedMs).toBeLessThan(8_000);
    await gone.guard.close();
    await lost.catch(() => undefined);
  });

  it('[S6] whose client was closed says unavailable or closed, and never busy', async () => {
    await using stage = new Stage();
    const { guard, client } = stage.process((await server()).urls);
    await (await guard.acquire('c')).release();
    client.close();
    expect((await failureOf(guard.tryAcquire('c'))).code).toBe('unavailable');
    expect((await failureOf(guard.state.get('c'))).code).toBe('unavailable');
  });
});

describe('A claim that does not wait', () => {
  it('[B33] leaves no key behind', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const [a, b] = [stage.process(urls), stage.process(urls)];
    const lock = await a.guard.acquire('t');
    expect(await b.guard.tryAcquire('t')).toBeNull();
    expect(await keysOf(a.client, stage.namespace, 't')).toHaveLength(1);
    await lock.release();
    expect(await keysOf(a.client, stage.namespace, 't')).toEqual([]);
  });
});
