import { setImmediate as turn } from 'node:timers/promises';
import { GuardError, systemClock } from '@guard/core';
import { VirtualClock } from '@guard/testing';

describe('VirtualClock', () => {
  it('starts where it is told, with a monotonic time unlike the wall time', () => {
    expect(new VirtualClock({ monoMs: 7, wallMs: 9 }).now()).toEqual({ monoMs: 7, wallMs: 9 });
    const { monoMs, wallMs } = new VirtualClock().now();
    expect(monoMs).not.toBe(wallMs);
  });

  it('fires due timers in the order of their time, then of their creation', async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    clock.setTimer(() => fired.push('30'), 30);
    clock.setTimer(() => fired.push('10 first'), 10);
    clock.setTimer(() => fired.push('10 second'), 10);
    await clock.advance(30);
    expect(fired).toEqual(['10 first', '10 second', '30']);
  });

  it('shows a timer exactly its own time, and the target afterwards', async () => {
    const clock = new VirtualClock({ monoMs: 0, wallMs: 0 });
    const seen: unknown[] = [];
    clock.setTimer(() => seen.push(clock.now()), 12.5);
    await clock.advance(20);
    expect(seen).toEqual([{ monoMs: 12.5, wallMs: 12.5 }]);
    expect(clock.now()).toEqual({ monoMs: 20, wallMs: 20 });
  });

  it('keeps timers beyond the advanced time, and delays that the platform cannot hold', async () => {
    const clock = new VirtualClock();
    const days = 86_400_000;
    const fired: string[] = [];
    clock.setTimer(() => fired.push('later'), 60 * days);
    await clock.advance(60 * days - 1);
    expect(fired).toEqual([]);
    expect(clock.pendingTimers).toEqual({ total: 1, ref: 1 });
    await clock.advance(1);
    expect(fired).toEqual(['later']);
  });

  it('fires timers that were set by timers inside the advanced time', async () => {
    const clock = new VirtualClock({ monoMs: 0, wallMs: 0 });
    const at: number[] = [];
    const again = (): void => {
      at.push(clock.now().monoMs);
      clock.setTimer(again, 10);
    };
    clock.setTimer(again, 10);
    await clock.advance(35);
    expect(at).toEqual([10, 20, 30]);
  });

  it('lets promises, yields and turns of the loop settle between two timers', async () => {
    const clock = new VirtualClock();
    const steps: string[] = [];
    clock.setTimer(() => {
      void (async () => {
        await Promise.resolve();
        await new Promise<void>((resolve) => clock.yield(resolve));
        await new Promise<void>((resolve) => systemClock.yield(resolve));
        steps.push('work of the first');
      })();
    }, 1);
    clock.setTimer(() => steps.push('second'), 2);
    await clock.advance(2);
    expect(steps).toEqual(['work of the first', 'second']);
  });

  it('waits for chains of yields however long, and gives up on endless ones', async () => {
    const clock = new VirtualClock();
    let left = 500;
    const hop = (): void => {
      left -= 1;
      if (left > 0) clock.yield(hop);
    };
    clock.yield(hop);
    await clock.settle();
    expect(left).toBe(0);

    let stop = false;
    const forever = (): void => {
      if (!stop) clock.yield(forever);
    };
    clock.yield(forever);
    await expect(clock.settle()).rejects.toThrow('yields for ever');
    stop = true;
    await turn();
  });

  it('cancels timers, also a timer that the same moment would fire', async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    clock.setTimer(() => second.cancel(), 5);
    const second = clock.setTimer(() => fired.push('second'), 5);
    const third = clock.setTimer(() => fired.push('third'), 5);
    await clock.advance(5);
    third.cancel();
    expect(fired).toEqual(['third']);
    expect(clock.pendingTimers.total).toBe(0);
  });

  it('counts the timers that would keep a process alive [L5]', () => {
    const clock = new VirtualClock();
    clock.setTimer(() => undefined, 5, { ref: false });
    clock.setTimer(() => undefined, 5).cancel();
    clock.setTimer(() => undefined, 5);
    clock.setTimer(() => undefined, Infinity);
    expect(clock.pendingTimers).toEqual({ total: 2, ref: 1 });
  });

  it('steps the wall clock alone', () => {
    const clock = new VirtualClock({ monoMs: 100, wallMs: 5_000 });
    clock.shiftWall(-3_000);
    expect(clock.now()).toEqual({ monoMs: 100, wallMs: 2_000 });
  });

  it('suspends: wall time passes, monotonic time and timers stand still', async () => {
    const clock = new VirtualClock({ monoMs: 100, wallMs: 5_000 });
    const fired: string[] = [];
    clock.setTimer(() => fired.push('timer'), 10);
    clock.suspend(60_000);
    await clock.settle();
    expect(clock.now()).toEqual({ monoMs: 100, wallMs: 65_000 });
    expect(fired).toEqual([]);
  });

  it('blocks: both clocks pass without a timer, which then fires late', async () => {
    const clock = new VirtualClock({ monoMs: 0, wallMs: 0 });
    const at: number[] = [];
    clock.setTimer(() => at.push(clock.now().monoMs), 10);
    clock.block(2_500);
    expect(at).toEqual([]);
    await clock.settle();
    expect(at).toEqual([2_500]);
    expect(clock.now()).toEqual({ monoMs: 2_500, wallMs: 2_500 });
  });

  it('goes on from where a blocked loop left the time, even beyond the target', async () => {
    const clock = new VirtualClock({ monoMs: 0, wallMs: 0 });
    const at: string[] = [];
    clock.setTimer(() => clock.block(500), 10);
    clock.setTimer(() => at.push(`late ${clock.now().monoMs}`), 300);
    await clock.advance(100);
    expect(at).toEqual(['late 510']);
    expect(clock.now().monoMs).toBe(510);
  });

  it('runs from timer to timer until a promise settles', async () => {
    const clock = new VirtualClock({ monoMs: 0 });
    const sleep = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(resolve, ms));
    const loop = async (): Promise<string> => {
      for (let round = 0; round < 100; round += 1) await sleep(7);
      return 'done';
    };
    clock.setTimer(() => undefined, 10_000);
    expect(await clock.runUntil(loop())).toBe('done');
    expect(clock.now().monoMs).toBe(700);
    await expect(clock.runUntil(sleep(2_000), 1_999)).rejects.toThrow('still pending after 1999 ms');
    await expect(clock.runUntil(Promise.reject(new Error('own')))).rejects.toThrow('own');
    await expect(new VirtualClock().runUntil(new Promise(() => undefined))).rejects.toThrow(
      'no timer is left',
    );
  });

  it('rejects with what a timer throws, and can go on', async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    clock.setTimer(() => {
      throw new Error('from a timer');
    }, 1);
    clock.setTimer(() => fired.push('next'), 2);
    await expect(clock.advance(5)).rejects.toThrow('from a timer');
    await clock.advance(5);
    expect(fired).toEqual(['next']);
  });

  it('refuses to go back, to be advanced twice at once, and NaN', async () => {
    const clock = new VirtualClock();
    await expect(clock.advance(-1)).rejects.toThrow('ms must be a finite number of at least 0');
    await expect(clock.advance(Number.NaN)).rejects.toThrow(GuardError);
    expect(() => clock.setTimer(() => undefined, Number.NaN)).toThrow(GuardError);
    const first = clock.advance(1);
    await expect(clock.advance(1)).rejects.toThrow('advanced already');
    await first;
  });
});
