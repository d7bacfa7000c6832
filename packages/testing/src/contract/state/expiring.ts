/** Cases of the state port: how long an entry lasts. */
import { assert, expectStatus, expectWithin } from '../assert.js';
import type { StateCase, StateKit } from './kit.js';

async function expectLeft(kit: StateKit, minMs: number, maxMs: number, what: string): Promise<void> {
  const entry = await kit.get(kit.key());
  expectWithin(entry?.expiresInMs, minMs - kit.slackMs, maxMs + kit.slackMs, what);
}

export const expiringCases: readonly StateCase[] = [
  {
    title: 'keeps an entry for its ttl by the store’s clock, and not much longer',
    run: async (kit) => {
      const ttlMs = kit.ttlMs * 2;
      await kit.put(kit.key(), 1, { ttl: ttlMs });
      await expectLeft(kit, ttlMs, ttlMs, 'right after the write');
      await kit.time.pass(kit.ttlMs);
      await expectLeft(kit, kit.ttlMs, kit.ttlMs, 'half way');
      await kit.expire();
      assert.equal(await kit.get(kit.key()), null);
      assert.equal(await kit.get(kit.key(), await kit.second()), null);
    },
  },
  {
    title: 'says no expiry for an entry without a ttl',
    run: async (kit) => {
      for (const ttl of ['none', 'keep'] as const) {
        await kit.put(kit.key(ttl), 1, { ttl });
        assert.equal((await kit.get(kit.key(ttl)))?.expiresInMs, undefined);
      }
    },
  },
  {
    title: '[B177] keeps the remaining time on a write that keeps it, with and without a version',
    run: async (kit) => {
      const ttlMs = kit.ttlMs * 3;
      const version = await kit.put(kit.key(), 1, { ttl: ttlMs });
      await kit.time.pass(kit.ttlMs);
      await kit.put(kit.key(), 2, { expect: { version }, ttl: 'keep' });
      await expectLeft(kit, kit.ttlMs * 2, kit.ttlMs * 2, 'after a compare-and-set');
      await kit.put(kit.key(), 3, { ttl: 'keep' });
      await expectLeft(kit, kit.ttlMs * 2, kit.ttlMs * 2, 'after a write of whatever was there');
      await kit.expire(kit.ttlMs * 2);
      assert.equal(await kit.get(kit.key()), null);
    },
  },
  {
    title: '[B177] sets a shorter and a longer time, and takes it away',
    run: async (kit) => {
      await kit.put(kit.key(), 1, { ttl: kit.ttlMs * 5 });
      await kit.put(kit.key(), 1, { ttl: kit.ttlMs * 2 });
      await expectLeft(kit, kit.ttlMs * 2, kit.ttlMs * 2, 'shorter');
      await kit.put(kit.key(), 1, { ttl: kit.ttlMs * 5 });
      await expectLeft(kit, kit.ttlMs * 5, kit.ttlMs * 5, 'longer');
      await kit.put(kit.key(), 1, { ttl: 'none' });
      assert.equal((await kit.get(kit.key()))?.expiresInMs, undefined);
      await kit.put(kit.key(), 1, { ttl: kit.ttlMs });
      await kit.expire();
      assert.equal(await kit.get(kit.key()), null);
    },
  },
  {
    title: '[B177] never makes an entry permanent by accident when it is written in its last instant',
    run: async (kit) => {
      const rounds = kit.time.virtual ? 100 : kit.profile === 'quick' ? 10 : 100;
      const ttlMs = 200;
      const tries = [];
      for (let n = 0; n < rounds; n += 1) {
        const key = kit.key(`edge ${n}`);
        const version = await kit.put(key, 'old', { ttl: ttlMs });
        const offsetMs = Math.round(ttlMs * (0.9 + (0.2 * n) / rounds));
        await kit.time.pass(offsetMs);
        tries.push(await kit.send(kit.wish(key, 'new', { expect: { version }, ttl: 'keep' })));
        const entry = await kit.get(key);
        assert.ok(
          entry === null || entry.expiresInMs !== undefined,
          `round ${n}: the entry became permanent`,
        );
      }
      assert.ok(tries.every(({ status }) => status === 'written' || status === 'conflict'));
      await kit.expire(ttlMs);
      for (let n = 0; n < rounds; n += 1) assert.equal(await kit.get(kit.key(`edge ${n}`)), null);
    },
  },
  {
    title: 'takes an expired entry for absent, whoever looks: read, create, compare-and-set, scan',
    run: async (kit) => {
      const version = await kit.put(kit.key(), 'old', { ttl: kit.ttlMs });
      await kit.expire();
      assert.deepEqual(await kit.scanAll(kit.key(), 10), []);
      assert.equal(await kit.conflict(kit.key(), 'x', { expect: { version } }), null);
      const next = await kit.put(kit.key(), 'new', { expect: 'absent' });
      assert.deepEqual(await kit.get(kit.key()), { key: kit.key(), value: '"new"', version: next });
    },
  },
  {
    title: '[B85] keeps a ttl of a hundred years',
    run: async (kit) => {
      const ttlMs = 36_500 * 86_400_000;
      await kit.put(kit.key(), 1, { ttl: ttlMs });
      const entry = await kit.get(kit.key());
      expectWithin(entry?.expiresInMs, ttlMs - 60_000, ttlMs + 60_000, 'expiresInMs');
    },
  },
  {
    title: '[S4] answers a re-sent write without setting its ttl a second time',
    run: async (kit) => {
      const write = kit.wish(kit.key(), 1, { ttl: kit.ttlMs * 2 });
      const first = expectStatus(await kit.send(write), 'written', 'write');
      await kit.time.pass(kit.ttlMs);
      assert.deepEqual(await kit.send(write), first);
      await expectLeft(kit, kit.ttlMs, kit.ttlMs, 'after the re-sent write');
      await kit.expire();
      assert.equal(await kit.get(kit.key()), null);
    },
  },
  {
    title: 'tells its own time, which does not go back',
    run: async (kit) => {
      const before = await kit.store.now();
      assert.ok(Number.isFinite(before) && before > Date.UTC(2020, 0, 1), `now() is ${before}`);
      await kit.time.pass(100);
      const after = await kit.store.now();
      expectWithin(after - before, 50, 100 + kit.slackMs, 'time that passed');
      expectWithin((await (await kit.second()).now()) - after, -50, kit.slackMs, 'the other connection');
    },
  },
];
