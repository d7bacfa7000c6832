/** Cases of the lock port: grants, exclusion, and how long a lease lasts. */
import { assert, expectStatus, expectWithin } from '../assert.js';
import type { LockCase } from './kit.js';

const YEAR_MS = 365 * 86_400_000;

export const grantingCases: readonly LockCase[] = [
  {
    title: 'shows the traits that the suite was told, and a name',
    run: async (kit) => {
      assert.notEqual(kit.backend.name, '');
      const { traits } = kit;
      assert.ok(Number.isInteger(traits.maxBatch) && traits.maxBatch >= 1, 'maxBatch is a positive integer');
      assert.ok(Number.isInteger(traits.minTtlMs) && traits.minTtlMs >= 1, 'minTtlMs is a positive integer');
      assert.ok(traits.ttlGranularityMs >= 0, 'ttlGranularityMs is not negative');
      assert.ok((traits.maxRenew ?? traits.maxBatch) >= traits.maxBatch, 'maxRenew is not below maxBatch');
      if (traits.push) assert.equal(typeof kit.backend.subscribe, 'function', 'push needs subscribe');
      const second = await kit.second();
      assert.equal(second.name, kit.backend.name, 'one place has one name');
      assert.deepEqual(second.traits, traits);
    },
  },
  {
    title: '[S1] grants a free key, with a positive token',
    run: async (kit) => {
      const { token } = await kit.grant(kit.claim(kit.key()));
      assert.ok(token > 0n, `token ${token}`);
      assert.equal((await kit.info(kit.key())).held, true);
    },
  },
  {
    title: '[S1] refuses every other claim while the lease lasts, on every connection',
    run: async (kit) => {
      await kit.grant(kit.claim(kit.key()));
      await kit.busy(kit.key());
      await kit.busy(kit.key(), await kit.second());
    },
  },
  {
    title: '[S1] refuses another claim of the same session too: ownership is the claim, not the process',
    run: async (kit) => {
      const { claim } = await kit.grant(kit.claim(kit.key()));
      const answer = await kit.acquire(kit.claim(kit.key(), { session: claim.session }));
      expectStatus(answer, 'busy', 'a second claim of the session');
    },
  },
  {
    title: 'says in busy who holds the lock, for which run and for how long, or leaves it out',
    run: async (kit) => {
      const holder = { label: 'pod-7', run: 'settlement 2026-11-29' };
      await kit.grant(kit.claim(kit.key(), { holder }));
      const answer = await kit.busy(kit.key());
      if (answer.holder !== undefined) assert.deepEqual(answer.holder, holder);
      const most = kit.ttlMs + kit.traits.ttlGranularityMs + kit.slackMs;
      if (answer.expiresInMs !== undefined) expectWithin(answer.expiresInMs, 1, most, 'expiresInMs');
    },
  },
  {
    title: '[B33] leaves nothing behind where a claim that does not wait was refused',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      for (let n = 0; n < 5; n += 1) await kit.busy(kit.key());
      assert.equal((await kit.info(kit.key())).waiting, 0);
      expectStatus(await kit.release(held.ref), 'released', 'release');
      await kit.grant(kit.claim(kit.key()), await kit.second());
    },
  },
  {
    title: 'keeps keys independent',
    run: async (kit) => {
      await kit.grant(kit.claim(kit.key('a')));
      await kit.grant(kit.claim(kit.key('b')));
      await kit.busy(kit.key('a'));
      await kit.busy(kit.key('b'));
    },
  },
  {
    title: '[S4] answers a re-sent acquire of a live claim with its own grant: same token, lease set anew',
    run: async (kit) => {
      const { claim, token } = await kit.grant(kit.claim(kit.key()));
      await kit.time.pass(kit.ttlMs * 0.6);
      const again = await kit.grant(claim);
      assert.equal(again.token, token);
      await kit.time.pass(kit.ttlMs * 0.6);
      await kit.busy(kit.key());
      assert.equal((await kit.info(kit.key())).token, token);
    },
  },
  {
    title: '[S4] answers a re-sent acquire with a longer ttl by a longer lease, and never shortens one [S5]',
    run: async (kit) => {
      const { claim } = await kit.grant(kit.claim(kit.key()));
      await kit.grant({ ...claim, ttlMs: kit.ttlMs * 10 });
      expectWithin((await kit.info(kit.key())).expiresInMs, kit.ttlMs * 9, kit.ttlMs * 11, 'longer');
      await kit.grant(claim);
      await kit.expire();
      await kit.busy(kit.key());
    },
  },
  {
    title: '[S5] never revives an expired lease: the same claim gets a new grant with a larger token',
    run: async (kit) => {
      const { claim, token, ref } = await kit.grant(kit.claim(kit.key()));
      await kit.expire();
      expectStatus(await kit.renew(ref), 'lost', 'renewal of an expired lease');
      assert.equal((await kit.info(kit.key())).held, false);
      const again = await kit.grant(claim);
      assert.ok(again.token > token, `${again.token} after ${token}`);
    },
  },
  {
    title: '[S1] keeps a lease for at least its ttl by the backend, and ends it within the granularity',
    run: async (kit) => {
      await kit.grant(kit.claim(kit.key()));
      const { expiresInMs } = await kit.info(kit.key());
      const most = kit.ttlMs + kit.traits.ttlGranularityMs + kit.slackMs;
      expectWithin(expiresInMs, kit.ttlMs - kit.slackMs, most, 'expiresInMs right after the grant');
      await kit.time.pass(Math.max(kit.ttlMs - kit.slackMs, kit.ttlMs / 2));
      await kit.busy(kit.key());
      await kit.expire(0);
      await kit.time.pass(kit.slackMs);
      await kit.grant(kit.claim(kit.key()));
    },
  },
  {
    title: 'keeps its shortest ttl',
    run: async (kit) => {
      const { ref } = await kit.grant(kit.claim(kit.key(), { ttlMs: kit.traits.minTtlMs }));
      expectStatus(await kit.renew(ref, kit.traits.minTtlMs), 'renewed', 'renewal');
      await kit.expire(kit.traits.minTtlMs);
      await kit.grant(kit.claim(kit.key()));
    },
  },
  ...[20, 100].map((years): LockCase => ({
    title: `[B85] keeps a ttl of ${years} years: granted with the right expiry, and not free at once`,
    run: async (kit) => {
      const ttlMs = years * YEAR_MS;
      const { ref } = await kit.grant(kit.claim(kit.key(), { ttlMs }));
      await kit.busy(kit.key(), await kit.second());
      const { expiresInMs } = await kit.info(kit.key());
      expectWithin(expiresInMs, ttlMs - 60_000, ttlMs + kit.traits.ttlGranularityMs + 60_000, 'expiresInMs');
      expectStatus(await kit.renew(ref, ttlMs), 'renewed', 'renewal');
      expectStatus(await kit.release(ref), 'released', 'release');
    },
  })),
  {
    title: '[B61] grants exactly one of many claims that arrive at once, from two connections',
    run: async (kit) => {
      const connections = [kit.backend, await kit.second()];
      for (let round = 0; round < (kit.profile === 'quick' ? 5 : 50); round += 1) {
        const key = kit.key(`new-${round}`);
        // Long enough that the first lease lasts until the last answer, on a busy machine too.
        const wanted = () => kit.claim(key, { ttlMs: 30_000 });
        const tries = Array.from({ length: 30 }, (_, n) => kit.acquire(wanted(), connections[n % 2]));
        const statuses = (await Promise.all(tries)).map(({ status }) => status).sort();
        assert.deepEqual(statuses, [...Array<string>(29).fill('busy'), 'granted']);
      }
    },
  },
];
