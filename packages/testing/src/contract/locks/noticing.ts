/** Cases of the lock port: messages that wake waiters. */
import type { LockBackend, Notice, Subscription } from '@guard/core';
import { assert } from '../assert.js';
import { unlessPush, type LockCase, type LockKit } from './kit.js';

/** How long a notice may take before a case calls it lost. */
const WITHIN_MS = 2_000;

/** Listens on a connection, and tells what it heard of grants. */
async function listen(kit: LockKit, session: string, on: LockBackend = kit.backend) {
  const heard: Notice[] = [];
  const subscription: Subscription = await on.subscribe!(session, (notice) => void heard.push(notice));
  const grants = () => heard.filter((notice) => notice.type === 'granted');
  const granted = (claim: string) => grants().find((notice) => notice.claim === claim);
  return {
    grants,
    close: () => subscription.close(),
    untilGranted: async (claim: string) => {
      await kit.time.untilTrue(() => granted(claim) !== undefined, WITHIN_MS, `a notice for ${claim}`);
      return granted(claim)!;
    },
  };
}

const cases: readonly LockCase[] = [
  {
    title: '[L2] tells the ticket’s session of a hand-over, with the token of the grant',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const claim = kit.claim(kit.key());
      const stream = await listen(kit, claim.session);
      const waiting = await kit.queue(claim);
      await kit.release(held.ref);
      const notice = await stream.untilGranted(claim.id);
      assert.equal(notice.key, kit.key());
      assert.ok(notice.token > waiting.minted, `${notice.token} is not above the minted ${waiting.minted}`);
      assert.equal((await kit.grant(claim)).token, notice.token);
      await stream.close();
    },
  },
  {
    title: '[L2] tells waiters on other connections than the releaser’s',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const second = await kit.second();
      const claim = kit.claim(kit.key());
      const stream = await listen(kit, claim.session, second);
      await kit.queue(claim, second);
      await kit.release(held.ref);
      await stream.untilGranted(claim.id);
      await stream.close();
    },
  },
  {
    title: 'tells a hand-over that an expired lease brought about, once somebody met it',
    run: async (kit) => {
      await kit.grant(kit.claim(kit.key()));
      const claim = kit.claim(kit.key(), { ticketTtlMs: kit.ttlMs * 20 });
      const stream = await listen(kit, claim.session);
      await kit.queue(claim);
      await kit.expire();
      await kit.busy(kit.key());
      await stream.untilGranted(claim.id);
      await stream.close();
    },
  },
  {
    title: 'tells no other session of a hand-over, and no ticket that was not served',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const [first, second] = [kit.claim(kit.key()), kit.claim(kit.key())];
      const ofFirst = await listen(kit, first.session);
      const ofSecond = await listen(kit, second.session);
      await kit.queue(first);
      await kit.queue(second);
      await kit.release(held.ref);
      await ofFirst.untilGranted(first.id);
      await kit.time.pass(kit.time.virtual ? 1_000 : 100);
      assert.deepEqual(ofSecond.grants(), []);
      assert.deepEqual([...new Set(ofFirst.grants().map(({ claim }) => claim))], [first.id]);
      await ofFirst.close();
      await ofSecond.close();
    },
  },
  {
    title: 'tells nothing where nobody waited',
    run: async (kit) => {
      const claim = kit.claim(kit.key());
      const stream = await listen(kit, claim.session);
      const held = await kit.grant(claim);
      await kit.release(held.ref);
      await kit.time.pass(kit.time.virtual ? 1_000 : 100);
      assert.deepEqual(stream.grants(), []);
      await stream.close();
    },
  },
  {
    title: 'is silent after the stream was closed, which can be closed twice',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const claim = kit.claim(kit.key());
      const stream = await listen(kit, claim.session);
      await kit.queue(claim);
      await stream.close();
      await stream.close();
      await kit.release(held.ref);
      await kit.time.pass(kit.time.virtual ? 1_000 : 100);
      assert.deepEqual(stream.grants(), []);
    },
  },
  {
    title: '[C4] wakes each of many waiters in turn, one after the other',
    run: async (kit) => {
      let holder = (await kit.grant(kit.claim(kit.key()))).ref;
      const connections = [kit.backend, await kit.second()];
      const waiters = [];
      for (let n = 0; n < 10; n += 1) {
        const claim = kit.claim(kit.key(), { ticketTtlMs: kit.ttlMs * 20 });
        const stream = await listen(kit, claim.session, connections[n % 2]);
        waiters.push({ claim, stream });
        await kit.queue(claim, connections[n % 2]);
      }
      for (const { claim, stream } of waiters) {
        await kit.release(holder);
        const { token } = await stream.untilGranted(claim.id);
        holder = { key: claim.key, claim: claim.id, token, session: claim.session };
      }
      await kit.release(holder);
      for (const { stream } of waiters) await stream.close();
    },
  },
];

export const noticingCases: readonly LockCase[] = cases.map((one) => ({ unless: unlessPush, ...one }));
