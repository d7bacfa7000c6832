import { createGuard, memoryLocks } from '@guard/core';
import { VirtualClock } from '@guard/testing';
import { elapsed } from '../../src/value/instant.js';

/** A moment and a duration that do not add up and subtract to the same: 63734.77 + 11760 − 63734.77 < 11760. */
const ODD_MS = 63_734.77;
const TRUST_MS = 11_760;

describe('elapsed', () => {
  it('is past at the very sum that a timer is set for, whatever subtraction would round to', () => {
    const since = { monoMs: ODD_MS, wallMs: 0 };
    expect(ODD_MS + TRUST_MS - ODD_MS).toBeLessThan(TRUST_MS);
    expect(elapsed(since, { monoMs: ODD_MS + TRUST_MS, wallMs: 0 }, TRUST_MS)).toBe('past');
    expect(elapsed(since, { monoMs: ODD_MS + TRUST_MS - 0.001, wallMs: 0 }, TRUST_MS)).toBe('before');
  });

  it('is doubtful where only the wall clock is past', () => {
    const since = { monoMs: 0, wallMs: ODD_MS };
    expect(elapsed(since, { monoMs: 0, wallMs: ODD_MS + TRUST_MS }, TRUST_MS)).toBe('doubtful');
  });

  it('lets the timer of a deadline end the lock, and not set itself for ever [L1]', async () => {
    const clock = new VirtualClock({ monoMs: ODD_MS });
    const guard = createGuard({ locks: memoryLocks({ clock }), clock });
    const lock = await guard.acquire('k', { ttl: 12_000, renew: false });
    const { signal } = lock;
    await clock.advance(TRUST_MS);
    expect(signal.aborted).toBe(true);
    await guard.close();
  });
});
