/** A backend that has no queue answers `busy`: then the claims of a process poll, one of them for all. */
import { VirtualClock } from '@guard/testing';
import { createGuard, memoryLocks, type Guard } from '../../src/index.js';
import { plain, watch } from './stage.js';

function crowded(): { readonly clock: VirtualClock; readonly guard: Guard; readonly asked: string[] } {
  const clock = new VirtualClock();
  const backend = plain(memoryLocks({ clock }));
  const asked: string[] = [];
  backend.acquire = async (claims) =>
    claims.map(({ id }) => {
      asked.push(id);
      return { status: 'busy' };
    });
  return { clock, guard: createGuard({ locks: backend, clock }), asked };
}

it('[L2] a claim that waits long asks a few times in a second, and less often than at first', async () => {
  const { clock, guard, asked } = crowded();
  watch(guard.acquire('a', { wait: '60s' }));
  await clock.advance(10_000);
  expect(asked.length).toBeGreaterThan(40);
  expect(asked.length).toBeLessThanOrEqual(75);
});

it('[L2] [L3] claims that come again and again put off nobody who waits already', async () => {
  const { clock, guard, asked } = crowded();
  watch(guard.acquire('a', { wait: '60s' }));
  await clock.advance(1);
  const [first] = asked;
  for (let n = 0; n < 50; n += 1) {
    watch(guard.acquire('a', { wait: '60s' }));
    await clock.advance(40);
  }
  expect(asked.filter((id) => id === first).length).toBeGreaterThan(5);
});
