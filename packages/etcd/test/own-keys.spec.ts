/** Locks that last are watched by their own keys: which of them, and what happens to such a watch. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lock } from '@guard/core';
import { startTcpProxy, until, type TcpProxy } from '@guard/testing';
import { watchersOf } from './support/counts.js';
import { leaseOf, lossesOf } from './support/losses.js';
import { server, stopServer } from './support/place.js';
import { keysOf, Stage, type Process } from './support/stage.js';

jest.setTimeout(90_000);
afterAll(stopServer);

/** A renewal is due after twenty seconds. */
const TTL = '60s';

/** Watches that stand at the server. */
async function watchers(): Promise<number> {
  return watchersOf((await server()).urls[0]!);
}

async function proxied(): Promise<TcpProxy> {
  const [node] = (await server()).nodes;
  return startTcpProxy({ target: { host: node!.host, port: node!.port } });
}

async function deleteKey({ client }: Pick<Process, 'client'>, stage: Stage, key: string): Promise<void> {
  const [name] = await keysOf(client, stage.namespace, key);
  await client.delete().key(name!);
}

async function isTold(lock: Lock, withinMs: number): Promise<void> {
  await until(`the loss of ${lock.key}`, () => lock.signal.aborted, withinMs);
}

describe('A lock whose key alone is deleted by hand', () => {
  it('[B20] is told of within a second where a lock of its process left it a place among those that are watched', async () => {
    await using stage = new Stage();
    const process = stage.process((await server()).urls);
    const before = await watchers();
    const many = await Promise.all(
      Array.from({ length: 64 }, (_, n) => process.guard.acquire(`m${n}`, { ttl: TTL })),
    );
    // The inbox, and one for each of them.
    await until('all are watched', async () => (await watchers()) === before + 65);
    const late = await process.guard.acquire('late', { ttl: TTL });
    await sleep(1_500);
    expect(await watchers()).toBe(before + 65);
    await Promise.all(many.slice(1).map((lock) => lock.release()));
    await until('it is watched', async () => (await watchers()) === before + 3);
    await deleteKey(process, stage, 'late');
    await isTold(late, 1_500);
    expect(many[0]!.isHeld()).toBe(true);
  });

  it('[B20] is told of as soon as the watch stands again that was down at that moment', async () => {
    await using stage = new Stage();
    await using proxy = await proxied();
    const process = stage.process([`http://${proxy.host}:${proxy.port}`]);
    const before = await watchers();
    const lock = await process.guard.acquire('down', { ttl: TTL });
    await until('it is watched', async () => (await watchers()) === before + 2);
    const lost = lossesOf(process.guard);
    proxy.refuse();
    await deleteKey({ client: stage.client((await server()).urls) }, stage, 'down');
    await sleep(500);
    proxy.heal();
    await isTold(lock, 8_000);
    expect(lost).toEqual(['down']);
  });

  it('[B20] is told of where its watch did not open at first', async () => {
    await using stage = new Stage();
    await using proxy = await proxied();
    const process = stage.process([`http://${proxy.host}:${proxy.port}`]);
    const before = await watchers();
    const lock = await process.guard.acquire('slow', { ttl: TTL });
    await until('the inbox', async () => (await watchers()) === before + 1);
    proxy.cut();
    // Longer than a watch may take to open.
    await sleep(4_500);
    proxy.heal();
    await until('it is watched', async () => (await watchers()) === before + 2, 20_000);
    await deleteKey({ client: stage.client((await server()).urls) }, stage, 'slow');
    await isTold(lock, 1_500);
  });
});

describe('A process that only holds', () => {
  it('[L1] [B19] hears of its losses although it could not subscribe at first', async () => {
    await using stage = new Stage();
    await using proxy = await proxied();
    const admin = stage.client((await server()).urls);
    const process = stage.process([`http://${proxy.host}:${proxy.port}`]);
    const before = await watchers();
    const errors: string[] = [];
    process.guard.on('error', ({ during }) => void errors.push(during));
    // The answer to the subscription that follows the grant is still on its way.
    proxy.delay(200, 'to-client');
    const lock = await process.guard.acquire('l', { ttl: TTL });
    proxy.cut();
    await until('it is told that it cannot subscribe', () => errors.length > 0, 10_000);
    proxy.heal();
    await until('inbox and lock are watched', async () => (await watchers()) === before + 2, 20_000);
    await admin.leaseClient.leaseRevoke({ ID: await leaseOf(admin, stage.namespace, 'l') });
    await isTold(lock, 1_500);
    expect(new Set(errors)).toEqual(new Set(['subscribing to notices']));
  });
});
