/** A stage for tests of the runtime: guards of several "processes" over one shared memory backend, time in hand. */
import { SeededRandom, VirtualClock, faultyBackend, faultyState, type FaultyBackend } from '@guard/testing';
import {
  createGuard,
  memoryLocks,
  memoryState,
  type Guard,
  type GuardOptions,
  type LockBackend,
} from '../../src/index.js';

/** One process of a test: a guard with its own connection and its own faults. */
export interface TestProcess {
  readonly guard: Guard;
  readonly net: FaultyBackend;
}

/** A shared backend and clock. */
export function stage(): {
  readonly clock: VirtualClock;
  readonly process: (options?: Partial<GuardOptions>) => TestProcess;
} {
  const clock = new VirtualClock();
  const locks = memoryLocks({ clock });
  const state = memoryState({ clock });
  let seed = 0;
  const process = (options: Partial<GuardOptions> = {}): TestProcess => {
    const net = faultyBackend(locks, { clock });
    const random = new SeededRandom((seed += 1));
    const guard = createGuard({
      locks: net.backend,
      state: faultyState(state, { clock }).store,
      clock,
      random,
      node: { label: `node-${seed}` },
      ...options,
    });
    return { guard, net };
  };
  return { clock, process };
}

/** How a promise stands: for asking whether something has settled yet. */
export function watch<T>(promise: Promise<T>): { value?: T; error?: unknown; settled: boolean } {
  const seen: { value?: T; error?: unknown; settled: boolean } = { settled: false };
  promise.then(
    (value) => Object.assign(seen, { value, settled: true }),
    (error: unknown) => Object.assign(seen, { error, settled: true }),
  );
  return seen;
}

/** A backend as an object whose verbs a test can replace. */
export function plain(inner: LockBackend): { -readonly [K in keyof LockBackend]: LockBackend[K] } {
  return {
    name: inner.name,
    traits: inner.traits,
    acquire: (claims) => inner.acquire(claims),
    renew: (renewals) => inner.renew(renewals),
    release: (releases) => inner.release(releases),
    inspect: (query) => inner.inspect(query),
    close: () => inner.close(),
  };
}
