/** Cases that a guard must stand: keys and times at their limits, refused before any traffic or kept exactly. */
import { inspect } from 'node:util';
import { GuardError, marginMs, MAX_KEY_BYTES, type Guard } from '@guard/core';
import { assert, expectCode, expectWithin } from '../assert.js';
import { ODD_KEYS } from '../odd-keys.js';
import type { Process } from './process.js';
import type { GuardCase, Stage } from './stage.js';

const NOT_KEYS = [
  '',
  undefined,
  null,
  Symbol('k'),
  {},
  [],
  [''],
  true,
  Number.NaN,
  Infinity,
  () => 'k',
  'a\0b',
];
const IMPOSSIBLE_MS = [0, -1, -0, Number.NaN, Infinity, -Infinity, 0.5, 123.45, '1000', null, 1e21, 2 ** 53];
const IMPOSSIBLE = [...IMPOSSIBLE_MS, Number.MAX_VALUE, 1000n, {}, '', '5x', '-5s', true];

function shown(value: unknown): string {
  return inspect(value);
}

/** Everything of a guard that takes a key. */
function callsWith(guard: Guard, key: never): Record<string, () => Promise<unknown>> {
  return {
    acquire: () => guard.acquire(key),
    tryAcquire: () => guard.tryAcquire(key),
    withLock: () => guard.withLock(key, () => undefined),
    acquireAll: () => guard.acquireAll([key]),
    inspect: () => guard.inspect(key),
    'state.get': () => guard.state.get(key),
    'state.set': () => guard.state.set(key, 1),
    'state.create': () => guard.state.create(key, 1),
    'state.delete': () => guard.state.delete(key),
  };
}

async function refusesEach(
  stage: Stage,
  p: Process,
  calls: Record<string, () => Promise<unknown>>,
  what: string,
) {
  const before = [p.locks.plan.total().calls, p.state.plan.total().calls];
  for (const [name, call] of Object.entries(calls)) {
    // Refused by a rejection, never by a throw: the caller has one way to look.
    const error = await stage.failure(call(), 1_000, `${name} of ${what}`);
    expectCode(error, 'invalid-argument', `${name} of ${what}`);
  }
  assert.deepEqual(
    [p.locks.plan.total().calls, p.state.plan.total().calls],
    before,
    `${what} caused traffic`,
  );
}

/** B165: the shortest ttl for a second, whatever a round trip costs. */
async function holdTiny(stage: Stage, p: Process, latencyMs: number): Promise<void> {
  const ttl = stage.minTtlMs;
  p.locks.plan.play({ type: 'delay', replyMs: latencyMs });
  p.locks.plan.forgetTraffic();
  const sinceMs = stage.time.now();
  const work = stage.track(
    p.guard.withLock('tiny', { ttl, wait: 1_000 }, async (lock) => {
      p.enter(lock);
      await p.sleep(1_000);
      const wasTold = lock.signal.aborted;
      assert.equal(p.look(lock), !wasTold, 'held, or signalled lost');
      p.exit(lock);
    }),
  );
  await stage.until(work.settled, 10_000, 'the work');
  // A round trip longer than the lease can be believed is never a grant: then the wait ends.
  if (work.state === 'rejected' && !GuardError.is(work.error, 'lock-busy')) {
    expectCode(work.error, 'lock-lost', 'the work');
  }
  const seconds = (stage.time.now() - sinceMs) / 1_000;
  const { calls } = p.locks.plan.total();
  assert.ok(calls <= 100 * Math.max(seconds, 1), `${calls} requests in ${seconds} s`);
  p.heal();
  await stage.pass(ttl + stage.traits.ttlGranularityMs);
}

export const limitCases: readonly GuardCase[] = [
  {
    title: '[B159] refuses what is not a key before any traffic, with one code everywhere',
    run: async (stage) => {
      const p1 = await stage.process();
      for (const key of NOT_KEYS) {
        await refusesEach(stage, p1, callsWith(p1.guard, key as never), `the key ${shown(key)}`);
      }
      for (const key of ['\ud800', '\udfff', 'a\ud800b']) {
        await refusesEach(stage, p1, callsWith(p1.guard, key as never), 'a lone surrogate');
      }
    },
  },
  {
    title: '[B159] [B162] holds and stores odd keys side by side, and lists them exactly',
    run: async (stage) => {
      const p1 = await stage.process();
      const locks = await stage.until(Promise.all(ODD_KEYS.map((key) => p1.guard.acquire(key, { wait: 0 }))));
      assert.deepEqual(
        locks.map(({ key }) => key),
        ODD_KEYS,
      );
      for (const lock of locks) await stage.until(lock.release());
      for (const key of ODD_KEYS) await stage.until(p1.guard.state.set(key, key));
      const listed: string[] = [];
      const list = async (): Promise<void> => {
        for await (const { key, value } of p1.guard.state.list<string>('')) {
          assert.equal(value, key);
          listed.push(key);
        }
      };
      await stage.until(list());
      assert.deepEqual([...listed].sort(), [...ODD_KEYS].sort());
    },
  },
  {
    title: '[B160] [B87] has one limit of bytes for keys: refused above, independent and woken below',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2);
      for (const bytes of [513, 1_024, 8_192, 65_536, 1_048_576]) {
        const calls = callsWith(p1!.guard, 'x'.repeat(bytes) as never);
        await refusesEach(stage, p1!, calls, `a key of ${bytes} bytes`);
        const error = expectCode(await stage.failure(calls['acquire']!()), 'invalid-argument', 'acquire');
        assert.match(error.message, new RegExp(String(MAX_KEY_BYTES)), 'the message names the limit');
      }
      const keys = [64, 65, 255, 256, MAX_KEY_BYTES].map((bytes) => 'x'.repeat(bytes - 1));
      for (const key of [...keys, '𝒜'.repeat(127)]) {
        const held = await stage.until(p1!.guard.acquire(`${key}0`));
        assert.equal(await stage.until(p2!.guard.tryAcquire(`${key}0`)), null);
        const other = await stage.until(p2!.guard.tryAcquire(`${key}1`));
        assert.notEqual(other, null);
        const waiting = p2!.guard.acquire(`${key}0`, { wait: 5_000 });
        await stage.pass(20);
        await stage.until(held.release());
        await stage.until((await stage.until(waiting, 1_000, 'the waiter')).release());
        await stage.until(other!.release());
      }
    },
  },
  {
    title: '[B163] refuses impossible times before any traffic, and a refused extension changes nothing',
    run: async (stage) => {
      const p1 = await stage.process();
      const held = await stage.until(p1.guard.acquire('held', { ttl: stage.ttl(5_000) }));
      for (const value of IMPOSSIBLE) {
        const ttl = value as never;
        const calls = {
          acquire: () => p1.guard.acquire('k', { ttl }),
          tryAcquire: () => p1.guard.tryAcquire('k', { ttl }),
          'state.set': () => p1.guard.state.set('k', 1, { ttl }),
          extend: () => held.extend(ttl),
        };
        await refusesEach(stage, p1, calls, `the time ${shown(value)}`);
      }
      expectWithin(held.remainingMs(), 1, stage.ttl(5_000), 'remaining after refused extensions');
      const standard = await stage.until(p1.guard.acquire('k', {}));
      expectWithin(standard.remainingMs(), 20_000, 30_000, 'remaining of the default ttl');
    },
  },
  {
    title: '[B85] grants a ttl of twenty years with the right expiry, and refuses one of three hundred',
    run: async (stage) => {
      const [p1, p2] = await stage.processes(2);
      const twenty = 630_720_000_000;
      const lock = await stage.until(p1!.guard.acquire('long', { ttl: twenty, renew: false }));
      expectWithin(lock.remainingMs(), twenty * 0.97, twenty, 'remaining');
      assert.equal(await stage.until(p2!.guard.tryAcquire('long')), null);
      for (const ttl of [9_460_800_000_000, 9e15]) {
        const calls = { acquire: () => p1!.guard.acquire('longer', { ttl }) };
        await refusesEach(stage, p1!, calls, `a ttl of ${ttl}`);
        const free = await stage.until(p2!.guard.tryAcquire('longer'));
        await stage.until(free!.release());
      }
    },
  },
  {
    title: '[B165] refuses a ttl below the minimum, and keeps a tiny one without a storm of requests',
    run: async (stage) => {
      const p1 = await stage.process();
      for (const ttl of [1, 5, 30, 100, stage.minTtlMs - 1]) {
        await refusesEach(stage, p1, { acquire: () => p1.guard.acquire('tiny', { ttl }) }, `a ttl of ${ttl}`);
      }
      for (const latencyMs of [0, 50]) await holdTiny(stage, p1, latencyMs);
    },
  },
  {
    title: '[B170] extends many times under one fence, and never shortens',
    run: async (stage) => {
      const ttl = stage.ttl(2_000);
      const p1 = await stage.process();
      const lock = p1.enter(await stage.until(p1.guard.acquire('ex', { ttl })));
      const { token } = lock;
      for (let n = 0; n < stage.amount(50, 50, 10); n += 1) {
        await stage.pass(ttl / 20);
        await stage.until(lock.extend(ttl));
        const least = ttl - marginMs(ttl) - (stage.time.virtual ? 1 : 300);
        expectWithin(lock.remainingMs(), least, ttl, 'remaining after an extension');
        assert.equal(lock.token, token);
      }
      await stage.until(lock.extend(ttl * 10));
      await stage.until(lock.extend(ttl));
      expectWithin(lock.remainingMs(), ttl * 9, ttl * 10, 'remaining after a shorter extension');
      const { expiresInMs } = await stage.until(p1.guard.inspect('ex'));
      expectWithin(
        expiresInMs,
        lock.remainingMs(),
        ttl * 10 + stage.traits.ttlGranularityMs + 100,
        'by the backend',
      );
      await stage.until(Promise.all(Array.from({ length: 5 }, () => lock.extend(ttl))));
      await stage.pass(ttl * 3);
      assert.ok(p1.look(lock), 'auto-renewal goes on beside extensions');
      p1.exit(lock);
      await stage.until(lock.release());
    },
  },
  {
    title:
      '[B170] [S5] answers lost to an extension after expiry, take-over and release, and creates nothing',
    run: async (stage) => {
      const ttl = stage.ttl(1_000);
      const [p1, p2] = await stage.processes(2);
      const lock = await stage.until(p1!.guard.acquire('ex', { ttl, renew: false }));
      await stage.pass(ttl + stage.traits.ttlGranularityMs + 50);
      expectCode(await stage.failure(lock.extend(ttl * 2)), 'lock-lost', 'extension after expiry');
      assert.equal((await stage.until(p2!.guard.inspect('ex'))).held, false);
      const taken = p2!.enter(await stage.until(p2!.guard.acquire('ex', { ttl })));
      expectCode(await stage.failure(lock.extend(ttl * 2)), 'lock-lost', 'extension after the take-over');
      assert.ok(p2!.look(taken));
      p2!.exit(taken);
      await stage.until(taken.release());
      expectCode(await stage.failure(taken.extend(ttl * 2)), 'lock-lost', 'extension after the release');
      assert.equal((await stage.until(p1!.guard.inspect('ex'))).held, false);
    },
  },
];
