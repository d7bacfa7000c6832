/** Cases that a guard must stand: locks inside locks, and many at once. */
import { GuardError } from '@guard/core';
import { assert, expectCode, expectWithin } from '../assert.js';
import type { Process } from './process.js';
import type { GuardCase } from './stage.js';

/** One after the other by hand, nested: takes both, or gives up on the second within its wait. */
async function takeBoth(p: Process, first: string, second: string): Promise<'both' | 'gave up'> {
  return p.guard.withLock(first, async () => {
    await p.sleep(20);
    try {
      return await p.guard.withLock(second, { wait: 1_000 }, () => 'both' as const);
    } catch (error) {
      if (GuardError.is(error, 'lock-busy')) return 'gave up';
      throw error;
    }
  });
}

export const nestingCases: readonly GuardCase[] = [
  {
    title: '[B173] refuses a key at once that the same context holds already, at any depth',
    run: async (stage) => {
      const p1 = await stage.process();
      const refused: unknown[] = [];
      const sinceMs = stage.time.now();
      const nested = p1.guard.withLock('re', () =>
        p1.guard.withLock('other', async () => {
          for (const take of [
            () => p1.guard.withLock('re', { wait: 2_000 }, () => undefined),
            () => p1.guard.acquire('re'),
            () => p1.guard.acquireAll(['re', 'x']),
          ]) {
            refused.push(await take().catch((error: unknown) => error));
          }
          assert.equal(await p1.guard.tryAcquire('re'), null, 'a try never waits, so it is merely busy');
        }),
      );
      await stage.until(nested, 1_000);
      for (const error of refused) expectCode(error, 'would-deadlock', 'a nested acquire');
      assert.equal(refused.length, 3);
      expectWithin(stage.time.now() - sinceMs, 0, 500, 'time until the refusals');
      assert.notEqual(await stage.until(p1.guard.tryAcquire('re')), null, 'free at the end');
    },
  },
  {
    title: '[B173] lets siblings exclude each other, and gives nothing to a task that outlives the work',
    run: async (stage) => {
      const p1 = await stage.process();
      let detached: Promise<unknown> = Promise.resolve();
      let end: () => void = () => undefined;
      const over = new Promise<void>((resolve) => (end = resolve));
      const siblings = p1.guard.withLock('outer', async () => {
        const inner = (n: number) =>
          p1.guard.withLock('re', { wait: 5_000 }, async (lock) => {
            p1.enter(lock);
            await p1.sleep(20);
            p1.exit(lock);
            return n;
          });
        detached = over.then(() => p1.guard.withLock('outer', { wait: 1_000 }, () => 'free by then'));
        return Promise.all([inner(1), inner(2)]);
      });
      const late = stage.track(Promise.resolve().then(() => detached));
      assert.deepEqual(await stage.until(siblings), [1, 2]);
      end();
      await stage.until(stage.track(detached).settled, 5_000);
      await stage.until(late.settled);
      const outcome = stage.track(detached);
      await stage.until(outcome.settled);
      // Its context remembers the outer lock, which is over: it holds nothing, so it may take the key.
      assert.equal(outcome.value, 'free by then');
    },
  },
  {
    title: '[B174] takes several keys in any order without a time-out, all or nothing',
    run: async (stage) => {
      const processes = await stage.processes(3);
      const orders = [
        ['a', 'b'],
        ['b', 'a'],
        ['c', 'a'],
      ];
      // As written, 1,500 holds of one key end within a minute; where waiters poll (L2), a fifth of them.
      const rounds = stage.amount(stage.traits.push ? 500 : 100, 100, 25);
      let longestMs = 0;
      const loop = async (p: Process, n: number): Promise<void> => {
        for (let round = 0; round < rounds; round += 1) {
          const sinceMs = stage.time.now();
          const set = await p.guard.acquireAll(orders[n]!, { wait: 10_000 });
          longestMs = Math.max(longestMs, stage.time.now() - sinceMs);
          assert.deepEqual(
            set.locks.map(({ key }) => key),
            [...orders[n]!].sort(),
          );
          for (const lock of set.locks) p.enter(lock);
          await p.sleep(10);
          for (const lock of set.locks) p.exit(lock);
          assert.equal(await set.release(), 'released');
        }
      };
      await stage.until(Promise.all(processes.map(loop)), 60_000, 'the loops');
      expectWithin(longestMs, 0, 5_000, 'longest wait');
    },
  },
  {
    title: '[B174] ends a deadlock made by hand with the wait, and leaves nothing behind',
    run: async (stage) => {
      const [p1, p2, p3] = await stage.processes(3);
      const sinceMs = stage.time.now();
      const both = Promise.all([takeBoth(p1!, 'a', 'b'), takeBoth(p2!, 'b', 'a')]);
      const results = await stage.until(both, 1_500, 'the end of the deadlock');
      assert.ok(results.includes('gave up'), results.join(', '));
      expectWithin(stage.time.now() - sinceMs, 0, 1_500, 'time until the end');
      for (const key of ['a', 'b']) {
        const { held, waiting } = await stage.until(p3!.guard.inspect(key));
        assert.deepEqual([held, waiting], [false, 0]);
      }
    },
  },
  {
    title: '[B174] gives back what it has where one of several keys stays busy',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2);
      const held = await stage.until(p1!.guard.acquire('b'));
      const wait = stage.amount(200, 200, 800);
      const error = await stage.failure(p2!.guard.acquireAll(['a', 'b', 'c'], { wait }), 3_000);
      expectCode(error, 'lock-busy', 'acquireAll');
      for (const key of ['a', 'c']) assert.notEqual(await stage.until(p1!.guard.tryAcquire(key)), null);
      await stage.until(held.release());
    },
  },
];
