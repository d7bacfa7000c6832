/**
 * The contract suites on the adapters that live in core.
 */
import { memoryLocks } from '@guard/core';
import { describeLockBackend, VirtualClock, type TestRunner } from '@guard/testing';

const runner: TestRunner = { describe, it, skip: it.skip };

describeLockBackend({
  runner,
  name: 'memoryLocks',
  traits: memoryLocks().traits,
  create: async () => {
    const clock = new VirtualClock();
    const backend = memoryLocks({ clock });
    return { backend, connect: async () => backend, clock, cleanup: () => backend.close() };
  },
});
