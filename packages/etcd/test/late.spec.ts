/**
 * Requests for one claim that cross each other: whatever is carried out or answered late speaks of a state that was
 * overtaken. It changes nothing that was answered since, and leaves nothing behind that nobody knows of.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemRandom, type Claim, type LeaseRef, type LockBackend } from '@guard/core';
import { until } from '@guard/testing';
import { startEtcd } from '@guard/testing/servers';
import type { Etcd3 } from 'etcd3';
import { etcdLocks, type EtcdClient } from '../src/index.js';
import { lateClient, type LateClient } from './support/late.js';
import { server, stopServer } from './support/place.js';
import { keysOf, Stage } from './support/stage.js';

afterAll(stopServer);

interface Late extends LateClient {
  readonly locks: LockBackend;
}

/** What the cases stand on: a process whose transactions can be late, and another one. */
async function places(stage: Stage): Promise<{ near: LockBackend; late: Late; admin: Etcd3 }> {
  const { urls } = await server();
  const locksOn = (client: EtcdClient): LockBackend => {
    const locks = etcdLocks(client);
    stage.ends(() => locks.close());
    return locks;
  };
  const late = lateClient(stage.client(urls));
  const admin = stage.client(urls);
  return { near: locksOn(admin), late: Object.assign(late, { locks: locksOn(late.client) }), admin };
}

function claimOf(stage: Stage, key: string, more: Partial<Claim> = {}): Claim {
  const times = { ttlMs: 10_000, ticketTtlMs: 3_000 };
  const named = {
    key: `${stage.namespace}/lock/${key}`,
    id: systemRandom.id(),
    session: `s-${stage.namespace}`,
  };
  return { ...named, ...times, wait: true, holder: { label: key }, ...more };
}

async function asked(locks: LockBackend, claim: Claim): Promise<string> {
  return (await locks.acquire([claim]))[0]!.status;
}

async function granted(locks: LockBackend, claim: Claim): Promise<LeaseRef> {
  const [answer] = await locks.acquire([claim]);
  if (answer?.status !== 'granted') throw new Error(`not granted: ${answer?.status}`);
  return { key: claim.key, claim: claim.id, token: answer.token, session: claim.session };
}

async function leasesOf(admin: Etcd3, stage: Stage, key: string): Promise<string[]> {
  const { kvs } = await admin.getAll().prefix(`guard/l/${stage.namespace}/lock/${key}\0`).exec();
  return kvs.map(({ lease }) => lease);
}

describe('An answer that comes late', () => {
  it('[S1] [S5] “queued” leaves the lock alone that another call of the claim was granted meanwhile, whatever became of its ticket’s lease', async () => {
    await using stage = new Stage();
    const { near, late, admin } = await places(stage);
    const [a, b, c] = [claimOf(stage, 'q'), claimOf(stage, 'q'), claimOf(stage, 'q')];
    const first = await granted(near, a);
    expect(await asked(late.locks, b)).toBe('queued');
    const tickets = (await leasesOf(admin, stage, 'q')).filter((_, n, all) => all.indexOf(all[n]!) === n);
    const letGo = late.holdAnswers();
    const overtaken = late.locks.acquire([b]);
    await until('it is carried out', () => late.held === 1);
    await sleep(200);
    late.goOn();
    expect(await near.release([first])).toEqual([{ status: 'released' }]);
    const lease = await granted(late.locks, b);
    const [home] = await leasesOf(admin, stage, 'q');
    // The lease of its ticket ends: no key of the lock stands under it any more.
    for (const ID of tickets) if (ID !== home) await admin.leaseClient.leaseRevoke({ ID });
    await sleep(200);
    expect(await asked(near, c)).toBe('queued');
    letGo();
    expect(await overtaken).toEqual([{ status: 'granted', token: lease.token }]);
    expect(await asked(near, c)).toBe('queued');
    expect(await late.locks.renew([{ ...lease, ttlMs: 10_000 }])).toEqual([{ status: 'renewed' }]);
    expect(await late.locks.release([lease])).toEqual([{ status: 'released' }]);
  });

  it('[S5] “lost” of a release leaves the grant alone that the claim got anew meanwhile', async () => {
    await using stage = new Stage();
    const { late, admin } = await places(stage);
    const claim = claimOf(stage, 'r');
    const old = await granted(late.locks, claim);
    await admin.delete().key((await keysOf(admin, stage.namespace, 'r'))[0]!);
    const letGo = late.holdAnswers();
    const releasing = late.locks.release([old]);
    await until('it is carried out', () => late.held === 1);
    await sleep(200);
    late.goOn();
    const anew = await granted(late.locks, claim);
    expect(anew.token).toBeGreaterThan(old.token);
    letGo();
    expect(await releasing).toEqual([{ status: 'lost' }]);
    expect(await late.locks.renew([{ ...anew, ttlMs: 10_000 }])).toEqual([{ status: 'renewed' }]);
    expect(await late.locks.release([anew])).toEqual([{ status: 'released' }]);
  });
});

describe('A request that is carried out late', () => {
  it('[S5] never shortens what a renewal promised since', async () => {
    await using stage = new Stage();
    const { late, admin } = await places(stage);
    const claim = claimOf(stage, 'e', { ttlMs: 3_000 });
    const lease = await granted(late.locks, claim);
    const letGo = late.holdRequests();
    const again = late.locks.acquire([claim]);
    await until('it is on its way', () => late.held === 1);
    late.goOn();
    expect(await late.locks.renew([{ ...lease, ttlMs: 60_000 }])).toEqual([{ status: 'renewed' }]);
    const extended = await leasesOf(admin, stage, 'e');
    letGo();
    expect(await again).toEqual([{ status: 'granted', token: lease.token }]);
    expect(await leasesOf(admin, stage, 'e')).toEqual(extended);
  });

  it('[S4] [L2] [L3] leaves nothing behind of a claim that was given back: the next one has the lock at once', async () => {
    await using stage = new Stage();
    const { near, late, admin } = await places(stage);
    // It keeps the lease alive that the key would stand under.
    await granted(late.locks, claimOf(stage, 'other'));
    const claim = claimOf(stage, 'l');
    const letGo = late.holdRequests();
    const first = late.locks.acquire([claim]);
    await until('it is on its way', () => late.held === 1);
    late.goOn();
    const lease = await granted(late.locks, claim);
    expect(await late.locks.release([lease])).toEqual([{ status: 'released' }]);
    letGo();
    expect(await first).toEqual([{ status: 'cancelled' }]);
    await until(
      'its key is gone',
      async () => (await keysOf(admin, stage.namespace, 'l')).length === 0,
      2_000,
    );
    expect(await asked(near, claimOf(stage, 'l'))).toBe('granted');
  });

  it('[L3] nor where its answer is lost as well, while its process keeps the lease alive for others', async () => {
    await using stage = new Stage();
    const { near, late, admin } = await places(stage);
    const times = { ttlMs: 2_000, ticketTtlMs: 2_000 };
    const other = await granted(late.locks, claimOf(stage, 'other', times));
    const claim = claimOf(stage, 'n', times);
    const letGo = late.holdRequests();
    late.loseAnswers();
    const first = late.locks.acquire([claim]);
    await until('it is on its way', () => late.held === 1);
    late.goOn();
    const lease = await granted(late.locks, claim);
    expect(await late.locks.release([lease])).toEqual([{ status: 'released' }]);
    letGo();
    expect((await first)[0]!.status).toBe('failed');
    expect(await keysOf(admin, stage.namespace, 'n')).toHaveLength(1);
    const next = claimOf(stage, 'n', times);
    const isNext = async (): Promise<boolean> => {
      expect(await late.locks.renew([{ ...other, ttlMs: 2_000 }])).toEqual([{ status: 'renewed' }]);
      return (await asked(near, next)) === 'granted';
    };
    await until('the next one has it', isNext, 8_000);
  });
});

it('[S5] A move that is carried out late, and was not answered, moves nothing that was renewed since', async () => {
  await using stage = new Stage();
  const { late, admin } = await places(stage);
  const lease = await granted(late.locks, claimOf(stage, 'm'));
  const letGo = late.holdRequests();
  const moving = late.locks.renew([{ ...lease, ttlMs: 60_000 }]);
  await until('it is on its way', () => late.held === 1);
  late.giveUp();
  expect((await moving)[0]!.status).toBe('failed');
  late.goOn();
  // Where the key stands already, and written again all the same.
  expect(await late.locks.renew([{ ...lease, ttlMs: 10_000 }])).toEqual([{ status: 'renewed' }]);
  const home = await leasesOf(admin, stage, 'm');
  letGo();
  await sleep(300);
  expect(await leasesOf(admin, stage, 'm')).toEqual(home);
  expect(await late.locks.renew([{ ...lease, ttlMs: 10_000 }])).toEqual([{ status: 'renewed' }]);
  expect(await late.locks.release([lease])).toEqual([{ status: 'released' }]);
  expect(await keysOf(admin, stage.namespace, 'm')).toEqual([]);
});

describe('A key that nobody renews', () => {
  /** A lock that its holder let run out, and the request on its way that takes it away. */
  async function beingTakenAway(stage: Stage, key: string) {
    const { near, late } = await places(stage);
    const claim = claimOf(stage, key, { ttlMs: 2_000 });
    const lease = await granted(late.locks, claim);
    const letGo = late.holdRequests();
    await until('it is being taken away', () => late.held === 1, 5_000);
    late.goOn();
    return { near, late, claim, lease, letGo };
  }

  it('[S1] is not told to be renewed once it is being taken away', async () => {
    await using stage = new Stage();
    const { near, late, lease, letGo } = await beingTakenAway(stage, 'x');
    expect(await late.locks.renew([{ ...lease, ttlMs: 2_000 }])).toEqual([{ status: 'lost' }]);
    letGo();
    await until(
      'it is free',
      async () => (await asked(near, claimOf(stage, 'x', { wait: false }))) === 'granted',
    );
  });

  it('[S1] [S4] is not taken away by a step on its way when its claim asked again and was granted it', async () => {
    await using stage = new Stage();
    const { near, late, claim, lease, letGo } = await beingTakenAway(stage, 'y');
    expect(await granted(late.locks, claim)).toEqual(lease);
    letGo();
    await sleep(300);
    expect(await asked(near, claimOf(stage, 'y', { wait: false }))).toBe('busy');
    expect(await late.locks.renew([{ ...lease, ttlMs: 2_000 }])).toEqual([{ status: 'renewed' }]);
  });

  it('[L2] [L3] and that was handed the lock is not kept alive by those of its process that wait behind it', async () => {
    await using stage = new Stage();
    const { near, late } = await places(stage);
    const times = { ticketTtlMs: 2_000 };
    const [nobodys, waiting] = [claimOf(stage, 'h', times), claimOf(stage, 'h', times)];
    const first = await granted(near, claimOf(stage, 'h'));
    expect(await asked(late.locks, nobodys)).toBe('queued');
    expect(await asked(late.locks, waiting)).toBe('queued');
    expect(await near.release([first])).toEqual([{ status: 'released' }]);
    const startedMs = performance.now();
    const isNext = async (): Promise<boolean> => (await asked(late.locks, waiting)) === 'granted';
    await until('the next one has it', isNext, 8_000);
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });

  it('[C3] [L3] is taken away with others in few requests, and asked for ever more rarely while nothing gets through', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const { prefix, leaseClient, watchClient, kv } = stage.client(urls);
    let down = false;
    let asked = 0;
    const txn: EtcdClient['kv']['txn'] = (...call) => {
      asked += 1;
      return down ? Promise.reject(new Error('no way')) : kv.txn(...call);
    };
    const range = kv.range.bind(kv);
    const locks = etcdLocks({ prefix, leaseClient, watchClient, kv: { range, txn } as EtcdClient['kv'] });
    stage.ends(() => locks.close());
    const claims = Array.from({ length: 60 }, (_, n) => claimOf(stage, `r${n}`, { ttlMs: 2_000 }));
    for (const some of [claims.slice(0, 30), claims.slice(30)]) await locks.acquire(some);
    [down, asked] = [true, 0];
    await sleep(6_000);
    // Two batches, and one by one after 500 ms, 1 s and 2 s.
    expect(asked).toBeGreaterThan(2);
    expect(asked).toBeLessThan(8);
    [down, asked] = [false, 0];
    const admin = stage.client(urls);
    const left = (): Promise<string[]> => admin.getAll().prefix(`guard/l/${stage.namespace}/`).keys();
    await until('they are gone', async () => (await left()).length === 0, 8_000);
    expect(asked).toBeLessThan(6);
  });

  it('[L3] nor is one of which its process knows no claim', async () => {
    await using stage = new Stage();
    const { late, admin } = await places(stage);
    const first = await granted(late.locks, claimOf(stage, 'z'));
    const [name] = await keysOf(admin, stage.namespace, 'z');
    const [lease] = await leasesOf(admin, stage, 'z');
    expect(await late.locks.release([first])).toEqual([{ status: 'released' }]);
    await granted(late.locks, claimOf(stage, 'other'));
    // As a request leaves it that a member carries out after it hung.
    const value = `gone|${JSON.stringify({ session: 's', holder: { label: 'gone' }, waits: true })}`;
    await admin
      .put(`${name!.slice(0, -1)}7`)
      .value(value)
      .lease(lease!);
    const next = claimOf(stage, 'z');
    await until('the next one has it', async () => (await asked(late.locks, next)) === 'granted', 8_000);
  });
});

it('[S6] A release says “lost” after its cluster forgot the grant, although the client sent it more than once', async () => {
  await using stage = new Stage();
  await using group = await startEtcd({ onDisk: false });
  const real = stage.client(group.urls);
  for (let n = 0; n < 20; n += 1) await real.put('pad').value(String(n));
  const { prefix, leaseClient, watchClient, kv } = real;
  // The client reads the deadline once for every sending.
  const txn: EtcdClient['kv']['txn'] = async (request, options) => {
    void options?.deadline;
    await sleep(1);
    return kv.txn(request, options);
  };
  const twice = { range: kv.range.bind(kv), txn } as unknown as EtcdClient['kv'];
  const locks = etcdLocks({ prefix, leaseClient, watchClient, kv: twice });
  stage.ends(() => locks.close());
  const [known, gone] = [claimOf(stage, 'k'), claimOf(stage, 'g')];
  const [here, there] = [await granted(locks, known), await granted(locks, gone)];
  await real.delete().key((await keysOf(real, stage.namespace, 'k'))[0]!);
  expect(await locks.release([here])).toEqual([{ status: 'lost', resent: true }]);
  await group.restart({ keepData: false });
  const release = (): Promise<unknown> => locks.release([there]).catch(() => undefined);
  await until('it is answered', async () => {
    const answer = await release();
    if (answer !== undefined) expect(answer).toEqual([{ status: 'lost' }]);
    return answer !== undefined;
  });
});
