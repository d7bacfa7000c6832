/** Cases that a guard must stand: the end of a process, and what a long life leaves in its memory. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { assert, expectCode, expectWithin } from '../assert.js';
import type { GuardCase } from './stage.js';

/** Bytes in use after everything that can be collected was. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let n = 0; n < 3; n += 1) collect();
  return process.memoryUsage().heapUsed;
}

export const endingCases: readonly GuardCase[] = [
  {
    title: '[B104] keeps nothing per key that was ever used',
    run: async (stage) => {
      const p1 = await stage.process();
      const rival = await stage.process();
      const aborted = AbortSignal.abort();
      let n = 0;
      const cycle = async (at: number): Promise<void> => {
        const key = `key ${at}`;
        const lock = await p1.guard.acquire(key);
        if (at % 10 === 0) assert.equal(await rival.guard.tryAcquire(key), null);
        if (at % 100 === 0) await rival.guard.acquire(key, { signal: aborted }).catch(() => null);
        await lock.release();
      };
      // Several at a time travel together, which spares a server most of the work.
      const cycles = async (count: number): Promise<void> => {
        for (const end = n + count; n < end; n += 10) {
          await Promise.all(Array.from({ length: 10 }, (_, more) => cycle(n + more)));
        }
      };
      await stage.until(cycles(stage.amount(5_000, 1_000, 500)), 600_000, 'the warm-up');
      const before = heapBytes();
      await stage.until(cycles(stage.amount(100_000, 8_000, 1_000)), 600_000, 'the cycles');
      const grownBytes = heapBytes() - before;
      assert.ok(grownBytes < 5_000_000, `the heap grew by ${grownBytes} bytes over ${n} keys`);
    },
  },
  {
    title: '[B106] [L5] keeps the process alive while something is pending, and not a moment longer',
    unless: (_traits, world) =>
      world.virtualTime ? undefined : 'timers can be counted on a virtual clock only',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2);
      const isAlive = (): boolean => stage.virtualClock!.pendingTimers.ref > 0;
      const held = await stage.until(p2!.guard.acquire('ex'));
      assert.ok(!isAlive(), 'an idle lock does not keep the process alive');
      const waiting = stage.track(p1!.guard.acquire('ex', { wait: 10_000 }));
      for (let n = 0; n < 30; n += 1) {
        await stage.pass(100);
        assert.ok(isAlive(), `a waiting claim keeps the process alive (after ${n * 100} ms)`);
      }
      p2!.down();
      const releasing = stage.track(held.release());
      await stage.pass(1_000);
      assert.ok(isAlive(), 'a release that is not through keeps the process alive');
      p2!.heal();
      await stage.until(releasing.settled);
      await stage.until(waiting.settled, 10_000, 'the waiter');
      p1!.locks.plan.play({ type: 'delay', replyMs: 2_000 }, { verbs: ['release'], times: 1 });
      const released = stage.track(waiting.value!.release());
      await stage.pass(1_000);
      assert.ok(isAlive(), 'a release whose reply is slow keeps the process alive');
      await stage.until(released.settled);
      p1!.down();
      const refused = stage.track(p1!.guard.acquire('later', { wait: 5_000 }));
      await stage.pass(3_000);
      assert.ok(refused.state !== 'pending' || isAlive(), 'a claim to a server that is away keeps it alive');
      p1!.heal();
      await stage.until(refused.settled, 10_000, 'the claim');
      if (refused.state === 'fulfilled') await stage.until(refused.value!.release());
      else expectCode(refused.error, 'unavailable', 'the claim');
      await stage.pass(10_000);
      assert.ok(!isAlive(), 'an idle guard does not keep the process alive');
    },
  },
  {
    title: '[B111] blocks nobody after a close, and a dead process no longer than its lease',
    run: async (stage) => {
      const ttl = stage.ttl(10_000);
      const signals = ['SIGTERM', 'SIGINT'] as const;
      const before = signals.map((name) => process.listenerCount(name));
      const [p1, p2, p3] = await stage.processes(3);
      assert.deepEqual(
        signals.map((name) => process.listenerCount(name)),
        before,
        'no signal handlers of its own',
      );
      p1!.enter(await stage.until(p1!.guard.acquire('dd', { ttl })));
      const second = stage.track(p2!.guard.acquire('dd', { ttl, wait: ttl * 2 }));
      await stage.pass(100);
      const closing = p1!.guard.close();
      await stage.until(second.settled, 500, 'the waiter after a close');
      await stage.until(closing);
      const held = p2!.enter(second.value!);
      assert.ok(p2!.look(held));
      await stage.pass(50);
      const third = stage.track(p3!.guard.acquire('dd', { ttl, wait: ttl * 3 }));
      await stage.pass(100);
      const killedMs = stage.time.now();
      p2!.kill();
      await stage.until(third.settled, ttl * 2 + 2_000, 'the waiter after a kill');
      p3!.enter(third.value!);
      const mostMs = ttl + stage.traits.ttlGranularityMs + 1_000;
      expectWithin(stage.time.now() - killedMs, 0, mostMs, 'how long the dead holder blocked');
      p3!.exit(third.value!);
      await stage.until(third.value!.release());
    },
  },
];
