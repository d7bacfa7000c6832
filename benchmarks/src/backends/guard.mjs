// Guard as a contender: the same on every backend, as an application would use it. It is imported by the process that
// plays it, and by no other: a run starts dozens of processes, and each waits for what it imports.

const WAIT_MS = 120_000;
export const TTL_MS = 30_000;

/** `openLocks(address, options)` answers `{ locks, close }`. */
export function guardContender(openLocks) {
  return {
    waits: true,
    holds: true,
    renews: true,
    open: async (address, options = {}) => {
      const { createGuard } = await import('@guard/core');
      const { locks, close } = await openLocks(address, options);
      const guard = createGuard({ locks, namespace: 'bench' });
      return {
        ...lockingBy(guard),
        close: () =>
          guard
            .close()
            .then(() => locks.close())
            .then(close),
      };
    },
  };
}

function lockingBy(guard) {
  const options = { ttl: TTL_MS, wait: WAIT_MS };
  return {
    pair: (key, work) => guard.withLock(key, options, (lock) => work(lock.token)),
    hold: async (key, { ttlMs }) => {
      const lock = await guard.acquire(key, { ttl: ttlMs, wait: WAIT_MS });
      return {
        token: lock.token,
        isHeld: () => lock.isHeld(),
        deadlineInMs: () => lock.remainingMs(),
        onLost: (listener) => lock.signal.addEventListener('abort', listener, { once: true }),
        release: () => lock.release(),
      };
    },
  };
}

/**
 * Single runs: a method under `@SingleRun()` with a key of its own for each call. `openStores(address, options)` answers
 * `{ locks, runs, close }`.
 */
export function guardRunner(openStores) {
  return {
    compares:
      'a method under @SingleRun with a new key: run record, lock, work, result; done when the record says so',
    open: async (address, options = {}) => {
      const { bindGuard, createGuard, SingleRun } = await import('@guard/core');
      const { locks, runs, close } = await openStores(address, options);
      const guard = createGuard({ locks, runs, namespace: 'bench' });
      const job = jobUnder(SingleRun);
      bindGuard(job, guard);
      const pair = (key, work) => job.once(key, work);
      return {
        pair,
        close: () =>
          guard
            .close()
            .then(() => locks.close())
            .then(close),
      };
    },
  };
}

/** The same work under a lock alone: what a run costs beyond it. */
export function lockRunner(openLocks) {
  return { ...guardContender(openLocks), compares: 'the same work under a lock alone, without a record' };
}

/** Decorated by hand: this file is not compiled. */
function jobUnder(SingleRun) {
  class Job {
    async once(_key, work) {
      await work();
    }
  }
  const method = Object.getOwnPropertyDescriptor(Job.prototype, 'once');
  const decorate = SingleRun({ name: 'bench', key: (key) => key });
  Object.defineProperty(Job.prototype, 'once', decorate(Job.prototype, 'once', method) ?? method);
  return new Job();
}
