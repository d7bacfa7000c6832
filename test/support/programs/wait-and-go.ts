/**
 * A whole program of an application: waits for a lock, says that it has it, gives it back and ends. What keeps it
 * alive meanwhile is Guard alone, or it dies in the middle of the wait.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard, type LockBackend } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { opened, type Programmed } from './opener.js';

const main: WorkerMain<Programmed & { releaseLateMs?: number }> = async ({ input, tell }) => {
  process.channel?.unref();
  const { locks, close } = await opened(input);
  const guard = createGuard({ locks: slow(locks, input.releaseLateMs ?? 0), namespace: input.namespace });
  const lock = await guard.acquire('ex', { wait: '20s' });
  await tell('got');
  await lock.release();
  await guard.close();
  await close();
};
export default main;

/** The same backend, whose answer to a release comes late, and keeps nothing alive on its way. */
function slow(locks: LockBackend, lateMs: number): LockBackend {
  const release = locks.release.bind(locks);
  return Object.assign(locks, {
    release: async (releases: Parameters<typeof release>[0]) => {
      const answers = await release(releases);
      await sleep(lateMs, undefined, { ref: false });
      return answers;
    },
  });
}
