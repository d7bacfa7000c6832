// In memory: Guard, its bare backend, and two libraries of one process.
import { createGuard, memoryLocks } from '@guard/core';

export async function memoryContenders() {
  const { Mutex } = await import('../peers/node_modules/async-mutex/index.mjs');
  const { Verrou } = await import('../peers/node_modules/@verrou/core/build/index.js');
  const { memoryStore } = await import('../peers/node_modules/@verrou/core/build/src/drivers/memory.js');
  const guard = createGuard({ locks: memoryLocks() });
  const bare = memoryLocks();
  const mutexes = new Map();
  const verrou = new Verrou({ default: 'memory', stores: { memory: { driver: memoryStore() } } });
  let claims = 0;
  const raw = async (key, work) => {
    const claim = `raw.${(claims += 1)}`;
    const terms = {
      ttlMs: 30_000,
      ticketTtlMs: 6_000,
      wait: false,
      session: 'raw',
      holder: { label: 'raw' },
    };
    const [{ token }] = await bare.acquire([{ key, id: claim, ...terms }]);
    await work(token);
    await bare.release([{ key, claim, token, session: 'raw' }]);
  };
  const mutexOf = (key) => mutexes.get(key) ?? mutexes.set(key, new Mutex()).get(key);
  return {
    contenders: {
      guard: { waits: true, pair: (key, work) => guard.withLock(key, (lock) => work(lock.token)) },
      raw: { waits: false, pair: raw },
      'async-mutex': { waits: true, pair: (key, work) => mutexOf(key).runExclusive(() => work()) },
      verrou: {
        waits: true,
        slowWaits: true,
        pair: (key, work) => verrou.createLock(key, '30s').run(() => work()),
      },
    },
    close: () => guard.close(),
  };
}
