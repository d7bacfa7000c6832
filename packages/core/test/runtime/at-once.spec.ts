import { SeededRandom, VirtualClock } from '@guard/testing';
import { createGuard, memoryLocks, type Guard, type Lock } from '../../src/index.js';
import { watch } from './stage.js';

/** Guards straight on one memory backend, so that answers come without a promise. */
function stage(guards = 1): { readonly clock: VirtualClock; readonly guards: readonly Guard[] } {
  const clock = new VirtualClock();
  const locks = memoryLocks({ clock });
  const make = (_: unknown, index: number): Guard =>
    createGuard({ locks, clock, random: new SeededRandom(index + 1) });
  return { clock, guards: Array.from({ length: guards }, make) };
}

describe('a backend that answers at once', () => {
  it('[S1] [S2] lets one waiter in at a time, with growing tokens, over several guards', async () => {
    const { clock, guards } = stage(3);
    let inside = 0;
    let most = 0;
    const tokens: bigint[] = [];
    const work = async (lock: Lock): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      tokens.push(lock.token);
      await Promise.resolve();
      expect(lock.isHeld()).toBe(true);
      inside -= 1;
    };
    const all = watch(
      Promise.all(
        Array.from({ length: 300 }, (_, index) => guards[index % 3]!.withLock('one', { wait: '1h' }, work)),
      ),
    );
    await clock.advance(60_000);
    expect(all.settled).toBe(true);
    expect(all.error).toBeUndefined();
    expect(most).toBe(1);
    expect(tokens).toHaveLength(300);
    expect(tokens.every((token, index) => index === 0 || token > tokens[index - 1]!)).toBe(true);
  });

  it('never begins work inside the call that asks for it', async () => {
    const { guards } = stage();
    let begun = false;
    const done = guards[0]!.withLock('a', () => (begun = true));
    expect(begun).toBe(false);
    await done;
    expect(begun).toBe(true);
  });

  it('[L3] ends a wait on a lock that somebody holds, and one that is aborted', async () => {
    const { clock, guards } = stage();
    const guard = guards[0]!;
    const held = await guard.acquire('a');
    const late = watch(guard.acquire('a', { wait: '2s' }));
    const controller = new AbortController();
    const given = watch(guard.acquire('a', { wait: '1h', signal: controller.signal }));
    await clock.advance(1_999);
    expect(late.settled).toBe(false);
    controller.abort();
    await clock.advance(1);
    expect(late.error).toMatchObject({ code: 'lock-busy' });
    expect(given.error).toMatchObject({ code: 'aborted' });
    expect(await held.release()).toBe('released');
    expect((await guard.inspect('a')).waiting).toBe(0);
    expect(clock.pendingTimers.ref).toBe(0);
  });

  it('answers any number of releases with the one result, and asks for nothing while the lock is free', async () => {
    const { guards } = stage();
    const lock = await guards[0]!.acquire('a');
    expect(await Promise.all([lock.release(), lock.release()])).toEqual(['released', 'released']);
    expect(lock.isHeld()).toBe(false);
    expect(await lock.release()).toBe('released');
    expect(await guards[0]!.tryAcquire('a')).not.toBeNull();
  });

  it('[L1] tells work that its lock was lost, and rejects with the loss', async () => {
    const { clock, guards } = stage();
    const seen = watch(
      guards[0]!.withLock('a', { ttl: '1s', renew: false }, async (lock) => {
        await new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
      }),
    );
    await clock.advance(2_000);
    expect(seen.error).toMatchObject({ code: 'lock-lost' });
  });

  it('lets the event loop turn between locks that are taken without end', async () => {
    const guard = createGuard({ locks: memoryLocks() });
    let turned = false;
    setImmediate(() => (turned = true));
    let taken = 0;
    while (!turned && taken < 1_000_000) {
      await guard.withLock('a', () => undefined);
      taken += 1;
    }
    expect(turned).toBe(true);
    await guard.close();
  });
});
