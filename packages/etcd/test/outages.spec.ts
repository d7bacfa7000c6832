/** One server in trouble, and a wire that is cut: nothing hangs, nothing is taken for "busy", and it all comes back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { failureOf, startTcpProxy, until } from '@guard/testing';
import { startEtcd, type EtcdGroup } from '@guard/testing/servers';
import { keysOf, Stage } from './support/stage.js';

describe('A server', () => {
  let group: EtcdGroup;
  beforeAll(async () => {
    group = await startEtcd({ onDisk: false });
  });
  afterAll(() => group.stop());

  it('[S2] [B26] that was restarted goes on: waiters are woken, watches hear, tokens grow, versions are new', async () => {
    await using stage = new Stage();
    const [a, b] = [stage.process(group.urls), stage.process(group.urls)];
    const lock = await a.guard.acquire('k', { ttl: '30s' });
    const waiting = b.guard.acquire('k', { ttl: '30s', wait: '60s' });
    const version = await a.guard.state.create('s', 0);
    const heard: number[] = [];
    const watch = await b.guard.state.watch<number>('s', ({ entry }) => void heard.push(entry?.value ?? -1));
    stage.ends(() => watch.close());
    await until('its ticket', async () => (await a.guard.inspect('k')).waiting === 1);
    await group.kill();
    expect((await failureOf(b.guard.tryAcquire('other'))).code).toBe('unavailable');
    await group.restart({ keepData: true });
    await until('it serves', async () => (await a.guard.tryAcquire('other').catch(() => null)) !== null);
    await until('the release', async () => (await lock.release()) === 'released');
    const releasedAtMs = performance.now();
    const next = await waiting;
    // Long before the lease would have ended.
    expect(performance.now() - releasedAtMs).toBeLessThan(10_000);
    expect(next.token).toBeGreaterThan(lock.token);
    let last: string | null = version;
    for (let value = 1; value <= 5; value += 1) last = await a.guard.state.update('s', last!, value);
    await until('news of it', () => heard.includes(5));
    expect(heard).toEqual([...heard].sort((one, other) => one - other));
  });

  it('[B25] [S6] [S4] that is down is told within the wait, and nothing of the claim appears when it is back', async () => {
    await using stage = new Stage();
    const { guard, client } = stage.process(group.urls);
    await (await guard.acquire('warm')).release();
    await group.kill();
    const startedMs = performance.now();
    const failures = await Promise.all([
      failureOf(guard.acquire('a', { wait: '1s' })),
      failureOf(guard.tryAcquire('b')),
    ]);
    expect(performance.now() - startedMs).toBeLessThan(10_000);
    expect(failures.map(({ code }) => code)).toEqual(['unavailable', 'unavailable']);
    await group.restart({ keepData: true });
    await until('it serves', async () => (await guard.tryAcquire('c').catch(() => null)) !== null);
    await sleep(1_500);
    expect(await keysOf(client, stage.namespace, 'a')).toEqual([]);
    expect(await keysOf(client, stage.namespace, 'b')).toEqual([]);
    expect((await guard.tryAcquire('a'))?.isHeld()).toBe(true);
  });

  it('[S2] that was compacted hands over, renews and tells watchers as before', async () => {
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

  it('[L1] that hangs loses a lock in time, says unavailable, and serves again when it goes on', async () => {
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
  it('[S1] [L1] [B10] that is cut takes the lock from one side only when that side has let go of it', async () => {
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
