/** State over a store that answers late, twice or never: every call ends, and says what it knows. */
import { createGuard, memoryLocks, memoryState, type StateStore, type StateWrite } from '@guard/core';
import { faultyBackend, faultyState, VirtualClock } from '@guard/testing';
import { watch } from '../runs/stage.js';

const clock = new VirtualClock();
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  const closed = Promise.all(closing.splice(0).map((close) => close()));
  await clock.advance(10_000);
  await closed;
});

const locks = memoryLocks({ clock });

function process(store: StateStore = memoryState({ clock })) {
  const backend = faultyBackend(locks, { clock });
  const state = faultyState(store, { clock });
  const guard = createGuard({ locks: backend.backend, state: state.store, clock });
  closing.push(() => guard.close());
  return { guard, locks: backend, state };
}

test('[S4] [S6] a write that was sent twice and met a newer holder may have been applied: stale, and in doubt', async () => {
  const store = memoryState({ clock });
  const [old, newer] = [process(store), process(store)];
  const lock = await old.guard.acquire('r', { ttl: '30s', renew: false });
  old.locks.playNotices({ type: 'drop' });
  old.state.loseReply('write');
  const late = watch(old.guard.state.set('k', 'older', { lock }));
  await clock.advance(100);
  await newer.guard.forceRelease('r', { note: 'for the test' });
  const next = await newer.guard.acquire('r');
  await newer.guard.state.set('k', 'newer', { lock: next });
  await clock.advance(6_000);
  expect(late.error).toMatchObject({ code: 'stale-token', inDoubt: true });
  await expect(old.guard.state.set('k', 'older', { lock })).rejects.toMatchObject({
    code: 'stale-token',
    inDoubt: false,
  });
});

test('a watcher that rejects is told of, and harms nobody', async () => {
  const { guard } = process();
  const told: string[] = [];
  guard.on('error', ({ during }) => told.push(during));
  const rejecting = (): unknown => Promise.reject(new Error('later'));
  await guard.state.watch('', rejecting);
  await guard.state.set('k', 1);
  await clock.advance(100);
  expect(told).toEqual(['a watcher of state']);
});

test('[L3] a listing that is never answered ends as unavailable', async () => {
  const { guard, state } = process();
  state.cut();
  const listing = watch(
    (async () => {
      for await (const entry of guard.state.list('')) return entry;
      return undefined;
    })(),
  );
  await clock.advance(10_000);
  expect(listing.error).toMatchObject({ code: 'unavailable' });
});

test('[L3] a watch that opens too late is closed again, and its caller has its answer long before', async () => {
  const inner = memoryState({ clock });
  let open = 0;
  const slow: StateStore = Object.assign(Object.create(inner) as StateStore, {
    watch: async (...args: Parameters<StateStore['watch']>) => {
      await new Promise<void>((resolve) => void clock.setTimer(resolve, 30_000));
      const { close } = await inner.watch(...args);
      open += 1;
      return { close: () => ((open -= 1), close()) };
    },
  });
  const { guard } = process(slow);
  const opening = watch(guard.state.watch('', () => undefined));
  await clock.advance(10_000);
  expect(opening.error).toMatchObject({ code: 'unavailable' });
  await clock.advance(60_000);
  expect(open).toBe(0);
});

/** A store of two servers, named by how their keys begin. The one that is away answers nothing. */
function ofTwoServers(inner: StateStore, away: string): StateStore {
  const server = (key: string): string => key.replace(/^.*\/state\//, '').split(':')[0]!;
  const isAway = (keys: readonly string[]): boolean => keys.some((key) => server(key) === away);
  const never = new Promise<never>(() => undefined);
  return Object.assign(Object.create(inner) as StateStore, {
    partition: server,
    read: (keys: readonly string[]) => (isAway(keys) ? never : inner.read(keys)),
    write: (writes: readonly StateWrite[]) =>
      isAway(writes.map(({ key }) => key)) ? never : inner.write(writes),
  } satisfies Partial<StateStore>);
}

test('[L3] a server that is away harms only its own keys: reads and writes of all others are answered beside it', async () => {
  const { guard } = process(ofTwoServers(memoryState({ clock }), 'dead'));
  const calls = (server: string, count: number) =>
    Array.from({ length: count }, (_, n) => {
      const key = `${server}:${n}`;
      return [watch(guard.state.get(key)), watch(guard.state.set(key, n))];
    }).flat();
  const dead = calls('dead', 10);
  const live = calls('live', 20);
  dead.push(...calls('dead', 10));
  await clock.advance(10);
  expect(live.filter(({ settled, error }) => !settled || error !== undefined)).toEqual([]);
  expect(dead.filter(({ settled }) => settled)).toEqual([]);
  await clock.advance(10_000);
  const unavailable = expect.objectContaining({ code: 'unavailable' }) as unknown;
  expect(dead.map(({ error }) => error)).toEqual(dead.map(() => unavailable));
});

test('[L3] many keys of several servers go side by side: a slow one does not hold the others', async () => {
  const inner = memoryState({ clock });
  const slowly = async <T>(answer: () => Promise<T>): Promise<T> => {
    await new Promise<void>((resolve) => void clock.setTimer(resolve, 100));
    return answer();
  };
  const store: StateStore = Object.assign(Object.create(inner) as StateStore, {
    partition: (key: string) => key.at(-1)!,
    read: (keys: readonly string[]) => slowly(() => inner.read(keys)),
  });
  const { guard } = process(store);
  const all = watch(Promise.all(Array.from({ length: 10 }, (_, n) => guard.state.get(`k${n}`))));
  await clock.advance(100);
  expect(all.settled).toBe(true);
});

describe('The end of a guard', () => {
  test('[L3] ends its watches: the store has none left, and their listeners hear of nothing more', async () => {
    const inner = memoryState({ clock });
    let open = 0;
    const counting: StateStore = Object.assign(Object.create(inner) as StateStore, {
      watch: async (...args: Parameters<StateStore['watch']>) => {
        const { close } = await inner.watch(...args);
        open += 1;
        return { close: () => ((open -= 1), close()) };
      },
    });
    const [{ guard }, other] = [process(counting), process(inner)];
    const heard: string[] = [];
    const watches = [await guard.state.watch('a', ({ key }) => heard.push(key))];
    watches.push(await guard.state.watch('', ({ key }) => heard.push(key)));
    await watches[0]!.close();
    expect(open).toBe(1);
    await guard.close();
    expect(open).toBe(0);
    await other.guard.state.set('a', 1);
    await clock.advance(100);
    expect(heard).toEqual([]);
    // Closing it once more is no fault.
    for (const one of watches) await one.close();
    expect(open).toBe(0);
  });

  test('[L3] a watch that is just opening is closed with the guard, and its caller is told so', async () => {
    const inner = memoryState({ clock });
    let open = 0;
    const slow: StateStore = Object.assign(Object.create(inner) as StateStore, {
      watch: async (...args: Parameters<StateStore['watch']>) => {
        await new Promise<void>((resolve) => void clock.setTimer(resolve, 500));
        const { close } = await inner.watch(...args);
        open += 1;
        return { close: () => ((open -= 1), close()) };
      },
    });
    const { guard } = process(slow);
    const opening = watch(guard.state.watch('', () => undefined));
    const closing = watch(guard.close());
    await clock.advance(400);
    expect(closing.settled).toBe(false);
    await clock.advance(200);
    expect(closing.settled).toBe(true);
    expect(opening.error).toMatchObject({ code: 'closed' });
    expect(open).toBe(0);
  });

  test('[L3] is not held up by a watch that cannot be closed', async () => {
    const inner = memoryState({ clock });
    const stuck: StateStore = Object.assign(Object.create(inner) as StateStore, {
      watch: async () => ({ close: () => new Promise<never>(() => undefined) }),
    });
    const { guard } = process(stuck);
    await guard.state.watch('', () => undefined);
    const closing = watch(guard.close());
    await clock.advance(1_100);
    expect(closing.settled).toBe(true);
  });
});
