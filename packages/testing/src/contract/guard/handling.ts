/** Cases that a guard must stand: releases, and handles that are passed around. */
import { inspect } from 'node:util';
import { assert, expectCode } from '../assert.js';
import type { GuardCase } from './stage.js';

export const handleCases: readonly GuardCase[] = [
  {
    title: '[B23] [S5] never removes a newer lock of the same process by the retried release of an old one',
    run: async (stage) => {
      const ttl = stage.ttl(1_000);
      const [p1, p2] = await stage.processes(2);
      const first = p1!.enter(await stage.until(p1!.guard.acquire('d', { ttl })));
      p1!.locks.loseReply('release');
      p1!.exit(first);
      const releasing = stage.track(first.release());
      const second = p1!.enter(await stage.until(p1!.guard.acquire('d', { ttl, wait: ttl })));
      assert.notEqual(await stage.until(first.release(), ttl * 3), 'lost');
      await stage.until(releasing.settled);
      assert.equal(await stage.until(p2!.guard.tryAcquire('d', { ttl })), null);
      assert.ok(p1!.look(second));
      p1!.exit(second);
      assert.equal(await stage.until(second.release()), 'released');
    },
  },
  {
    title: '[B37] [S3] says that the lock was not held any more, and leaves the successor’s alone',
    run: async (stage) => {
      const ttl = stage.ttl(300);
      const [p1, p2, p3] = await stage.processes(3);
      const first = p1!.enter(await stage.until(p1!.guard.acquire('o', { ttl, renew: false })));
      await stage.pass(ttl + stage.traits.ttlGranularityMs + 50);
      const second = p2!.enter(await stage.until(p2!.guard.acquire('o', { ttl: ttl * 30, wait: ttl * 2 })));
      await stage.pass(ttl);
      assert.equal(await stage.until(first.release()), 'lost');
      assert.equal(await stage.until(p3!.guard.tryAcquire('o')), null);
      assert.ok(p2!.look(second));
    },
  },
  {
    title: '[B167] [C1] takes many releases for one: one request, and the next owner keeps the lock',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2);
      const twice = await stage.until(p1!.guard.acquire('twice'));
      p1!.locks.plan.forgetTraffic();
      assert.deepEqual(
        [await stage.until(twice.release()), await stage.until(twice.release())],
        ['released', 'released'],
      );
      assert.equal(p1!.locks.plan.traffic('release').operations, 1);

      const often = await stage.until(p1!.guard.acquire('often'));
      const results = await stage.until(Promise.all(Array.from({ length: 10 }, () => often.release())));
      assert.deepEqual(new Set(results), new Set(['released']));
      const next = await stage.until(p2!.guard.acquire('often'));
      assert.equal(await stage.until(often.release()), 'released');
      assert.ok(next.isHeld() && (await stage.until(p2!.guard.inspect('often'))).held);
      assert.equal(p1!.locks.plan.traffic('release').operations, 2);

      const inside = p1!.guard.withLock('inside', (lock) => lock.release());
      assert.equal(await stage.until(inside), 'released');
      const declared = async (): Promise<string> => {
        await using lock = await p1!.guard.acquire('declared');
        return lock.release();
      };
      assert.equal(await stage.until(declared()), 'released');
      assert.equal((await stage.until(p2!.guard.inspect('declared'))).held, false);
    },
  },
  {
    title: '[B169] [L3] grants the same process the key again at its first try, however the release went',
    run: async (stage) => {
      const ttl = stage.ttl(1_000);
      const p1 = await stage.process(stage.unstopped);
      const take = () => stage.until(p1.guard.tryAcquire('ls', { ttl }), 5_000);

      const first = await take();
      p1.down();
      const released = stage.track(first!.release());
      await stage.pass(ttl * 2);
      assert.notEqual(released.state, 'pending', 'a release of a server that is away is bounded');
      assert.equal(released.value, 'unknown');
      p1.heal();
      await stage.pass(stage.traits.ttlGranularityMs);

      const second = await take();
      assert.ok(second !== null, 'after a release that could not be sent');
      p1.locks.cut();
      await stage.pass(ttl * 1.5 + stage.traits.ttlGranularityMs);
      p1.heal();
      await stage.until(second.release());
      await stage.pass(100);

      const third = await take();
      assert.ok(third !== null, 'after it expired before the release');
      await stage.until(third.release());
      const boom = await stage.failure(
        p1.guard.withLock('ls', { ttl }, () => Promise.reject(new Error('boom'))),
      );
      assert.equal((boom as Error).message, 'boom');
      const fourth = await take();
      assert.ok(fourth !== null, 'after a withLock whose body threw');
    },
  },
  {
    title: '[B176] shows no proof of ownership in any form of the handle',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2);
      const lock = await stage.until(p1!.guard.acquire('ho'));
      const lease = (
        await stage.until(p1!.locks.backend.inspect({ keys: [`${stage.namespace}/lock/ho`] }))
      )[0]?.lease;
      assert.ok(lease !== undefined);
      const forms = [JSON.stringify(lock), inspect(lock, { depth: 20, showHidden: true })];
      for (const form of forms) assert.ok(!form.includes(lease.claim), `the claim id is in ${form}`);
      assert.deepEqual(JSON.parse(forms[0]!), { key: 'ho', token: String(lock.token) });
      assert.doesNotThrow(() => structuredClone(lock), 'structuredClone of a handle');
      assert.ok(p2);
    },
  },
  {
    title: '[B176] tells the holder of a forced release, records it, and lets the fence grow',
    run: async (stage) => {
      const ttl = stage.ttl(1_000);
      const [p1, p2] = await stage.processes(2);
      const forced: unknown[] = [];
      p2!.guard.on('lock-forced', (event) => forced.push(event));
      const work = stage.track(
        p1!.guard.withLock('ho', { ttl }, async (lock) => {
          p1!.enter(lock);
          while (!lock.signal.aborted) await p1!.sleep(ttl / 20);
          return lock.token;
        }),
      );
      await stage.pass(ttl / 10);
      const { token } = await stage.until(p2!.guard.inspect('ho'));
      assert.equal(await stage.until(p2!.guard.forceRelease('ho', { note: 'node 1 was unplugged' })), true);
      assert.deepEqual(forced, [{ key: 'ho', token, note: 'node 1 was unplugged' }]);
      await stage.until(work.settled, ttl * 2, 'the loss');
      expectCode(work.error, 'lock-lost', 'withLock');
      const next = await stage.until(p2!.guard.acquire('ho', { ttl }));
      assert.ok(next.token > token);
      await stage.until(next.release());
      assert.equal(await stage.until(p2!.guard.forceRelease('ho', { note: 'nobody is there' })), false);
    },
  },
];
