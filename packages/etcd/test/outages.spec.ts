/** One server in trouble, and a wire that is cut: nothing hangs, nothing is taken for "busy", and it all comes back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf, startTcpProxy, until } from '@guard/testing';
import { startEtcd, type EtcdGroup } from '@guard/testing/servers';
import { Stage } from './support/stage.js';

describe('A server', () => {
  let group: EtcdGroup;
  beforeAll(async () => {
    group = await startEtcd({ onDisk: false });
  });
  afterAll(() => group.stop());

  it('[S2] [B19] that crashed and came back goes on: tokens grow, versions are new, waiters and watches hear', async () => {
    await using stage = new Stage();
    const [a, b] = [stage.process(group.urls), stage.process(group.urls)];
    const lock = await a.guard.acquire('k', { ttl: '4s' });
    const version = await a.guard.state.create('s', 1);
    const heard: unknown[] = [];
    const watch = await b.guard.state.watch<number>('s', (change) => void heard.push(change.entry?.value));
    stage.ends(() => watch.close());
    await group.kill();
    expect((await failureOf(b.guard.tryAcquire('other'))).code).toBe('unavailable');
    await group.restart({ keepData: true });
    const next = await b.guard.acquire('k', { wait: '20s' });
    expect(next.token).toBeGreaterThan(lock.token);
    // Two of them never held it at once: the first had lost it, or had given it up.
    expect(lock.isHeld()).toBe(false);
    await until(
      'a write',
      async () => (await a.guard.state.update('s', version!, 2).catch(() => null)) !== null,
    );
    await until('news of it', () => heard.includes(2));
  });

  it('[B20] that was compacted hands over, renews and tells watchers as before', async () => {
    await using stage = new Stage();
    const [a, b] = [stage.process(group.urls), stage.process(group.urls)];
    const heard: unknown[] = [];
    const watch = await b.guard.state.watch<number>('c', (change) => void heard.push(change.entry?.value));
    stage.ends(() => watch.close());
    const lock = await a.guard.acquire('k', { ttl: '2s' });
    const waiting = b.guard.acquire('k', { ttl: '2s', wait: '10s' });
    const { header } = await a.client.kv.range({ key: Buffer.from('any') });
    await a.client.kv.compact({ revision: header.revision, physical: true });
    await sleep(1_500);
    expect(lock.isHeld()).toBe(true);
    await lock.release();
    expect((await waiting).token).toBeGreaterThan(lock.token);
    await a.guard.state.create('c', 7);
    await until('news', () => heard.includes(7));
  });

  it('[L1] [B21] that hangs loses a lock in time, says unavailable, and serves again when it goes on', async () => {
    await using stage = new Stage();
    const { guard } = stage.process(group.urls);
    const lock = await guard.acquire('h', { ttl: '2s' });
    const startedMs = performance.now();
    await group.pause();
    try {
      await until('the loss', () => lock.signal.aborted, 4_000);
      expect(performance.now() - startedMs).toBeLessThan(3_000);
      expect((await failureOf(guard.acquire('other', { wait: '500ms' }))).code).toBe('unavailable');
    } finally {
      await group.resume();
    }
    expect((await guard.acquire('h', { wait: '20s' })).isHeld()).toBe(true);
  });
});

describe('A wire', () => {
  it('[S1] [L1] [B10] [B17] that is cut takes the lock from one side only when that side has let go of it', async () => {
    await using stage = new Stage();
    await using group = await startEtcd({ onDisk: false });
    const [node] = group.nodes;
    await using proxy = await startTcpProxy({ target: { host: node!.host, port: node!.port } });
    const far = stage.process([`${proxy.host}:${proxy.port}`]);
    const near = stage.process(group.urls);
    const lock = await far.guard.acquire('w', { ttl: '2s' });
    const waiting = near.guard.acquire('w', { ttl: '2s', wait: '20s' });
    await sleep(300);
    proxy.cut();
    let wasHeld = true;
    const overlap = waiting.then(() => lock.isHeld());
    await until('the loss', () => !(wasHeld = lock.isHeld()), 4_000);
    expect(wasHeld).toBe(false);
    expect(await overlap).toBe(false);
    proxy.heal();
    await (await waiting).release();
    expect((await far.guard.acquire('w', { wait: '20s' })).token).toBeGreaterThan(lock.token);
  });
});
