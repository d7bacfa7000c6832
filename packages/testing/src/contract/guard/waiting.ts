/** Cases that a guard must stand: waiting. */
import { assert, expectCode, expectWithin } from '../assert.js';
import type { GuardCase, Stage } from './stage.js';

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

/** Rounds of B97: the holder releases just after the waiter began. How long each waiter waited after the release. */
async function crossings(stage: Stage, rounds: number, delayMs: number): Promise<number[]> {
  const roles = [await stage.process(), await stage.process()] as const;
  const waits: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const [holder, waiter] = round % 2 === 0 ? roles : ([roles[1], roles[0]] as const);
    const held = holder.enter(await stage.until(holder.guard.acquire('lw', { ttl: 30_000 })));
    const delay = waiter.locks.plan.play({ type: 'delay', requestMs: delayMs, replyMs: delayMs });
    let grantedMs = 0;
    const waiting = stage.track(
      waiter.guard.acquire('lw', { ttl: 30_000, wait: 20_000 }).then((lock) => {
        grantedMs = stage.time.now();
        return waiter.enter(lock);
      }),
    );
    await stage.pass(stage.random.integer(0, 5));
    holder.exit(held);
    const releasedMs = stage.time.now();
    const released = held.release();
    await stage.until(waiting.settled, 25_000, 'the waiter');
    if (waiting.state === 'rejected') throw waiting.error;
    await stage.until(released);
    delay.stop();
    waits.push(grantedMs - releasedMs);
    waiter.exit(waiting.value!);
    await stage.until(waiting.value!.release());
  }
  return waits;
}

export const waitingCases: readonly GuardCase[] = [
  {
    title: '[B33] leaves nothing of failed attempts behind that could block the next one',
    run: async (stage) => {
      const [p1, p2, p3, p4] = await stage.processes(4);
      const held = await stage.until(p1!.guard.acquire('e'));
      for (let n = 0; n < 50; n += 1) assert.equal(await stage.until(p2!.guard.tryAcquire('e')), null);
      for (let n = 0; n < stage.amount(20, 20, 5); n += 1) {
        const error = await stage.failure(p3!.guard.acquire('e', { wait: 100 }), 1_000, 'a wait of 100 ms');
        expectCode(error, 'lock-busy', 'a wait that ended');
      }
      await stage.until(held.release());
      assert.notEqual(await stage.until(p4!.guard.tryAcquire('e')), null);
    },
  },
  {
    title: '[B97] [L2] wakes a waiter whose holder releases just as it begins to wait',
    run: async (stage) => {
      const waits = await crossings(stage, stage.amount(500, 200, 60), 0);
      const isPush = stage.traits.push;
      expectWithin(median(waits), 0, isPush ? 100 : 300, 'median wait after the release');
      expectWithin(Math.max(...waits), 0, 1_000, 'worst wait after the release');
    },
  },
  {
    title: '[B97] [L2] wakes a waiter also where every packet of it takes 20 ms',
    run: async (stage) => {
      const waits = await crossings(stage, stage.amount(100, 100, 10), 20);
      expectWithin(median(waits), 0, stage.traits.push ? 100 : 300, 'median wait after the release');
      expectWithin(Math.max(...waits), 0, 1_000, 'worst wait after the release');
    },
  },
  {
    title: '[B98] [L2] waits for many keys over a bounded number of streams, and gives them back',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2);
      const keys = Array.from({ length: stage.amount(500, 500, 100) }, (_, n) => `w${n}`);
      const held = await stage.until(Promise.all(keys.map((key) => p1!.guard.acquire(key))));
      const waiting = stage.track(Promise.all(keys.map((key) => p2!.guard.acquire(key, { wait: 30_000 }))));
      await stage.pass(1_000);
      assert.equal(waiting.state, 'pending');
      expectWithin(p2!.locks.openStreams, stage.traits.push ? 1 : 0, 3, 'open streams');
      await stage.until(Promise.all(held.map((lock) => lock.release())));
      await stage.until(waiting.settled, 5_000, 'all grants');
      assert.equal(waiting.state, 'fulfilled');
      await stage.until(Promise.all(waiting.value!.map((lock) => lock.release())));
      // One stream of the process may stay for the next wait; closing ends it, which the stage looks at.
      expectWithin(p2!.locks.openStreams, 0, 1, 'open streams afterwards');
    },
  },
  {
    title: '[B101] [L2] costs the server at most ten requests a second, however many claims wait for one key',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2);
      const held = await stage.until(p1!.guard.acquire('busy', { ttl: 30_000 }));
      const wait = 60_000;
      const waits = Array.from({ length: 50 }, () => p2!.guard.acquire('busy', { ttl: 30_000, wait }));
      const all = stage.track(
        Promise.all(
          waits.map(async (waiting) => {
            await (await waiting).release();
          }),
        ),
      );
      const isAsked = (): boolean => p2!.locks.plan.total().calls >= waits.length;
      await stage.time.untilTrue(isAsked, 20_000, 'the first request of each claim');
      await stage.pass(stage.amount(2_000, 2_000, 500));
      p2!.locks.plan.forgetTraffic();
      const seconds = stage.amount(20, 20, 2);
      await stage.pass(seconds * 1_000);
      const { calls } = p2!.locks.plan.total();
      assert.ok(calls <= 10 * seconds, `${calls} requests in ${seconds} s`);
      await stage.until(held.release());
      await stage.until(all.settled, 60_000, 'all waiters');
      assert.equal(all.state, 'fulfilled');
    },
  },
  {
    title: '[B103] [L2] gives every process its share, before and after the server was away',
    run: async (stage) => {
      const processes = await stage.processes(3);
      const endMs = stage.time.now() + stage.amount(30_000, 15_000, 3_000);
      const awayMs = stage.time.now() + stage.amount(10_000, 5_000, 1_000);
      const grants: { who: string; atMs: number; waitedMs: number }[] = [];
      const loop = async (p: (typeof processes)[number]): Promise<void> => {
        while (stage.time.now() < endMs) {
          const sinceMs = stage.time.now();
          const lock = await p.guard.acquire('fair', { wait: 30_000 }).catch(() => null);
          if (lock === null) {
            await p.sleep(20);
            continue;
          }
          p.enter(lock);
          grants.push({ who: p.name, atMs: stage.time.now(), waitedMs: stage.time.now() - sinceMs });
          await p.sleep(20);
          p.exit(lock);
          await lock.release();
        }
      };
      const loops = stage.track(Promise.all(processes.map(loop)));
      await stage.pass(awayMs - stage.time.now());
      for (const p of processes) p.down();
      await stage.pass(stage.amount(1_000, 1_000, 300));
      for (const p of processes) p.heal();
      await stage.until(loops.settled, 120_000, 'the loops');
      if (loops.state === 'rejected') throw loops.error;
      for (const half of [
        grants.filter(({ atMs }) => atMs < awayMs),
        grants.filter(({ atMs }) => atMs >= awayMs),
      ]) {
        for (const { name } of processes) {
          const own = half.filter(({ who }) => who === name).length;
          assert.ok(own >= half.length * 0.1, `${name} had ${own} of ${half.length} grants`);
        }
      }
      expectWithin(Math.max(...grants.map(({ waitedMs }) => waitedMs)), 0, 10_000, 'longest wait');
    },
  },
  {
    title: '[B171] [S4] either grants or rejects where abort and release cross, and never strands the lock',
    run: async (stage) => {
      const [p1, p2, p3] = await stage.processes(3);
      const outcomes = { granted: 0, aborted: 0 };
      for (let round = 0; round < stage.amount(300, 300, 40); round += 1) {
        const held = p1!.enter(await stage.until(p1!.guard.acquire('abt')));
        const controller = new AbortController();
        const second = stage.track(
          p2!.guard.acquire('abt', { signal: controller.signal }).then((l) => p2!.enter(l)),
        );
        await stage.pass(1);
        const third = stage.track(p3!.guard.acquire('abt').then((lock) => p3!.enter(lock)));
        await stage.pass(5);
        // A hand-over takes its time, on a busy server more.
        const abortAfterMs = stage.random.integer(0, round % 2 === 0 ? 6 : 40);
        const releaseAfterMs = stage.random.integer(0, 6);
        const steps = [
          { afterMs: abortAfterMs, run: () => controller.abort() },
          { afterMs: releaseAfterMs, run: () => (p1!.exit(held), void held.release()) },
        ].sort((a, b) => a.afterMs - b.afterMs);
        await stage.pass(steps[0]!.afterMs);
        steps[0]!.run();
        await stage.pass(steps[1]!.afterMs - steps[0]!.afterMs);
        steps[1]!.run();
        await stage.until(second.settled, 500, 'the aborted waiter');
        if (second.state === 'fulfilled') {
          outcomes.granted += 1;
          p2!.exit(second.value!);
          await stage.until(second.value!.release());
        } else {
          outcomes.aborted += 1;
          expectCode(second.error, 'aborted', 'the aborted waiter');
        }
        // The second in line asks again after at most half a second, and then the answer takes its time.
        await stage.until(third.settled, stage.traits.push ? 500 : 2_000, 'the waiter behind it');
        p3!.exit(third.value!);
        await stage.until(third.value!.release());
      }
      assert.ok(outcomes.aborted > 0, JSON.stringify(outcomes));
      // Who polls hears of a release too late to cross with an abort a few milliseconds away.
      if (stage.traits.push) assert.ok(outcomes.granted > 0, JSON.stringify(outcomes));
    },
  },
  {
    title: '[B171] sends nothing for a signal that was aborted before, and keeps the caller’s reason',
    run: async (stage) => {
      const p1 = await stage.process();
      const reason = new Error('the user left');
      const before = AbortSignal.abort(reason);
      const error = expectCode(
        await stage.failure(p1.guard.acquire('abt', { signal: before })),
        'aborted',
        'acquire',
      );
      assert.equal(error.cause, reason);
      expectCode(
        await stage.failure(p1.guard.tryAcquire('abt', { signal: before })),
        'aborted',
        'tryAcquire',
      );
      assert.equal(p1.locks.plan.total().calls, 0);
    },
  },
  {
    title: '[B171] [S4] rejects at once where the server is silent, and nothing of the claim appears later',
    run: async (stage) => {
      const ttl = stage.ttl(1_000);
      const [p1, p2] = await stage.processes(2);
      p1!.locks.cut();
      const controller = new AbortController();
      const waiting = stage.track(p1!.guard.acquire('quiet', { ttl, signal: controller.signal }));
      await stage.pass(200);
      controller.abort('enough');
      await stage.until(waiting.settled, 100, 'the aborted claim');
      assert.equal(expectCode(waiting.error, 'aborted', 'the aborted claim').cause, 'enough');
      p1!.heal();
      await stage.pass(ttl);
      const status = await stage.until(p2!.guard.inspect('quiet'));
      assert.deepEqual([status.held, status.waiting], [false, 0]);
    },
  },
];
