// In memory, one process: Guard, its bare backend, and two libraries.
import { guardContender, guardRunner, lockRunner, TTL_MS } from './guard.mjs';
import { peer } from './peers.mjs';

export const memory = {
  name: 'memory',
  /** There is nothing that processes, or clients in one process, could share. */
  oneClient: true,
  /** Its pairs take microseconds: what is not compiled yet, or not in the cache, would be most of a short sample. */
  sampleFactor: 4,
  startServer: async () => ({ address: {}, pids: () => [], close: async () => undefined }),
};

export const contenders = {
  guard: guardContender(openLocks),
  raw: { waits: false, open: openRaw },
  'async-mutex': {
    waits: true,
    open: async () => {
      const { Mutex } = await peer('async-mutex/index.mjs');
      const mutexes = new Map();
      const mutexOf = (key) => mutexes.get(key) ?? mutexes.set(key, new Mutex()).get(key);
      return { pair: (key, work) => mutexOf(key).runExclusive(() => work()) };
    },
  },
  verrou: { waits: true, open: openVerrou() },
  'verrou, poll 10 ms': { waits: true, tuned: ['contention'], open: openVerrou({ retry: { delay: 10 } }) },
};

export const runners = {
  guard: guardRunner(async () => {
    const { kvRuns, memoryState } = await import('@guard/core');
    return { ...(await openLocks()), runs: kvRuns(memoryState()) };
  }),
  'guard, lock alone': lockRunner(openLocks),
};

function openVerrou(acquire) {
  return async () => {
    const { Verrou } = await peer('@verrou/core/build/index.js');
    const { memoryStore } = await peer('@verrou/core/build/src/drivers/memory.js');
    const verrou = new Verrou({ default: 'memory', stores: { memory: { driver: memoryStore() } } });
    const pair = async (key, work) => {
      const lock = verrou.createLock(key, '30s');
      await lock.acquire(acquire);
      await work();
      await lock.release();
    };
    return { pair };
  };
}

async function openLocks() {
  const { memoryLocks } = await import('@guard/core');
  return { locks: memoryLocks(), close: async () => undefined };
}

async function openRaw() {
  const { memoryLocks } = await import('@guard/core');
  const locks = memoryLocks();
  let claims = 0;
  const terms = { ttlMs: TTL_MS, ticketTtlMs: 6_000, wait: false, session: 'raw', holder: { label: 'raw' } };
  const pair = async (key, work) => {
    const claim = `raw.${(claims += 1)}`;
    const [{ token }] = await locks.acquire([{ key, id: claim, ...terms }]);
    await work(token);
    await locks.release([{ key, claim, token, session: 'raw' }]);
  };
  return { pair };
}
