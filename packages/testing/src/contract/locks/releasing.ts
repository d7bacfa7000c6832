/** Cases of the lock port: releases, and claims that are given up. */
import { assert, expectStatus } from '../assert.js';
import { unlessFifo, type LockCase } from './kit.js';

export const releasingCases: readonly LockCase[] = [
  {
    title: 'frees the lock at once, also for other connections',
    run: async (kit) => {
      const { ref } = await kit.grant(kit.claim(kit.key()));
      expectStatus(await kit.release(ref), 'released', 'release');
      await kit.grant(kit.claim(kit.key()), await kit.second());
    },
  },
  {
    title: 'answers a second release with lost, and so a release of nothing',
    run: async (kit) => {
      const { ref } = await kit.grant(kit.claim(kit.key()));
      await kit.release(ref);
      expectStatus(await kit.release(ref), 'lost', 'second release');
      const unknown = { ...ref, key: kit.key('never held') };
      expectStatus(await kit.release(unknown), 'lost', 'release of nothing');
    },
  },
  {
    title: '[S3] releases by claim id only: another claim cannot',
    run: async (kit) => {
      const { ref } = await kit.grant(kit.claim(kit.key()));
      expectStatus(await kit.release({ ...ref, claim: kit.claim(kit.key()).id }), 'lost', 'foreign release');
      await kit.busy(kit.key());
      expectStatus(await kit.renew(ref), 'renewed', 'renewal by the holder');
    },
  },
  {
    title: '[S5] [B37] never touches a newer grant with a late release',
    run: async (kit) => {
      const first = await kit.grant(kit.claim(kit.key()));
      await kit.expire();
      const second = await kit.grant(kit.claim(kit.key(), { ttlMs: kit.ttlMs * 10 }), await kit.second());
      expectStatus(await kit.release(first.ref), 'lost', 'late release');
      await kit.busy(kit.key());
      expectStatus(await kit.renew(second.ref), 'renewed', 'the newer grant');
    },
  },
  {
    title: '[S5] [B23] never touches a later grant of the very same claim or session with an earlier release',
    run: async (kit) => {
      const first = await kit.grant(kit.claim(kit.key()));
      await kit.expire();
      const again = await kit.grant(first.claim);
      expectStatus(await kit.release(first.ref), 'lost', 'release of the earlier grant');
      await kit.busy(kit.key());
      await kit.release(again.ref);
      const other = await kit.grant(kit.claim(kit.key(), { session: first.claim.session }));
      expectStatus(await kit.release(again.ref), 'lost', 'a retried release');
      expectStatus(await kit.renew(other.ref), 'renewed', 'the newer lock of the session');
    },
  },
  {
    title: 'lets another connection release the lease that inspect shows, for a person’s force release',
    run: async (kit) => {
      const { token } = await kit.grant(kit.claim(kit.key()));
      const second = await kit.second();
      const { lease } = await kit.info(kit.key(), second);
      assert.ok(lease !== undefined, 'inspect names the lease of a held lock');
      assert.equal(lease.token, token);
      expectStatus(await kit.release(lease, second), 'released', 'forced release');
      await kit.grant(kit.claim(kit.key()), second);
    },
  },
  {
    title: '[S4] takes a grant away with a cancel, and refuses the claim afterwards',
    run: async (kit) => {
      const { claim, ref } = await kit.grant(kit.claim(kit.key()));
      expectStatus(await kit.cancel(claim), 'released', 'cancel');
      expectStatus(await kit.acquire(claim), 'cancelled', 'late acquire of a free lock');
      expectStatus(await kit.renew(ref), 'lost', 'renewal of a cancelled grant');
      await kit.grant(kit.claim(kit.key()));
      expectStatus(await kit.acquire(claim), 'cancelled', 'late acquire of a held lock');
    },
  },
  {
    title: '[S4] [B52] leaves a tombstone where the cancel finds nothing: the late acquire is refused',
    run: async (kit) => {
      const claim = kit.claim(kit.key());
      expectStatus(await kit.cancel(claim), 'released', 'cancel of nothing');
      for (const wait of [false, true]) {
        expectStatus(await kit.acquire({ ...claim, wait }), 'cancelled', `late acquire, wait ${wait}`);
      }
      const info = await kit.info(kit.key());
      assert.deepEqual([info.held, info.waiting], [false, 0]);
      await kit.grant(kit.claim(kit.key(), { session: claim.session }));
    },
  },
  {
    title: '[S4] keeps the tombstone for as long as it was asked to, on every connection',
    run: async (kit) => {
      const claim = kit.claim(kit.key());
      const tombstoneMs = kit.ttlMs * 3;
      await kit.cancel(claim, tombstoneMs);
      await kit.time.pass(tombstoneMs - Math.max(kit.slackMs, kit.ttlMs / 10));
      expectStatus(await kit.acquire(claim, await kit.second()), 'cancelled', 'acquire before its end');
    },
  },
  {
    title: '[S4] lets a further cancel not shorten the tombstone',
    run: async (kit) => {
      const claim = kit.claim(kit.key());
      await kit.cancel(claim, kit.ttlMs * 10);
      await kit.cancel(claim, kit.ttlMs);
      await kit.expire(kit.ttlMs * 2);
      expectStatus(await kit.acquire(claim), 'cancelled', 'acquire after the shorter time');
    },
  },
  {
    title: 'leaves no tombstone for 0 ms: the claim can acquire again',
    run: async (kit) => {
      const { claim } = await kit.grant(kit.claim(kit.key()));
      expectStatus(await kit.cancel(claim, 0), 'released', 'cancel of the grant');
      expectStatus(await kit.cancel(claim, 0), 'lost', 'cancel of nothing without a tombstone');
      await kit.grant(claim);
    },
  },
  {
    title: '[S3] never touches the grant of another claim with a cancel',
    run: async (kit) => {
      const { ref, claim } = await kit.grant(kit.claim(kit.key()));
      await kit.cancel(kit.claim(kit.key(), { session: claim.session }));
      await kit.busy(kit.key());
      expectStatus(await kit.renew(ref), 'renewed', 'the holder’s renewal');
    },
  },
  {
    title: '[S4] keeps tombstones of different claims on one key apart',
    run: async (kit) => {
      const [a, b] = [kit.claim(kit.key()), kit.claim(kit.key())];
      await kit.cancel(a);
      await kit.cancel(b);
      expectStatus(await kit.acquire(a), 'cancelled', 'the first');
      expectStatus(await kit.acquire(b), 'cancelled', 'the second');
      await kit.grant(kit.claim(kit.key()));
    },
  },
  {
    title: 'removes a ticket with a cancel: it is never served, and its late acquire is refused',
    unless: unlessFifo,
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const waiting = await kit.queue(kit.claim(kit.key()));
      expectStatus(await kit.cancel(waiting), 'released', 'cancel of a ticket');
      assert.equal((await kit.info(kit.key())).waiting, 0);
      await kit.release(held.ref);
      expectStatus(await kit.acquire(waiting), 'cancelled', 'late acquire');
      await kit.grant(kit.claim(kit.key()));
    },
  },
  {
    title: 'hands a cancelled grant to the first ticket in the same step',
    unless: unlessFifo,
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const first = await kit.queue(kit.claim(kit.key()));
      expectStatus(await kit.cancel(held.claim), 'released', 'cancel of the grant');
      await kit.busy(kit.key());
      await kit.grant(first);
    },
  },
];
