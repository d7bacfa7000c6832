import { VirtualClock, SeededRandom } from '@guard/testing';
import { GuardError, createGuard, currentLock, memoryLocks, type Guard } from '../../src/index.js';

function stage(): { clock: VirtualClock; guard: () => Guard } {
  const clock = new VirtualClock();
  const locks = memoryLocks({ clock });
  let seed = 0;
  return { clock, guard: () => createGuard({ locks, clock, random: new SeededRandom((seed += 1)) }) };
}

describe('a lock', () => {
  it('is granted, held and given back', async () => {
    const { guard } = stage();
    const lock = await guard().acquire('a');
    expect(lock.isHeld()).toBe(true);
    expect(lock.token > 0n).toBe(true);
    expect(await lock.release()).toBe('released');
    expect(lock.isHeld()).toBe(false);
    expect(await lock.release()).toBe('released');
  });

  it('[S1] is not granted to a second claim while it is held', async () => {
    const { clock, guard } = stage();
    const [a, b] = [guard(), guard()];
    const lock = await a.acquire('a');
    expect(await b.tryAcquire('a')).toBeNull();
    const waiting = b.acquire('a', { wait: '1m' });
    await clock.advance(40_000);
    expect(lock.isHeld()).toBe(true);
    await lock.release();
    await clock.advance(10);
    const second = await waiting;
    expect(second.token > lock.token).toBe(true);
    await clock.advance(60_000);
    expect(second.isHeld()).toBe(true);
    await second.release();
  });

  it('answers lock-busy when the wait ends', async () => {
    const { clock, guard } = stage();
    const lock = await guard().acquire('a');
    const failed = guard().acquire('a', { wait: 500 }).catch((error: unknown) => error);
    await clock.advance(600);
    expect(GuardError.is(await failed, 'lock-busy')).toBe(true);
    await lock.release();
  });

  it('is ambient inside withLock', async () => {
    const { guard } = stage();
    const result = await guard().withLock('a', async (lock) => {
      await Promise.resolve();
      expect(currentLock()).toBe(lock);
      return 5;
    });
    expect(result).toBe(5);
    expect(currentLock()).toBeUndefined();
  });
});
