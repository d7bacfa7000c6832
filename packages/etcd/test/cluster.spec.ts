/** Three nodes: leaders that stop or die during a hold, and members that hang. */
import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf, startTcpProxy, until } from '@guard/testing';
import { startEtcd, type EtcdGroup } from '@guard/testing/servers';
import { Stage } from './support/stage.js';

describe('Three nodes', () => {
  let group: EtcdGroup;
  beforeAll(async () => {
    group = await startEtcd({ nodes: 3, onDisk: false });
  });
  afterAll(() => group.stop());

  it('[S1] serve locks in order over all members, as one does', async () => {
    await using stage = new Stage();
    const processes = group.nodes.map(({ url }) => stage.process([url]));
    let holders = 0;
    let last = 0n;
    const worker = async ({ guard }: (typeof processes)[number]): Promise<void> => {
      for (let round = 0; round < 8; round += 1) {
        const lock = await guard.acquire('shared');
        expect((holders += 1)).toBe(1);
        expect(lock.token).toBeGreaterThan(last);
        last = lock.token;
        await sleep(2);
        holders -= 1;
        await lock.release();
      }
    };
    await Promise.all([...processes, ...processes].map(worker));
  });

  it.each(['over all members', 'over the leader alone', 'over a follower alone'])(
    '[S1] [B19] never let two hold a lock while the leader stops and comes back (%s)',
    async (over) => {
      await using stage = new Stage();
      const leader = await group.leader();
      const follower = group.nodes.find((node) => node !== leader)!;
      const urls = { all: group.urls, leader: [leader.url], follower: [follower.url] };
      const way = over.includes('leader') ? 'leader' : over.includes('follower') ? 'follower' : 'all';
      const [a, b] = [stage.process(urls[way]), stage.process(group.urls)];
      const lock = await a.guard.acquire(over, { ttl: '4s' });
      const waiting = b.guard.acquire(over, { ttl: '4s', wait: '40s' });
      const overlap = waiting.then(() => lock.isHeld());
      await sleep(300);
      await leader.pause();
      try {
        await sleep(5_000);
      } finally {
        await leader.resume();
      }
      // Kept through the election, or lost in time: either way by one of them only. An old leader that comes back may
      // end a lease that was renewed at its successor (etcd-io/etcd#12528). The holder's watch tells it then, and a
      // waiter that finds the lock free lets that be heard first.
      await sleep(1_000);
      if (lock.isHeld()) await lock.release();
      expect(await overlap).toBe(false);
      expect((await waiting).token).toBeGreaterThan(lock.token);
    },
  );

  it('[L3] [S1] serve a client that is cut off from one of them, over the others', async () => {
    await using stage = new Stage();
    const [near, ...others] = group.nodes;
    await using proxy = await startTcpProxy({ target: { host: near!.host, port: near!.port } });
    const urls = [`http://${proxy.host}:${proxy.port}`, ...others.map(({ url }) => url)];
    const { guard } = stage.process(urls);
    const lock = await guard.acquire('cut', { ttl: '6s' });
    proxy.cut();
    for (let n = 0; n < 3; n += 1) await (await guard.acquire(`c${n}`, { wait: '20s' })).release();
    await sleep(4_000);
    expect(lock.isHeld()).toBe(true);
    expect(await lock.release()).toBe('released');
  });

  it('[S6] serve new locks after their leader was killed', async () => {
    await using stage = new Stage();
    const { guard } = stage.process(group.urls);
    await (await guard.acquire('before')).release();
    const leader = await group.leader();
    await leader.kill();
    try {
      const lock = await guard.acquire('after', { ttl: '4s', wait: '20s' });
      await sleep(3_000);
      expect(lock.isHeld()).toBe(true);
      await lock.release();
    } finally {
      await leader.restart({ keepData: true });
    }
  });

  it('[L3] serve locks and renewals while one member that does not lead hangs', async () => {
    await using stage = new Stage();
    const { guard } = stage.process(group.urls);
    const leader = await group.leader();
    const idle = group.nodes.find((node) => node !== leader)!;
    const lock = await guard.acquire('held', { ttl: '6s' });
    await idle.pause();
    try {
      for (let n = 0; n < 5; n += 1) await (await guard.acquire(`n${n}`, { wait: '20s' })).release();
      await sleep(4_000);
      expect(lock.isHeld()).toBe(true);
    } finally {
      await idle.resume();
    }
  });

  it('[S6] say unavailable without a majority, and lose locks in time', async () => {
    await using stage = new Stage();
    const { guard } = stage.process(group.urls);
    const lock = await guard.acquire('majority', { ttl: '2s' });
    const [first, second] = group.nodes;
    await Promise.all([first!.pause(), second!.pause()]);
    try {
      await until('the loss', () => lock.signal.aborted, 4_000);
      expect((await failureOf(guard.tryAcquire('none'))).code).toBe('unavailable');
    } finally {
      await Promise.all([first!.resume(), second!.resume()]);
    }
    expect((await guard.acquire('majority', { wait: '30s' })).token).toBeGreaterThan(lock.token);
  });
});
