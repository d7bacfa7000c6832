/** What others do to keys and leases, and processes that are gone: who holds a lock learns that it does not any more. */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemRandom, type Claim } from '@guard/core';
import { failureOf, startTcpProxy, until } from '@guard/testing';
import type { EtcdClient } from '../src/index.js';
import { leaseOf, lossesOf, sees, watched } from './support/losses.js';
import { server, stopServer } from './support/place.js';
import { guardOn, keysOf, Stage } from './support/stage.js';

afterAll(stopServer);

describe('A lock is told to be lost', () => {
  it.each([
    ['as soon as it is held', 0, 'after another lock'],
    ['while it is watched', 1_500, 'after another lock'],
    ['the first of its process', 1_500, 'alone'],
  ])(
    '[L1] [B20] within a second where its key alone is deleted by hand, %s, and its waiter has it',
    async (_, ms, comes) => {
      await using stage = new Stage();
      const { urls } = await server();
      const [a, b] = [stage.process(urls), stage.process(urls)];
      if (comes === 'after another lock') await (await a.guard.acquire('warm')).release();
      // A renewal is due after twenty seconds.
      const lock = await a.guard.acquire('k', { ttl: '60s' });
      const waiting = b.guard.acquire('k', { ttl: '3s', wait: '10s' });
      await until(
        'the ticket stands',
        async () => (await keysOf(a.client, stage.namespace, 'k')).length === 2,
      );
      await sleep(ms);
      const [name] = await keysOf(a.client, stage.namespace, 'k');
      await a.client.delete().key(name!);
      await until('the loss', () => lock.signal.aborted, 1_500);
      expect(lock.isHeld()).toBe(false);
      const next = await waiting;
      expect(next.token).toBeGreaterThan(lock.token);
      expect(await lock.release()).toBe('lost');
      expect(next.isHeld()).toBe(true);
    },
  );

  it('[L1] [B19] [B21] at once where its lease is ended, as every other lock under it is; new ones get a new lease', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const before = await watched(urls[0]!);
    const { guard, client } = stage.process(urls);
    const lost = lossesOf(guard);
    const ttl = '60s';
    const locks = [await guard.acquire('r1', { ttl }), await guard.acquire('r2', { ttl })];
    const apart = await guard.acquire('r3', { ttl: '90s' });
    await sees(urls[0]!, before);
    const ID = await leaseOf(client, stage.namespace, 'r1');
    await client.leaseClient.leaseRevoke({ ID });
    // A renewal is due after twenty seconds.
    await until('the losses', () => locks.every((lock) => lock.signal.aborted), 5_000);
    expect(locks.map((lock) => lock.isHeld())).toEqual([false, false]);
    const again = await guard.acquire('r1', { ttl });
    expect(again.token).toBeGreaterThan(locks[1]!.token);
    expect(await leaseOf(client, stage.namespace, 'r1')).not.toBe(ID);
    expect(await Promise.all(locks.map((lock) => lock.release()))).toEqual(['lost', 'lost']);
    await sleep(300);
    expect([again.isHeld(), apart.isHeld()]).toEqual([true, true]);
    expect(lost.sort()).toEqual(['r1', 'r2']);
  });

  it('[S1] [B19] before a waiter has it that asks in that very moment and is nearer to the server', async () => {
    await using stage = new Stage();
    const { urls, nodes } = await server();
    await using proxy = await startTcpProxy({ target: { host: nodes[0]!.host, port: nodes[0]!.port } });
    const before = await watched(urls[0]!);
    const [a, b] = [stage.process([`http://${proxy.host}:${proxy.port}`]), stage.process(urls)];
    const lock = await a.guard.acquire('w', { ttl: '60s' });
    await sees(urls[0]!, before);
    proxy.delay(40, 'to-client');
    const id = systemRandom.id();
    const times = { ttlMs: 60_000, ticketTtlMs: 6_000 };
    const key = `${stage.namespace}/lock/w`;
    const claim: Claim = { key, id, ...times, wait: true, session: 's', holder: { label: id } };
    const asked = async (): Promise<string> => (await b.locks.acquire([claim]))[0]!.status;
    expect(await asked()).toBe('queued');
    const ID = await leaseOf(b.client, stage.namespace, 'w');
    await b.client.leaseClient.leaseRevoke({ ID });
    expect([await asked(), lock.isHeld()]).toEqual(['granted', false]);
  });

  it('[L1] [B19] once its process sees again, where its lease was ended while the wire was down', async () => {
    await using stage = new Stage();
    const group = await server();
    const [node] = group.nodes;
    await using proxy = await startTcpProxy({ target: { host: node!.host, port: node!.port } });
    const before = await watched(group.urls[0]!);
    const { guard } = stage.process([`http://${proxy.host}:${proxy.port}`]);
    const lost = lossesOf(guard);
    const lock = await guard.acquire('d', { ttl: '90s' });
    await sees(group.urls[0]!, before);
    const admin = stage.client(group.urls);
    proxy.refuse();
    await admin.leaseClient.leaseRevoke({ ID: await leaseOf(admin, stage.namespace, 'd') });
    proxy.heal();
    // A renewal is due after thirty seconds.
    await until('the loss', () => lock.signal.aborted, 20_000);
    expect(lost).toEqual(['d']);
  });

  it('[L1] [B21] at its next renewal where its lease is ended and no watch can be opened', async () => {
    await using stage = new Stage();
    const client = stage.client((await server()).urls);
    const { kv, leaseClient, prefix } = client;
    const watch = (): Promise<never> => Promise.reject(new Error('no streams here'));
    const watchClient = { watch } as unknown as EtcdClient['watchClient'];
    const { guard } = guardOn(stage, { kv, leaseClient, prefix, watchClient });
    const errors: string[] = [];
    guard.on('error', ({ during }) => void errors.push(during));
    const lost = lossesOf(guard);
    const lock = await guard.acquire('n', { ttl: '3s' });
    await client.leaseClient.leaseRevoke({ ID: await leaseOf(client, stage.namespace, 'n') });
    await until('the loss', () => lock.signal.aborted, 3_000);
    expect(lost).toEqual(['n']);
    // It is tried again, as long as a lock is held.
    expect(new Set(errors)).toEqual(new Set(['subscribing to notices']));
  });

  it('[B21] never where Guard itself gives leases back', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const before = await watched(urls[0]!);
    const { guard, locks } = stage.process(urls);
    const lost = lossesOf(guard);
    const [one, other] = [
      await guard.acquire('g1', { ttl: '60s' }),
      await guard.acquire('g2', { ttl: '60s' }),
    ];
    await sees(urls[0]!, before);
    await one.extend('2m');
    expect(await Promise.all([one, other].map((lock) => lock.release()))).toEqual(['released', 'released']);
    await locks.close();
    await sleep(200);
    expect(lost).toEqual([]);
  });

  it('[B20] never where it was given back, or is held by the next claim of its process under the same name', async () => {
    await using stage = new Stage();
    const { guard } = stage.process((await server()).urls);
    const lost = lossesOf(guard);
    for (let n = 0; n < 3; n += 1) {
      const lock = await guard.acquire('k', { ttl: '60s' });
      await sleep(900);
      expect(await lock.release()).toBe('released');
    }
    await using other = await guard.acquire('k', { ttl: '60s' });
    await sleep(900);
    expect([lost, other.isHeld()]).toEqual([[], true]);
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

describe('A claim that waits for longer', () => {
  it('[L2] [L3] [B111] has the lock as soon as the lease of its holder is over, however long its ticket lasts', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const [a, b] = [stage.process(urls), stage.process(urls)];
    const holds = { ttlMs: 60_000, ticketTtlMs: 60_000, wait: true, holder: { label: 'h' } };
    const key = `${stage.namespace}/lock/p`;
    const held: Claim = { key, id: systemRandom.id(), session: 'a', ...holds };
    expect(await a.locks.acquire([held])).toMatchObject([{ status: 'granted' }]);
    const wakes: string[] = [];
    await b.locks.subscribe!('b', ({ type }) => void wakes.push(type));
    const next: Claim = { key, id: systemRandom.id(), session: 'b', ...holds };
    const asked = async (): Promise<string> => (await b.locks.acquire([next]))[0]!.status;
    expect(await asked()).toBe('queued');
    const before = await watched(urls[0]!);
    expect(await asked()).toBe('queued');
    await sees(urls[0]!, before);
    await b.client.leaseClient.leaseRevoke({ ID: await leaseOf(b.client, stage.namespace, 'p') });
    await until('it is told to ask', () => wakes.length > 0, 1_000);
    expect([wakes, await asked()]).toEqual([['gap'], 'granted']);
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
