/** A cluster of three masters: what a dead master, a moved slot and odd keys do to locks and state. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Guard } from '@guard/core';
import { failureOf, reasons, until } from '@guard/testing';
import type { Redis } from 'ioredis6';
import { startRedisCluster, type RedisCluster, type TestServer } from '@guard/testing/servers';
import { redisState } from '../src/index.js';
import { entryName, lockNames } from '../src/names.js';
import { slotOf, tagOf, TAGS } from '../src/slot.js';
import { viaIoredis6, viaNodeRedis6, type Via } from './support/clients.js';
import { keysIn, ownerOf, slotOfKey, startMove } from './support/cluster.js';
import { Stage } from './support/stage.js';

const LIBRARIES: [string, Via][] = [
  ['ioredis', viaIoredis6],
  ['node-redis', viaNodeRedis6],
];

it('deals keys out to tags that are spread evenly over the slots', () => {
  const slots = TAGS.map(slotOf).sort((a, b) => a - b);
  expect(slots.map((slot) => Math.floor(slot / 256))).toEqual(Array.from({ length: 64 }, (_, n) => n));
  const used = new Set(Array.from({ length: 2_000 }, (_, n) => tagOf(`ns/lock/${n}`)));
  expect(used.size).toBe(64);
});

it('[L3] asks another master for the time where one does not answer, and else always the same', async () => {
  const asked: string[] = [];
  const never = new Promise<never>(() => undefined);
  const state = redisState({
    ...{ place: 'of a cluster', scope: '', cluster: true, scan: () => never, subscribe: () => never },
    run: async (_script, [name]) => {
      asked.push(name!);
      if (asked.length === 1) return never;
      if (asked.length === 2) throw new Error('CLUSTERDOWN');
      return { value: '5000', resent: false, acks: 0 };
    },
  });
  void state.now();
  await expect(state.now()).rejects.toThrow('CLUSTERDOWN');
  expect([await state.now(), await state.now()]).toEqual([5, 5]);
  expect(new Set(asked.slice(0, 3)).size).toBe(3);
  expect(asked[3]).toBe(asked[2]);
});

describe.each(LIBRARIES)('A cluster, %s', (_, via) => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    // By default a cluster that lacks one slot refuses all of them until a replica has taken over.
    const args = ['--cluster-require-full-coverage', 'no'];
    cluster = await startRedisCluster({ appendOnly: false, nodeTimeoutMs: 1_000, args });
  });
  afterAll(() => cluster.stop());

  async function guardOf(stage: Stage, namespace?: string): Promise<Guard> {
    const client = await via({ cluster });
    stage.ends(() => client.end());
    return stage.guard(client.connection, namespace === undefined ? {} : { namespace });
  }

  it('[B47] works for any key, and for several at once that share no slot', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage);
    const waiter = await guardOf(stage, guard.namespace);
    const set = await guard.acquireAll(['foo', 'bar']);
    expect(set.isHeld()).toBe(true);
    expect(await set.release()).toBe('released');
    const odd = ['{t1}a', 'a{t1}', 'x{y', 'x}y{'];
    const keys = [...odd, ...Array.from({ length: 200 }, (_, n) => `random-${n * 7919}`)];
    await Promise.all(
      keys.map(async (key) => {
        const lock = await guard.acquire(key);
        await lock.extend('1m');
        const next = waiter.acquire(key, { wait: '10s' });
        expect(await lock.release()).toBe('released');
        await using taken = await next;
        expect(taken.token).toBeGreaterThan(lock.token);
        const version = await guard.state.create(key, 1);
        expect(await guard.state.update(key, version!, 2)).not.toBeNull();
      }),
    );
    const listed: string[] = [];
    for await (const entry of guard.state.list('')) listed.push(entry.key);
    expect(listed).toEqual([...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  });

  it('[S3] follows a slot that moves to another master, in the middle (ASK) and after it (MOVED)', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage);
    const waiter = await guardOf(stage, guard.namespace);
    const key = 'moves';
    const full = `${guard.namespace}/lock/${key}`;
    const names = lockNames(full);
    const lock = await guard.acquire(key, { ttl: '10s' });
    const waiting = waiter.acquire(key, { ttl: '10s', wait: '20s' });
    await until('it waits', async () => (await guard.inspect(key)).waiting === 1);
    const move = await startMove(stage, cluster, slotOfKey(full));
    expect(await move.keys()).toEqual(expect.arrayContaining([names.record, names.queue, names.tickets]));
    await move.keysNow();
    await lock.extend('20s');
    await move.finish();
    expect(await lock.release()).toBe('released');
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lock.token);
    expect(await next.release()).toBe('released');
  });

  it('[L3] reads state while its slot moves, before its keys went and after that', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage);
    await guard.state.set('there', 1);
    const move = await startMove(stage, cluster, slotOfKey(`${guard.namespace}/state/there`));
    expect((await guard.state.get('there'))?.value).toBe(1);
    await move.keysNow();
    expect((await guard.state.get('there'))?.value).toBe(1);
    await move.finish();
    await guard.state.set('there', 2);
    expect((await guard.state.get('there'))?.value).toBe(2);
  });

  it('[S1] [S6] [L1] a slot that stays open is told as what it is; its locks end by their deadlines and have no second holder', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage);
    const waiter = await guardOf(stage, guard.namespace);
    const slot = slotOfKey(`${guard.namespace}/lock/open`);
    const [first, second] = keysIn(slot, guard.namespace, 'lock', 2);
    const [entry] = keysIn(slot, guard.namespace, 'state', 1);
    const short = await guard.acquire(first!, { ttl: '1500ms' });
    const long = await guard.acquire(second!, { ttl: '20s' });
    await guard.state.set(entry!, 1);
    const waiting = waiter.acquire(first!, { ttl: '10s', wait: '20s' }).then((lock) => {
      return { lock, shortIsHeld: short.isHeld() };
    });
    await until('it waits', async () => (await guard.inspect(first!)).waiting === 1);
    const move = await startMove(stage, cluster, slot);
    await move.keysNow((await move.keys()).slice(0, 1));
    const refused = [
      guard.tryAcquire(first!),
      guard.tryAcquire(second!),
      waiter.acquire(keysIn(slot, guard.namespace, 'lock', 3)[2]!, { wait: '3s' }),
      guard.state.set(entry!, 2),
    ];
    for (const error of await Promise.all(refused.map(failureOf))) {
      expect(error.code).toBe('unavailable');
      expect(reasons(error)).toMatch(/slot of the cluster is being moved \(TRYAGAIN\).*cluster fix/s);
    }
    await until('the holder is told', () => short.signal.aborted, 3_000);
    expect(long.isHeld()).toBe(true);
    await move.keysNow();
    await move.finish();
    const next = await waiting;
    expect(next.shortIsHeld).toBe(false);
    expect(next.lock.token).toBeGreaterThan(short.token);
    expect(await next.lock.release()).toBe('released');
    await guard.state.set(entry!, 3);
    await long.extend('30s');
    expect(await long.release()).toBe('released');
  });

  it('[B38] [L3] a dead master harms only its own keys, and its replica goes on with them, for watches too', async () => {
    await using stage = new Stage();
    const guard = await guardOf(stage);
    const keys = Array.from({ length: 60 }, (_, n) => `d${n}`);
    const ownersOf = (section: string): Promise<TestServer[]> =>
      Promise.all(
        keys.map((key) => ownerOf(stage, cluster, slotOfKey(`${guard.namespace}/${section}/${key}`))),
      );
    const owners = await ownersOf('lock');
    const victim = owners[0]!;
    const healthy = keys.filter((_, n) => owners[n] !== victim);
    const entryOwners = await ownersOf('state');
    const healthyEntries = keys.filter((_, n) => entryOwners[n] !== victim);
    const movedEntries = keys.filter((_, n) => entryOwners[n] === victim);
    const heard = new Set<string>();
    const watch = await guard.state.watch<number>(
      'd',
      ({ key, entry }) => void heard.add(`${key}=${entry?.value}`),
    );
    stage.ends(() => watch.close());
    const locks = await Promise.all(keys.map((key) => guard.acquire(key, { ttl: '1500ms' })));
    const lost: string[] = [];
    guard.on('lock-lost', ({ key }) => void lost.push(key));
    await sleep(300); // the replica has them by now
    await victim.kill();
    const doomed = failureOf(guard.acquire('d0', { wait: '700ms' }));
    await Promise.all(healthyEntries.map((key) => guard.state.set(key, 1)));
    expect((await doomed).code).toMatch(/unavailable|lock-busy/);
    await until('the replica is master', async () => !(await cluster.masters()).includes(victim));
    await untilHeard(heard, healthyEntries, 1);
    const again = await guard.acquire('d0', { wait: '15s' });
    expect(again.token).toBeGreaterThan(locks[0]!.token);
    // Every lock of the other masters was renewed all the time.
    expect(lost.filter((key) => healthy.includes(key))).toEqual([]);
    for (const lock of locks) if (healthy.includes(lock.key)) expect(await lock.release()).toBe('released');
    await Promise.all(movedEntries.map((key) => guard.state.set(key, 2)));
    await untilHeard(heard, movedEntries, 2);
    await victim.restart({ keepData: false });
  });

  it.each<[string, Fault]>([
    ['killed', { begin: (node) => node.kill(), end: (node) => node.restart({ keepData: true }) }],
    ['stopped', { begin: (node) => node.pause(), end: (node) => node.resume() }],
  ])(
    '[L3] a master that is %s harms only its own state: all other keys are read and written beside it',
    async (_, fault) => {
      await using stage = new Stage();
      const guard = await guardOf(stage);
      const names = Array.from({ length: 30 }, (_, n) => `s${n}`);
      const owners = await Promise.all(
        names.map((name) => ownerOf(stage, cluster, slotOfKey(`${guard.namespace}/state/${name}`))),
      );
      const victim = owners[0]!;
      const lost = names.filter((_, n) => owners[n] === victim);
      const healthy = names.filter((_, n) => owners[n] !== victim);
      await Promise.all(names.map((name) => guard.state.set(name, 0)));
      // No replica takes over meanwhile: this is about the others.
      const replicas = cluster.nodes.filter((node) => !owners.includes(node));
      for (const { host, port } of replicas) {
        await stage.admin({ host, port }).config('SET', 'cluster-replica-no-failover', 'yes');
      }
      await fault.begin(victim);
      try {
        const doomed = lost.flatMap((name) => [
          failureOf(guard.state.get(name)),
          failureOf(guard.state.set(name, 'doomed')),
        ]);
        for (const round of [1, 2]) {
          const startedMs = performance.now();
          await Promise.all(
            healthy.map(async (name) => {
              await guard.state.set(name, round);
              expect((await guard.state.get(name))?.value).toBe(round);
            }),
          );
          expect(performance.now() - startedMs).toBeLessThan(1_500);
          await sleep(2_500); // by now the calls to the victim have failed, and are made again
        }
        for (const error of await Promise.all(doomed)) expect(error.code).toBe('unavailable');
      } finally {
        await fault.end(victim);
        for (const { host, port } of replicas) {
          await stage.admin({ host, port }).config('SET', 'cluster-replica-no-failover', 'no');
        }
      }
      await until('its keys are there again', () =>
        guard.state.set(lost[0]!, 'again').then(
          () => true,
          () => false,
        ),
      );
    },
  );

  it('[L3] a watch whose messages come by a member that is taken out of the cluster hears of everything all the same', async () => {
    await using stage = new Stage();
    const writer = await guardOf(stage);
    const nodes = cluster.nodes.map((node) => ({ node, admin: stage.admin(node) }));
    const heard: number[] = [];
    const other = await guardOf(stage, writer.namespace);
    const listen = () => other.state.watch<number>('', ({ entry }) => void heard.push(entry?.value ?? -1));
    const watch = await listen();
    stage.ends(() => watch.close());
    const lists = await Promise.all(nodes.map(({ admin }) => admin.call('CLIENT', 'LIST', 'TYPE', 'pubsub')));
    const found = nodes[lists.findIndex((list) => String(list).trim() !== '')]!;
    const roleOf = async (admin: Redis) => admin.role();
    const roles = await Promise.all(nodes.map((one) => roleOf(one.admin)));
    // Its replica takes its slots over, so that it has none.
    const isReplica = ([role, , port]: unknown[]) => role === 'slave' && port === found.node.port;
    const replica = nodes[roles.findIndex(isReplica)];
    await replica?.admin.call('CLUSTER', 'FAILOVER');
    await until('it has no slot', async () => (await roleOf(found.admin))[0] === 'slave', 10_000);
    // Both clients learn by whom they are redirected: from a member that is out they would not.
    for (const one of [writer, other]) {
      for (let n = 0; n < 40; n += 1) await one.state.set(`learn${n}`, -1);
    }
    const { admin } = found;
    const id = (await admin.call('CLUSTER', 'MYID')) as string;
    const rest = nodes.filter((one) => one !== found);
    await Promise.all(rest.map((one) => one.admin.call('CLUSTER', 'FORGET', id)));
    await admin.call('CLUSTER', 'RESET', 'SOFT');
    for (const [key, value] of [
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ] as const)
      await writer.state.set(key, value);
    await until('all of it is told', () => [1, 2, 3].every((value) => heard.includes(value)), 30_000);
  }, 90_000);

  it('keeps an entry and the index that lists it in one slot', () => {
    for (const key of ['a', 'b{c}', '}{']) expect(entryName(key)).toMatch(/^guard:\{\d+\}:s:/);
  });
});

/** What befalls a master, and its end. */
interface Fault {
  readonly begin: (node: TestServer) => Promise<unknown>;
  readonly end: (node: TestServer) => Promise<unknown>;
}

function untilHeard(heard: ReadonlySet<string>, keys: readonly string[], value: number): Promise<unknown> {
  return until(`the watch tells all that is ${value}`, () =>
    keys.every((key) => heard.has(`${key}=${value}`)),
  );
}
