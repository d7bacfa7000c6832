/** Cases of the lock port: what inspect tells. */
import type { LockInfo, LockQuery } from '@guard/core';
import { assert, expectStatus, expectWithin } from '../assert.js';
import type { LockCase, LockKit } from './kit.js';

type PrefixQuery = Extract<LockQuery, { prefix: string }>;

/** All pages of a prefix. */
async function pagesOf(kit: LockKit, prefix: string, limit: number): Promise<LockInfo[]> {
  const found: LockInfo[] = [];
  for (let query: PrefixQuery = { prefix, limit }; ; query = { prefix, limit, after: found.at(-1)!.key }) {
    const page = await kit.backend.inspect(query);
    assert.ok(page.length <= limit, `a page of ${page.length} for a limit of ${limit}`);
    found.push(...page);
    if (page.length < limit) return found;
  }
}

export const inspectingCases: readonly LockCase[] = [
  {
    title: 'tells of a free key that nobody holds it and nobody waits',
    run: async (kit) => {
      const { held, holder, waiting, lease, expiresInMs } = await kit.info(kit.key());
      assert.deepEqual(
        [held, holder, waiting, lease, expiresInMs],
        [false, undefined, 0, undefined, undefined],
      );
    },
  },
  {
    title: 'tells of a held key who holds it, for how long, and under which lease',
    run: async (kit) => {
      const holder = { label: 'pod-7', run: 'run 1' };
      const { token, ref } = await kit.grant(kit.claim(kit.key(), { holder }));
      const info = await kit.info(kit.key(), await kit.second());
      assert.deepEqual([info.held, info.holder, info.token, info.waiting], [true, holder, token, 0]);
      assert.deepEqual(
        { key: info.lease?.key, claim: info.lease?.claim, token: info.lease?.token },
        { key: ref.key, claim: ref.claim, token },
      );
      expectWithin(info.expiresInMs, 1, kit.ttlMs + kit.traits.ttlGranularityMs + kit.slackMs, 'expiresInMs');
    },
  },
  {
    title: 'answers keys in the order in which they were asked, known or not, also none at all',
    run: async (kit) => {
      await kit.grant(kit.claim(kit.key('b')));
      const keys = ['c', 'b', 'a'].map((name) => kit.key(name));
      const infos = await kit.backend.inspect({ keys });
      assert.deepEqual(
        infos.map(({ key, held }) => [key, held]),
        [
          [keys[0], false],
          [keys[1], true],
          [keys[2], false],
        ],
      );
      assert.deepEqual(await kit.backend.inspect({ keys: [] }), []);
    },
  },
  {
    title: 'tells of an expired lease that nobody holds the key',
    run: async (kit) => {
      await kit.grant(kit.claim(kit.key()));
      await kit.expire();
      const { held, holder, lease } = await kit.info(kit.key());
      assert.deepEqual([held, holder, lease], [false, undefined, undefined]);
    },
  },
  {
    title: 'lists held locks below a prefix in pages, in the order of their bytes, and no others',
    run: async (kit) => {
      const names = ['a', 'a b', 'aa', 'aé', 'aｚ', 'a😀', 'aB'];
      for (const name of names) await kit.grant(kit.claim(kit.key(name)));
      await kit.grant(kit.claim(kit.key('b')));
      const gone = await kit.grant(kit.claim(kit.key('a gone')));
      await kit.release(gone.ref);
      const expected = names
        .map((name) => kit.key(name))
        .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      for (const limit of [2, 100]) {
        const found = await pagesOf(kit, kit.key('a'), limit);
        assert.deepEqual(
          found.map(({ key }) => key),
          expected,
        );
        assert.ok(found.every(({ held, lease }) => held && lease !== undefined));
      }
    },
  },
  {
    title: '[B179] takes a prefix for exactly these bytes, never for a pattern',
    run: async (kit) => {
      for (const name of ['a*', 'a%', 'a_', 'a?', 'a[1]', 'a1', 'A*'])
        await kit.grant(kit.claim(kit.key(name)));
      for (const prefix of ['a*', 'a%', 'a_', 'a?', 'a[1]']) {
        const found = await pagesOf(kit, kit.key(prefix), 100);
        assert.deepEqual(
          found.map(({ key }) => key),
          [kit.key(prefix)],
        );
      }
    },
  },
  {
    title: 'changes nothing: a lock that was looked at still ends at its time',
    run: async (kit) => {
      const { ref } = await kit.grant(kit.claim(kit.key()));
      await kit.time.pass(kit.ttlMs * 0.6);
      await kit.info(kit.key());
      await kit.time.pass(kit.ttlMs * 0.5 + kit.traits.ttlGranularityMs + kit.slackMs);
      expectStatus(await kit.renew(ref), 'lost', 'renewal after the end');
    },
  },
];
