/**
 * The contract suites on the adapters that live in core.
 */
import { kvRuns, memoryLocks, memoryState } from '@guard/core';
import {
  describeLockBackend,
  describeRunStore,
  describeStateStore,
  VirtualClock,
  type TestRunner,
} from '@guard/testing';

const runner: TestRunner = { describe, it, skip: it.skip };

describeLockBackend({
  runner,
  virtualTime: true,
  name: 'memoryLocks',
  atOnce: true,
  traits: memoryLocks().traits,
  create: async () => {
    const clock = new VirtualClock();
    const backend = memoryLocks({ clock });
    return { backend, connect: async () => backend, clock, cleanup: () => backend.close() };
  },
});

describeStateStore({
  runner,
  virtualTime: true,
  name: 'memoryState',
  traits: memoryState().traits,
  create: async () => {
    const clock = new VirtualClock();
    const store = memoryState({ clock });
    return { store, connect: async () => store, clock, cleanup: () => store.close() };
  },
});

describeRunStore({
  runner,
  virtualTime: true,
  name: 'kvRuns on memoryState',
  traits: kvRuns(memoryState()).traits,
  create: async () => {
    const clock = new VirtualClock();
    const state = memoryState({ clock });
    const connect = async () => kvRuns(state);
    return { store: kvRuns(state), connect, clock, cleanup: () => state.close() };
  },
});
