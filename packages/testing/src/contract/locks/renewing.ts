/** Cases of the lock port: renewals. */
import { assert, expectStatus, expectWithin } from '../assert.js';
import type { LockCase } from './kit.js';

export const renewingCases: readonly LockCase[] = [
  {
    title: 'sets the lease to now + ttl, so that a renewed lock outlives its first lease',
    run: async (kit) => {
      const { ref, token } = await kit.grant(kit.claim(kit.key()));
      for (let n = 0; n < 3; n += 1) {
        await kit.time.pass(kit.ttlMs * 0.6);
        expectStatus(await kit.renew(ref), 'renewed', 'renewal');
      }
      await kit.busy(kit.key(), await kit.second());
      const info = await kit.info(kit.key());
      assert.equal(info.token, token);
      const most = kit.ttlMs + kit.traits.ttlGranularityMs + kit.slackMs;
      expectWithin(info.expiresInMs, kit.ttlMs - kit.slackMs, most, 'expiresInMs after the renewal');
    },
  },
  {
    title: '[S5] never shortens a lease',
    run: async (kit) => {
      const longMs = kit.ttlMs * 10;
      const { ref } = await kit.grant(kit.claim(kit.key(), { ttlMs: longMs }));
      expectStatus(await kit.renew(ref, kit.ttlMs), 'renewed', 'a shorter renewal');
      expectWithin((await kit.info(kit.key())).expiresInMs, longMs * 0.8, longMs * 1.2, 'expiresInMs');
      await kit.expire();
      await kit.busy(kit.key());
    },
  },
  {
    title: 'lengthens a lease',
    run: async (kit) => {
      const { ref } = await kit.grant(kit.claim(kit.key()));
      expectStatus(await kit.renew(ref, kit.ttlMs * 10), 'renewed', 'a longer renewal');
      await kit.expire();
      await kit.busy(kit.key());
    },
  },
  {
    title: '[S3] renews by claim id only, and leaves the holder alone where it answers lost',
    run: async (kit) => {
      const { ref } = await kit.grant(kit.claim(kit.key()));
      const before = await kit.info(kit.key());
      const foreign = { ...ref, claim: kit.claim(kit.key()).id };
      expectStatus(await kit.renew(foreign, kit.ttlMs * 100), 'lost', 'renewal by another claim');
      const after = await kit.info(kit.key());
      assert.deepEqual([after.token, after.holder], [before.token, before.holder]);
      const most = kit.ttlMs + kit.traits.ttlGranularityMs + kit.slackMs;
      expectWithin(after.expiresInMs, 1, most, 'expiresInMs');
    },
  },
  {
    title: '[S5] answers lost for a key that nobody holds, and creates nothing',
    run: async (kit) => {
      const claim = kit.claim(kit.key());
      const ref = { key: claim.key, claim: claim.id, token: 1n, session: claim.session };
      expectStatus(await kit.renew(ref), 'lost', 'renewal of nothing');
      assert.equal((await kit.info(kit.key())).held, false);
      await kit.grant(kit.claim(kit.key()));
    },
  },
  {
    title: '[S5] answers lost after the release, and creates nothing',
    run: async (kit) => {
      const { ref } = await kit.grant(kit.claim(kit.key()));
      await kit.release(ref);
      expectStatus(await kit.renew(ref), 'lost', 'renewal after the release');
      await kit.grant(kit.claim(kit.key()), await kit.second());
    },
  },
  {
    title: '[S5] [B01] answers lost after expiry, free or taken, and leaves the successor alone',
    run: async (kit) => {
      const first = await kit.grant(kit.claim(kit.key()));
      await kit.expire();
      const second = await kit.grant(kit.claim(kit.key()), await kit.second());
      expectStatus(await kit.renew(first.ref), 'lost', 'renewal of a lock that somebody else has');
      const info = await kit.info(kit.key());
      assert.equal(info.token, second.token);
      expectStatus(await kit.release(second.ref), 'released', 'release by the successor');
      expectStatus(await kit.renew(first.ref), 'lost', 'renewal after the successor is gone');
      assert.equal((await kit.info(kit.key())).held, false);
    },
  },
  {
    title: '[S5] answers lost to a renewal that names an earlier grant of the same claim',
    run: async (kit) => {
      const first = await kit.grant(kit.claim(kit.key()));
      await kit.expire();
      const again = await kit.grant(first.claim);
      expectStatus(await kit.renew(first.ref, kit.ttlMs * 100), 'lost', 'renewal of the earlier grant');
      expectStatus(await kit.renew(again.ref), 'renewed', 'renewal of the later grant');
    },
  },
];
