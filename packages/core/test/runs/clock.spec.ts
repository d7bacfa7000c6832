/** The run store's time, and the pauses between attempts. */
import { VirtualClock } from '@guard/testing';
import { retryPauseMs } from '../../src/machine/run-retry.js';
import { BackendClock } from '../../src/runtime/run/backend-clock.js';
import { sleep } from './stage.js';

describe('the clock of a store', () => {
  const STORE_MS = 5_000_000;

  function pair(tripMs = 0) {
    const clock = new VirtualClock();
    let asked = 0;
    const store = { aheadMs: STORE_MS };
    const time = new BackendClock(clock, async () => {
      asked += 1;
      await sleep(clock, tripMs / 2);
      const answer = clock.now().monoMs + store.aheadMs;
      await sleep(clock, tripMs / 2);
      return answer;
    });
    const now = async (): Promise<number> => {
      const answer = time.now();
      await clock.advance(tripMs);
      return answer;
    };
    return { clock, time, store, now, asked: () => asked };
  }

  test('is asked once, and carried on by the monotonic clock', async () => {
    const { clock, now, asked } = pair();
    expect(await now()).toBe(STORE_MS + clock.now().monoMs);
    await clock.advance(30_000);
    clock.shiftWall(500);
    expect(await now()).toBe(STORE_MS + clock.now().monoMs);
    expect(asked()).toBe(1);
  });

  test('is asked once by many who ask at the same time', async () => {
    const { clock, time, asked } = pair(100);
    const answers = Promise.all([time.now(), time.now(), time.now()]);
    await clock.advance(100);
    expect(new Set(await answers).size).toBe(1);
    expect(asked()).toBe(1);
  });

  test('is asked over what a caller has in hand, wherever it would be asked, and not where the answer is young', async () => {
    const { clock, time, store, asked } = pair(100);
    let over = 0;
    const ask = async (): Promise<number> => {
      over += 1;
      return clock.now().monoMs + store.aheadMs;
    };
    for (const idleMs of [0, 59_000, 2_000, 601_000, 7_200_000]) {
      await clock.advance(idleMs);
      store.aheadMs += 5;
      await time.now(ask);
    }
    expect(over).toBe(4);
    expect(time.estimate()).toBe(clock.now().monoMs + store.aheadMs);
    expect(asked()).toBe(0);
    await expect(new BackendClock(clock, ask).now(() => Promise.reject(new Error('no')))).rejects.toThrow(
      'no',
    );
  });

  test('is wrong by no more than half of the trip', async () => {
    const { clock, now } = pair(80);
    expect(Math.abs((await now()) - (STORE_MS + clock.now().monoMs))).toBeLessThanOrEqual(40);
  });

  test('is measured for each sending by itself: what was lost before does not make an answer old', async () => {
    const clock = new VirtualClock();
    const time = new BackendClock(
      clock,
      async () => STORE_MS + clock.now().monoMs,
      async (call) => {
        await sleep(clock, 7_000);
        return call();
      },
    );
    const first = time.now();
    await clock.advance(7_000);
    expect(await first).toBe(STORE_MS + clock.now().monoMs);
    expect(time.atLeast()).toBe(STORE_MS + clock.now().monoMs);
  });

  test('an answer that was long on its way replaces a better one only where the two disagree', async () => {
    const clock = new VirtualClock();
    const store = { aheadMs: STORE_MS, slowMs: 0 };
    const time = new BackendClock(clock, async () => {
      const answer = clock.now().monoMs + store.aheadMs;
      await sleep(clock, store.slowMs);
      return answer;
    });
    const refreshed = async (): Promise<number> => {
      const done = time.refresh();
      await clock.advance(store.slowMs);
      await done;
      return time.estimate() - clock.now().monoMs - STORE_MS;
    };
    expect(await refreshed()).toBe(0);
    store.slowMs = 4_000;
    expect(await refreshed()).toBe(0);
    store.aheadMs += 10_000;
    expect(await refreshed()).toBe(8_000);
    store.slowMs = 0;
    expect(await refreshed()).toBe(10_000);
  });

  test('is asked again after a minute, beside the work', async () => {
    const { clock, time, store, asked } = pair(100);
    const first = time.now();
    await clock.advance(100);
    await first;
    store.aheadMs += 250;
    await clock.advance(61_000);
    const before = await time.now();
    expect(before).toBe(STORE_MS + clock.now().monoMs);
    await clock.advance(100);
    expect(await time.now()).toBe(STORE_MS + 250 + clock.now().monoMs);
    expect(asked()).toBe(2);
  });

  test('is waited for after a sleep of the machine, and after a long silence', async () => {
    const { clock, now, store, asked } = pair();
    await now();
    clock.suspend(60_000);
    store.aheadMs += 60_000;
    expect(await now()).toBe(STORE_MS + 60_000 + clock.now().monoMs);
    clock.block(700_000);
    await now();
    expect(asked()).toBe(3);
  });

  test('goes on with the last answer while the store is away', async () => {
    const clock = new VirtualClock();
    let away = false;
    const time = new BackendClock(clock, async () => {
      if (away) throw new Error('away');
      return 1_000;
    });
    await time.now();
    away = true;
    clock.block(120_000);
    expect(await time.now()).toBe(121_000);
  });
});

describe('pauses between attempts', () => {
  const pauses = { initialMs: 1_000, factor: 2, maxMs: 10_000, jitter: 0 };

  test('grow by their factor up to the longest', () => {
    expect([1, 2, 3, 4, 5, 2_000].map((attempt) => retryPauseMs(pauses, attempt, 0.5))).toEqual([
      1_000, 2_000, 4_000, 8_000, 10_000, 10_000,
    ]);
  });

  test('are shortened at random by their jitter, and are whole milliseconds', () => {
    const jittered = { ...pauses, initialMs: 1_001, jitter: 0.5 };
    expect([0, 0.5, 1].map((fraction) => retryPauseMs(jittered, 1, fraction))).toEqual([1_001, 751, 501]);
    expect(retryPauseMs({ ...pauses, initialMs: 0 }, 3, 0.5)).toBe(0);
  });
});
