/** Cases of the state port: no write after a newer holder's write. */
import { assert, expectStatus } from '../assert.js';
import type { StateCase, StateKit } from './kit.js';

const LOCK = 'contract|lock/a';

function fenced(token: bigint, lock = LOCK) {
  return { fence: { lock, token } };
}

/** A write that must be refused because a larger token wrote before. */
async function expectFenced(kit: StateKit, key: string, token: bigint, newer: bigint): Promise<void> {
  const answer = await kit.send(kit.wish(key, `by ${token}`, fenced(token)));
  assert.equal(expectStatus(answer, 'fenced', `a write under ${token}`).token, newer);
}

export const fencingCases: readonly StateCase[] = [
  {
    title: '[B04] refuses a write under a smaller token, accepts the same and larger ones',
    run: async (kit) => {
      for (const token of [5n, 5n, 9n, 10n]) await kit.put(kit.key(), `by ${token}`, fenced(token));
      await expectFenced(kit, kit.key(), 9n, 10n);
      assert.equal(await kit.value(kit.key()), 'by 10');
      await kit.put(kit.key(), 'by 10 again', fenced(10n), await kit.second());
    },
  },
  {
    title: 'compares tokens as numbers to the last digit, not as texts and not as doubles',
    run: async (kit) => {
      const pairs = [
        [9n, 10n],
        [2n ** 53n, 2n ** 53n + 1n],
        [999_999_999_999_999_999n, 1_000_000_000_000_000_000n],
        [9_223_372_036_854_775_806n, 9_223_372_036_854_775_807n],
      ] as const;
      for (const [smaller, larger] of pairs) {
        await kit.put(kit.key(`${larger}`), 1, fenced(smaller));
        await kit.put(kit.key(`${larger}`), 2, fenced(larger));
        await expectFenced(kit, kit.key(`${larger}`), smaller, larger);
      }
    },
  },
  {
    title: 'refuses a create and a delete under a smaller token too',
    run: async (kit) => {
      await kit.put(kit.key(), 1, fenced(10n));
      const remove = kit.wish(kit.key(), null, fenced(9n));
      expectStatus(await kit.send(remove), 'fenced', 'a delete under a smaller token');
      assert.equal(await kit.value(kit.key()), 1);
      const create = await kit.send(kit.wish(kit.key(), 2, { expect: 'absent', ...fenced(9n) }));
      assert.notEqual(create.status, 'written');
    },
  },
  {
    title: 'keeps the fence over a delete',
    run: async (kit) => {
      await kit.put(kit.key(), 1, fenced(10n));
      await kit.put(kit.key(), null, fenced(10n));
      await expectFenced(kit, kit.key(), 9n, 10n);
      assert.equal(await kit.get(kit.key()), null);
      const create = await kit.send(kit.wish(kit.key(), 2, { expect: 'absent', ...fenced(9n) }));
      expectStatus(create, 'fenced', 'a create after the delete');
      await kit.put(kit.key(), 'newer', { expect: 'absent', ...fenced(11n) });
      await expectFenced(kit, kit.key(), 10n, 11n);
    },
  },
  {
    title: 'keeps the fence over an expiry',
    run: async (kit) => {
      await kit.put(kit.key(), 1, { ttl: kit.ttlMs, ...fenced(10n) });
      await kit.expire();
      await expectFenced(kit, kit.key(), 9n, 10n);
      assert.equal(await kit.get(kit.key()), null);
    },
  },
  {
    title: 'keeps the fence of a deleted entry for an hour',
    run: async (kit) => {
      await kit.put(kit.key(), 1, fenced(10n));
      await kit.put(kit.key(), null);
      // On the real time an hour cannot pass; then this shows the beginning of it.
      await kit.time.pass(kit.time.virtual ? 3_599_000 : 500);
      await expectFenced(kit, kit.key(), 9n, 10n);
    },
  },
  {
    title: 'keeps the fence over a write without one',
    run: async (kit) => {
      await kit.put(kit.key(), 1, fenced(10n));
      await kit.put(kit.key(), 2);
      await expectFenced(kit, kit.key(), 9n, 10n);
      assert.equal(await kit.value(kit.key()), 2);
    },
  },
  {
    title: 'compares tokens of one lock only, and fences nothing that was never fenced',
    run: async (kit) => {
      await kit.put(kit.key(), 1, fenced(10n));
      await kit.put(kit.key(), 2, fenced(1n, 'contract|lock/b'));
      await kit.put(kit.key('never'), 1);
      await kit.put(kit.key('never'), 2, fenced(1n));
      assert.equal(await kit.value(kit.key()), 2);
    },
  },
  {
    title: 'checks version and fence together: a larger token does not excuse a stale version',
    run: async (kit) => {
      const version = await kit.put(kit.key(), 1, fenced(10n));
      await kit.put(kit.key(), 2, fenced(10n));
      assert.notEqual(await kit.conflict(kit.key(), 3, { expect: { version }, ...fenced(11n) }), null);
      await kit.put(kit.key(), 'still open to ten', fenced(10n));
    },
  },
];
