/** What locks cost, counted by the server itself. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { systemRandom, type Claim } from '@guard/core';
import { until } from '@guard/testing';
import { startEtcd } from '@guard/testing/servers';
import { etcdLocks } from '../src/index.js';
import { countsOf } from './support/counts.js';
import { server, stopServer } from './support/place.js';
import { keysOf, Stage } from './support/stage.js';

afterAll(stopServer);

describe('The server counts', () => {
  it('[C1] one transaction for an acquire of a free lock, one for its release, and nothing else', async () => {
    await using stage = new Stage();
    const [url] = (await server()).urls;
    const { guard } = stage.process([url!]);
    await (await guard.acquire('warm')).release();
    const before = await countsOf(url!);
    for (let n = 0; n < 20; n += 1) await (await guard.acquire(`c${n}`)).release();
    const after = await countsOf(url!);
    expect([after.Txn - before.Txn, after.Range - before.Range]).toEqual([40, 0]);
    expect(after.LeaseGrant - before.LeaseGrant).toBe(0);
    expect(after.KeepAlive - before.KeepAlive).toBeLessThan(10);
  });

  it('[C1] one transaction and one lease for the first lock of a process, the marker of its lease included', async () => {
    await using stage = new Stage();
    const [url] = (await server()).urls;
    const { guard, client } = stage.process([url!]);
    const before = await countsOf(url!);
    const lock = await guard.acquire('first');
    const after = await countsOf(url!);
    expect([after.Txn - before.Txn, after.Range - before.Range]).toEqual([1, 0]);
    expect(after.LeaseGrant - before.LeaseGrant).toBe(1);
    const [name] = await keysOf(client, stage.namespace, 'first');
    const { kvs } = await client.getAll().prefix(name!).exec();
    const { keys } = await client.leaseClient.leaseTimeToLive({ ID: kvs[0]!.lease, keys: true });
    expect(keys.filter((key) => key.toString().startsWith('guard/n/'))).toHaveLength(1);
    expect(await lock.release()).toBe('released');
  });

  it('[C1] one for a try that finds the lock taken, and one more for the first claim that meets somebody there', async () => {
    await using stage = new Stage();
    const [url] = (await server()).urls;
    const [holder, other] = [stage.process([url!]).guard, stage.process([url!]).guard];
    const { Watch } = await countsOf(url!);
    const held = await holder.acquire('met');
    await (await other.acquire('warm')).release();
    await until('both listen', async () => (await countsOf(url!)).Watch === Watch + 2);
    const count = async (ask: () => Promise<unknown>): Promise<number> => {
      const before = await countsOf(url!);
      await ask();
      return (await countsOf(url!)).Txn - before.Txn;
    };
    expect(await count(async () => expect(await other.tryAcquire('met')).toBeNull())).toBe(1);
    await held.release();

    const again = await holder.acquire('waited for');
    const waiting: Promise<{ release(): Promise<unknown> }>[] = [];
    const wait = async (): Promise<void> => {
      waiting.push(other.acquire('waited for'));
      await new Promise((resolve) => setTimeout(resolve, 200));
    };
    // The short form, then the ticket. From then on tickets come along at once.
    expect(await count(wait)).toBe(2);
    expect(await count(wait)).toBe(1);
    await again.release();
    for (const lock of waiting) await (await lock).release();
  });

  it('[C1] one transaction for the first write of an entry, and two requests for a listing of a hundred small ones', async () => {
    await using stage = new Stage();
    const [url] = (await server()).urls;
    const { guard } = stage.process([url!]);
    const before = await countsOf(url!);
    await guard.state.set('first', 1);
    const written = await countsOf(url!);
    expect([written.Txn - before.Txn, written.Range - before.Range]).toEqual([1, 0]);

    await Promise.all(Array.from({ length: 99 }, (_, n) => guard.state.set(`e${n}`, n)));
    const filled = await countsOf(url!);
    const listed: string[] = [];
    for await (const { key } of guard.state.list('')) listed.push(key);
    const after = await countsOf(url!);
    expect(listed).toHaveLength(100);
    expect(after.Txn - filled.Txn + after.Range - filled.Range).toBe(2);
  });

  it('[C2] [B35] few transactions for many locks at once, and grants each key once', async () => {
    await using stage = new Stage();
    const [url] = (await server()).urls;
    const { guard } = stage.process([url!]);
    await (await guard.acquire('warm')).release();
    const before = await countsOf(url!);
    const locks = await Promise.all(Array.from({ length: 256 }, (_, n) => guard.acquire(`b${n}`)));
    const after = await countsOf(url!);
    expect(after.Txn - before.Txn).toBeLessThan(64);
    const tries = await Promise.all(Array.from({ length: 256 }, (_, n) => guard.tryAcquire(`b${n % 8}`)));
    expect(tries.filter((lock) => lock !== null)).toEqual([]);
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('[C3] one keep-alive for all locks of a period, however many they are', async () => {
    await using stage = new Stage();
    const [url] = (await server()).urls;
    const { guard } = stage.process([url!]);
    const locks = await Promise.all(
      Array.from({ length: 500 }, (_, n) => guard.acquire(`h${n}`, { ttl: '3s' })),
    );
    const before = await countsOf(url!);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const after = await countsOf(url!);
    expect(locks.every((lock) => lock.isHeld())).toBe(true);
    expect(after.KeepAlive - before.KeepAlive).toBeLessThanOrEqual(15);
    expect(after.Txn - before.Txn).toBe(0);
  });

  it('[C4] about two transactions for each hand-over between two processes', async () => {
    await using stage = new Stage();
    const [url] = (await server()).urls;
    const guards = [stage.process([url!]).guard, stage.process([url!]).guard];
    for (const guard of guards) await (await guard.acquire('warm')).release();
    const rounds = 10;
    const worker = async (n: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        const lock = await guards[n % 2]!.acquire('handed');
        await new Promise((resolve) => setTimeout(resolve, 2));
        await lock.release();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    const before = await countsOf(url!);
    await Promise.all(Array.from({ length: 8 }, (_, n) => worker(n)));
    const after = await countsOf(url!);
    const perHandOver = (after.Txn - before.Txn) / (8 * rounds);
    expect(perHandOver).toBeLessThan(2.6);
  });
});

describe('The server works', () => {
  it('no longer for a pair of a lock that was claimed hundreds of times than for one of a new lock', async () => {
    await using stage = new Stage();
    await using group = await startEtcd({ onDisk: false });
    const { guard } = stage.process(group.urls);
    const pairs = async (key: string, count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1) await (await guard.acquire(key)).release();
    };
    const cpuMs = { old: 0, fresh: 0 };
    const measured = async (which: keyof typeof cpuMs, key: string): Promise<void> => {
      const before = cpuMsOf(group.nodes[0]!.pid!);
      await pairs(key, 25);
      cpuMs[which] += cpuMsOf(group.nodes[0]!.pid!) - before;
    };
    await pairs('old', 400);
    for (let round = 0; round < 4; round += 1) {
      await measured('old', 'old');
      await measured('fresh', `fresh ${round}`);
    }
    const ratio = cpuMs.old / cpuMs.fresh;
    console.log(`server CPU of a pair after 400 claims: ${ratio.toFixed(2)} times that of the first`);
    // A unique key for each claim would cost two and a half times as much by then, and five times after a thousand.
    expect(ratio).toBeLessThan(1.7);
  }, 180_000);
});

/** What all threads of a process have used of a processor; one may end while it is looked at. */
function cpuMsOf(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const ofThread = (task: string): number => {
    const file = `${tasks}/${task}/schedstat`;
    return existsSync(file) ? Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e6 : 0;
  };
  return readdirSync(tasks).reduce((sum, task) => sum + ofThread(task), 0);
}

describe('One transaction', () => {
  it('[S1] grants a lock twice where two claims on it stand in it, which is why the port forbids that', async () => {
    await using stage = new Stage();
    const { client } = stage.process((await server()).urls);
    const locks = etcdLocks(client);
    stage.ends(() => locks.close());
    const claim = (id: string): Claim => {
      const key = `${stage.namespace}/lock/twice`;
      const times = { ttlMs: 2_000, ticketTtlMs: 2_000 };
      return { key, id, ...times, wait: false, session: 's', holder: { label: id } };
    };
    const answers = await locks.acquire([claim(systemRandom.id()), claim(systemRandom.id())]);
    expect(answers.map(({ status }) => status)).toEqual(['granted', 'granted']);
    // Guards keep the rule: of many tries that are made at once, one is granted.
    const { guard } = stage.process((await server()).urls);
    const tries = await Promise.all(Array.from({ length: 40 }, () => guard.tryAcquire('once')));
    expect(tries.filter((lock) => lock !== null)).toHaveLength(1);
  });

  it('uses names of keys again, so that the index of the server does not grow with the claims of a lock', async () => {
    await using stage = new Stage();
    const { guard, client } = stage.process((await server()).urls);
    const first = await guard.acquire('named');
    const names = await keysOf(client, stage.namespace, 'named');
    await first.release();
    for (let n = 0; n < 20; n += 1) await (await guard.acquire('named')).release();
    const last = await guard.acquire('named');
    expect(await keysOf(client, stage.namespace, 'named')).toEqual(names);
    expect(last.token).toBeGreaterThan(first.token);
  });
});
