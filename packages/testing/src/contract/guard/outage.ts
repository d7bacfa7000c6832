/** Cases that a guard must stand: servers that are away, late requests, and errors that can be told apart. */
import { GuardError } from '@guard/core';
import { everythingTold, secretsIn } from '../../check/secrets.js';
import { assert, expectCode, expectWithin } from '../assert.js';
import type { GuardCase } from './stage.js';

export const outageCases: readonly GuardCase[] = [
  {
    title:
      '[B25] [S6] rejects within the wait as unavailable while the server is away, and creates nothing later',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2, stage.unstopped);
      for (const away of ['down', 'cut'] as const) {
        const key = `a ${away}`;
        if (away === 'down') p1!.down();
        else p1!.locks.cut();
        const sinceMs = stage.time.now();
        const wait = stage.amount(1_000, 1_000, 500);
        const error = await stage.failure(p1!.guard.acquire(key, { wait }), wait + 500, 'acquire');
        expectCode(error, 'unavailable', 'acquire');
        if (away === 'down') {
          assert.ok(GuardError.is(error) && error.cause instanceof Error, 'the driver’s error is the cause');
          assert.match(String(error.cause), /the server is away/);
        }
        expectWithin(stage.time.now() - sinceMs, 0, wait + 500, 'time until the rejection');
        await stage.pass(stage.amount(2_000, 2_000, 300));
        p1!.heal();
        await stage.pass(stage.amount(3_000, 3_000, 500));
        assert.equal((await stage.until(p2!.guard.inspect(key))).held, false);
      }
    },
  },
  {
    title: '[B52] [S4] refuses an acquire that is executed after its caller gave up: nobody is locked out',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2, stage.unstopped);
      const laterMs = stage.amount(2_000, 2_000, 700);
      p1!.locks.plan.play(
        { type: 'execute-later', afterMs: laterMs, answer: 'reject' },
        { verbs: ['acquire'] },
      );
      const error = await stage.failure(
        p1!.guard.acquire('ghost', { ttl: 60_000, wait: 500 }),
        1_000,
        'acquire',
      );
      expectCode(error, 'unavailable', 'acquire');
      await stage.pass(laterMs * 2);
      assert.notEqual(await stage.until(p2!.guard.tryAcquire('ghost')), null);
    },
  },
  {
    title: '[B50] [S4] recognises its own claim where the command was sent twice',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2, stage.unstopped);
      p1!.locks.plan.play({ type: 'execute-twice', afterMs: 100 }, { verbs: ['acquire'], times: 1 });
      const lock = p1!.enter((await stage.until(p1!.guard.tryAcquire('amb', { ttl: 60_000 })))!);
      assert.ok(p1!.look(lock));
      p1!.locks.plan.play({ type: 'execute-twice', afterMs: 100 }, { verbs: ['release'], times: 1 });
      p1!.exit(lock);
      await stage.until(lock.release(), 5_000);
      assert.notEqual(await stage.until(p2!.guard.tryAcquire('amb')), null);
    },
  },
  {
    title: '[B50] [B94] [S4] either holds the lock knowingly or leaves it to others, whatever reply is lost',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2, stage.unstopped);
      const ttl = Math.max(stage.amount(60_000, 60_000, 1_500), stage.minTtlMs);
      p1!.locks.loseReply('acquire');
      const tried = stage.track(p1!.guard.tryAcquire('lost', { ttl }));
      await stage.until(tried.settled, 10_000, 'the try');
      assert.ok(tried.state === 'rejected' || tried.value !== null, 'its own grant is not somebody else’s');
      if (tried.state === 'rejected') expectCode(tried.error, 'unavailable', 'the try');
      if (tried.state === 'fulfilled') await stage.until(tried.value!.release());
      await stage.pass(stage.amount(3_000, 3_000, 500));
      const next = await stage.until(p2!.guard.tryAcquire('lost', { ttl }));
      assert.notEqual(next, null);
      p2!.locks.loseReply('release');
      assert.notEqual(await stage.until(next!.release(), 10_000, 'the release'), 'lost');
      assert.notEqual(await stage.until(p1!.guard.tryAcquire('lost')), null);
    },
  },
  {
    title: '[B113] [S6] answers each kind of trouble in its own way, and tells no secret',
    run: async (stage) => {
      const ttl = stage.ttl(1_000);
      const [p1, p2] = await stage.processes(2);
      const held = await stage.until(p1!.guard.acquire('b', { ttl }));
      assert.equal(await stage.until(p2!.guard.tryAcquire('b')), null, 'busy on a try is a value');
      const busy = await stage.failure(p2!.guard.acquire('b', { wait: stage.amount(50, 50, 500) }));
      const controller = new AbortController();
      controller.abort();
      const aborted = await stage.failure(p2!.guard.acquire('b', { signal: controller.signal }));
      const bad = await stage.failure(p2!.guard.acquire('b', { ttl: Number.NaN }));
      const own = new TypeError('the work’s own');
      const work = await stage.failure(p2!.guard.withLock('c', () => Promise.reject(own)));
      const lostWork = p1!.guard.withLock('l', { ttl }, async (lock) => {
        p1!.locks.cut();
        while (!lock.signal.aborted) await p1!.sleep(ttl / 20);
      });
      const lost = await stage.failure(lostWork, ttl * 3, 'the loss');
      assert.notEqual(await stage.until(held.release(), 5_000), 'released');
      p1!.heal();
      const told = everythingTold(p2!.guard);
      const address = new Error('connect ECONNREFUSED redis://app:geheim@10.0.0.1:6379');
      // As client libraries do: the refused command with its arguments.
      p2!.locks.down(Object.assign(address, { command: { name: 'auth', args: ['app', 'geheim'] } }));
      const down = await stage.failure(p2!.guard.acquire('d', { wait: 100 }));
      p2!.heal();
      const p3 = await stage.process();
      await stage.until(p3.guard.close());
      const closed = await stage.failure(p3.guard.acquire('e'));
      assert.equal(work, own, 'the work’s own error is thrown as it is');
      const expected = [
        [busy, 'lock-busy'],
        [aborted, 'aborted'],
        [bad, 'invalid-argument'],
        [lost, 'lock-lost'],
        [down, 'unavailable'],
        [closed, 'closed'],
      ] as const;
      for (const [error, code] of expected) {
        assert.equal(expectCode(error, code, code).name, 'GuardError');
        assert.ok((error as Error).message.startsWith(`[${code}]`));
      }
      assert.ok(String((down as Error).cause).includes('ECONNREFUSED'));
      assert.equal(secretsIn(down, ['geheim']).join(), '', 'a secret in the error');
      assert.ok(told.length > 0, 'an event of the outage');
      assert.equal(secretsIn(told, ['geheim']).join(), '', 'a secret in an event');
    },
  },
];
