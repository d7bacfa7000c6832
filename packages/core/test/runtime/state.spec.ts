/** State over a store that answers late, twice or never: every call ends, and says what it knows. */
import { createGuard, memoryLocks, memoryState, type StateStore } from '@guard/core';
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
