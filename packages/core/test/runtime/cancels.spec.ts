/** Claims that were given up while the backend was away: taken back by a trickle, and all of them once it answers. */
import { VirtualClock } from '@guard/testing';
import { createGuard, memoryLocks } from '../../src/index.js';
import { plain, stage, watch } from './stage.js';

const TRIES = 60;

describe('a cancel', () => {
  it('[S4] of a key that was tried for a minute of an outage is repeated no more often than one of a single try', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    a.net.down(new Error('ECONNREFUSED'));
    for (let second = 0; second < TRIES; second += 1) {
      if (second === TRIES - 10) a.net.plan.forgetTraffic();
      watch(a.guard.acquire('a', { ttl: '60s', wait: 500 }));
      await clock.advance(1_000);
    }
    // Ten were given up in those ten seconds, and one at a time was tried again, twice a second at most.
    const { operations } = a.net.plan.traffic('release');
    expect(operations).toBeGreaterThan(10);
    expect(operations).toBeLessThanOrEqual(30);
    a.net.heal();
    a.net.plan.forgetTraffic();
    // The next repetition is a second away at most, and brings the others along.
    await clock.advance(1_010);
    expect(a.net.plan.traffic('release').operations).toBe(TRIES);
    await clock.advance(60_000);
    expect(a.net.plan.traffic('release').operations).toBe(TRIES);
    expect(await b.guard.tryAcquire('a')).not.toBeNull();
  });

  it('[S4] [L3] waits here and not on its way, where releases hang: what is too old by then is not sent at all', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    net.plan.play({ type: 'reset', executed: false }, { verbs: ['acquire'] });
    net.plan.play({ type: 'cut' }, { verbs: ['release'] });
    for (let n = 0; n < 600; n += 1) {
      watch(guard.acquire('a', { ttl: '3s', wait: 50 }));
      await clock.advance(100);
    }
    net.heal();
    net.plan.forgetTraffic();
    await clock.advance(5_000);
    // Those of the last two ttls.
    expect(net.plan.traffic('release').operations).toBeGreaterThan(0);
    expect(net.plan.traffic('release').operations).toBeLessThanOrEqual(70);
    expect(await guard.tryAcquire('a')).not.toBeNull();
  });

  it('[S4] that never succeeds holds up no other of its key', async () => {
    const clock = new VirtualClock();
    const backend = plain(memoryLocks({ clock }));
    const released = new Set<string>();
    let refused: string | undefined;
    let isAway = true;
    backend.acquire = async () => {
      throw new Error('ECONNREFUSED');
    };
    backend.release = async (releases) =>
      releases.map(({ claim }) => {
        refused ??= claim;
        if (isAway || claim === refused) return { status: 'failed', cause: new Error('no') };
        released.add(claim);
        return { status: 'released' };
      });
    const guard = createGuard({ locks: backend, clock });
    for (let index = 0; index < 5; index += 1) watch(guard.acquire('a', { ttl: '60s', wait: 500 }));
    await clock.advance(5_000);
    isAway = false;
    await clock.advance(2_500);
    expect(released.size).toBe(4);
    expect(released).not.toContain(refused);
  });

  it('[L5] leaves no timer behind where it is given up as well', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    net.down(new Error('ECONNREFUSED'));
    for (let index = 0; index < 5; index += 1) watch(guard.acquire('a', { ttl: '60s', wait: 500 }));
    await clock.advance(5_000);
    const closing = watch(guard.close());
    await clock.advance(60_000);
    expect(closing.settled).toBe(true);
    expect(clock.pendingTimers.total).toBe(0);
  });
});
