/** How many leases there are, and what becomes of one that is over. The server counts. */
import { failureOf, until } from '@guard/testing';
import { startEtcd } from '@guard/testing/servers';
import type { Etcd3 } from 'etcd3';
import { countsOf } from './support/counts.js';
import { server, stopServer } from './support/place.js';
import { keysOf, Stage } from './support/stage.js';

afterAll(stopServer);

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function leasesOf(client: Etcd3): Promise<string[]> {
  const { leases } = await client.leaseClient.leaseLeases();
  return leases.map(({ ID }) => ID);
}

it('[B32] leases do not pile up: two shared ones of each process serve locks, tries, waits that end and waits that are aborted', async () => {
  await using stage = new Stage();
  await using group = await startEtcd({ onDisk: false });
  const admin = stage.client(group.urls);
  const [holder, other] = [stage.process(group.urls), stage.process(group.urls)];
  const busy = await holder.guard.acquire('busy');
  const rounds = process.env['GUARD_PROFILE'] === 'full' ? 500 : 100;
  for (let n = 0; n < rounds; n += 1) await (await other.guard.acquire(`k${n}`)).release();
  const tries = await Promise.all(Array.from({ length: rounds }, () => other.guard.tryAcquire('busy')));
  expect(tries.filter((lock) => lock !== null)).toEqual([]);
  const late = Array.from({ length: 100 }, () => failureOf(other.guard.acquire('busy', { wait: '1s' })));
  // Some are not answered in time where a hundred come at once to a busy machine.
  for (const { code } of await Promise.all(late)) expect(code).toMatch(/^(lock-busy|unavailable)$/);
  const aborting = new AbortController();
  const aborted = Array.from({ length: 100 }, () =>
    other.guard.acquire('busy', { signal: aborting.signal }).catch((error: unknown) => error),
  );
  await pass(100);
  aborting.abort();
  await Promise.all(aborted);
  await until('no ticket is left', async () => (await keysOf(admin, stage.namespace, 'busy')).length === 1);
  // Two of each process, for locks and for tickets, and one that ends with the tombstones of what was given up.
  expect((await leasesOf(admin)).length).toBeLessThanOrEqual(5);
  await busy.release();
  for (const { guard, locks } of [holder, other]) {
    await guard.close();
    await locks.close();
  }
  await until('only tombstones are left', async () => (await leasesOf(admin)).length <= 1, 10_000);
  for (const ID of await leasesOf(admin)) {
    const { keys, TTL } = await admin.leaseClient.leaseTimeToLive({ ID, keys: true });
    expect(keys.filter((key) => !key.toString().startsWith('guard/t/'))).toEqual([]);
    expect(Number(TTL)).toBeLessThanOrEqual(120);
  }
});

it('[B32] one lease serves all entries that are written at once with the same ttl, and one all that are deleted', async () => {
  await using stage = new Stage();
  const { urls } = await server();
  const { guard } = stage.process(urls);
  const before = await countsOf(urls[0]!);
  const keys = Array.from({ length: 60 }, (_, n) => `e${n}`);
  const versions = await Promise.all(keys.map((key) => guard.state.create(key, 1, { ttl: '1m' })));
  await Promise.all(keys.map((key, n) => guard.state.delete(key, versions[n]!)));
  const after = await countsOf(urls[0]!);
  // One for the entries, one for their fences, one for what a delete leaves behind; each a second time at a border.
  expect(after.LeaseGrant - before.LeaseGrant).toBeLessThanOrEqual(6);
});

it('[B21] [L1] one lost signal for a lease that is over, no keep-alive for it after that, and a new one for new locks', async () => {
  await using stage = new Stage();
  const { urls } = await server();
  const { guard, client } = stage.process(urls);
  const lost: string[] = [];
  const errors: unknown[] = [];
  guard.on('lock-lost', ({ key }) => void lost.push(key));
  guard.on('error', ({ error }) => void errors.push(error));
  const lock = await guard.acquire('u', { ttl: '3s' });
  const [name] = await keysOf(client, stage.namespace, 'u');
  const { kvs } = await client.getAll().prefix(name!).exec();
  await client.leaseClient.leaseRevoke({ ID: kvs[0]!.lease });
  await until('the loss', () => lock.signal.aborted, 5_000);
  const before = await countsOf(urls[0]!);
  const cpu = process.cpuUsage();
  await pass(4_000);
  const { WatchAsked, Watched, ...after } = await countsOf(urls[0]!);
  const { user, system } = process.cpuUsage(cpu);
  expect(before).toMatchObject(after);
  // A sign of life of the stream every three seconds, asked for and answered.
  for (const more of [WatchAsked - before.WatchAsked, Watched - before.Watched]) expect(more).toBeLessThan(3);
  expect((user + system) / 4_000_000).toBeLessThan(0.2);
  expect(lost).toEqual(['u']);
  expect(errors).toEqual([]);
  const again = await guard.acquire('u', { ttl: '3s' });
  await pass(2_500);
  expect(again.isHeld()).toBe(true);
  const held = await client.getAll().prefix(name!).exec();
  expect(held.kvs[0]!.lease).not.toBe(kvs[0]!.lease);
});

it('[B34] a client that is idle sends no pings that a server punishes: no stream is ever opened again', async () => {
  await using stage = new Stage();
  // A ping without a call is punished here unless five minutes lie before it; by default they are five seconds.
  await using group = await startEtcd({ onDisk: false, args: ['--grpc-keepalive-min-time', '300s'] });
  const { guard } = stage.process(group.urls);
  const heard: unknown[] = [];
  const watch = await guard.state.watch<number>('w', ({ entry }) => void heard.push(entry?.value));
  stage.ends(() => watch.close());
  const lock = await guard.acquire('p', { ttl: '2s' });
  const streams = async (): Promise<number> => (await countsOf(group.urls[0]!)).Watch;
  await until('both watches', async () => (await streams()) === 2);
  const before = await streams();
  const idleMs = process.env['GUARD_PROFILE'] === 'full' ? 180_000 : 3_000;
  await pass(idleMs);
  expect(lock.isHeld()).toBe(true);
  await lock.release();
  await pass(idleMs);
  await guard.state.set('w', 5);
  await until('the news', () => heard.includes(5), 5_000);
  expect((await guard.acquire('p')).isHeld()).toBe(true);
  expect(await streams()).toBe(before);
}, 600_000);
