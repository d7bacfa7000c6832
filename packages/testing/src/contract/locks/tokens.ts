/** Cases of the lock port: fencing tokens. */
import { assert, expectStatus } from '../assert.js';
import { unlessFifo, unlessFloor, type LockCase } from './kit.js';

/** Beyond what a double holds, so that a token that became a number on its way is found out. */
const FLOORS = [2n ** 53n + 1n, 2n ** 60n + 1n, 9_223_372_036_854_774_999n];

export const tokenCases: readonly LockCase[] = [
  {
    title: '[S2] grow over release, expiry, cancel and other connections',
    run: async (kit) => {
      const connections = [kit.backend, await kit.second()];
      let last = 0n;
      const rounds = kit.profile === 'quick' ? 6 : 30;
      for (let n = 0; n < rounds; n += 1) {
        const { token, ref, claim } = await kit.grant(kit.claim(kit.key()), connections[n % 2]);
        assert.ok(token > last, `${token} after ${last}`);
        last = token;
        if (n % 3 === 0) expectStatus(await kit.release(ref), 'released', 'release');
        else if (n % 3 === 1) await kit.cancel(claim);
        else await kit.expire();
      }
    },
  },
  {
    title: '[S2] [B180] grow over many releases in a row, without a pause between',
    run: async (kit) => {
      let last = 0n;
      for (let n = 0; n < (kit.profile === 'quick' ? 100 : 2_000); n += 1) {
        const { token, ref } = await kit.grant(kit.claim(kit.key()));
        assert.ok(token > last, `${token} after ${last}`);
        last = token;
        await kit.release(ref);
      }
    },
  },
  {
    title: '[S2] stay above the last one when the key was idle for long and other keys were used',
    run: async (kit) => {
      const first = await kit.grant(kit.claim(kit.key()));
      await kit.release(first.ref);
      for (let n = 0; n < 20; n += 1) {
        const { ref } = await kit.grant(kit.claim(kit.key(`other ${n}`)));
        await kit.release(ref);
      }
      if (kit.time.virtual) await kit.time.pass(100 * 86_400_000);
      const { token } = await kit.grant(kit.claim(kit.key()));
      assert.ok(token > first.token);
    },
  },
  {
    title: '[S2] are told by inspect while held, and not below the largest (or as unknown) while free',
    run: async (kit) => {
      const { token, ref } = await kit.grant(kit.claim(kit.key()));
      assert.equal((await kit.info(kit.key())).token, token);
      await kit.release(ref);
      const free = (await kit.info(kit.key())).token;
      assert.ok(free === 0n || free >= token, `${free} is below ${token}`);
    },
  },
  {
    title: '[S2] grow over hand-overs',
    unless: unlessFifo,
    run: async (kit) => {
      let holder = await kit.grant(kit.claim(kit.key()));
      for (let n = 0; n < 10; n += 1) {
        const waiting = await kit.queue(kit.claim(kit.key()));
        await kit.release(holder.ref);
        const next = await kit.grant(waiting);
        assert.ok(next.token > holder.token, `${next.token} after ${holder.token}`);
        holder = next;
      }
    },
  },
  {
    title: 'are not below the floor of the claim, to the last digit, and go on above it',
    unless: unlessFloor,
    run: async (kit) => {
      for (const floor of FLOORS) {
        const { token, ref } = await kit.grant(kit.claim(kit.key(), { floor }));
        assert.ok(token >= floor, `${token} is below the floor ${floor}`);
        assert.equal((await kit.info(kit.key())).token, token);
        await kit.release(ref);
        const next = await kit.grant(kit.claim(kit.key()));
        assert.ok(next.token > token, `${next.token} after ${token}`);
        await kit.release(next.ref);
      }
    },
  },
  {
    title: 'ignore a floor below the last token',
    unless: unlessFloor,
    run: async (kit) => {
      const first = await kit.grant(kit.claim(kit.key()));
      await kit.release(first.ref);
      const { token } = await kit.grant(kit.claim(kit.key(), { floor: 1n }));
      assert.ok(token > first.token);
    },
  },
  {
    title:
      '[S2] are raised to the floor of a re-sent acquire, whether somebody waits or not, and go on above it',
    unless: unlessFloor,
    run: async (kit) => {
      for (const somebodyWaits of kit.traits.fifo ? [false, true] : [false]) {
        const key = kit.key(`raised ${somebodyWaits}`);
        const { claim, token } = await kit.grant(kit.claim(key));
        const after = kit.claim(key);
        const next = somebodyWaits ? await kit.queue(after) : after;
        assert.equal((await kit.grant({ ...claim, floor: 1n })).token, token, 'a floor that is no larger');
        const floor = token + 1_000_000_000_000n;
        const raised = await kit.grant({ ...claim, floor });
        assert.ok(raised.token >= floor, `${raised.token} is below the floor ${floor}`);
        assert.equal((await kit.info(key)).token, raised.token);
        expectStatus(await kit.renew(raised.ref), 'renewed', 'renewal under the raised token');
        expectStatus(await kit.release(raised.ref), 'released', 'release under the raised token');
        const { token: later } = await kit.grant(next);
        assert.ok(later > raised.token, `${later} after ${raised.token}`);
      }
    },
  },
  {
    title: 'are not below the floor of a ticket at its hand-over',
    unless: (traits) => unlessFifo(traits) ?? unlessFloor(traits),
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const floor = held.token + 1_000_000_000_000n;
      const waiting = await kit.queue(kit.claim(kit.key(), { floor }));
      await kit.release(held.ref);
      const handed = (await kit.info(kit.key())).lease!;
      assert.ok(handed.token >= floor, `${handed.token} is below the floor ${floor}`);
      assert.equal((await kit.grant(waiting)).token, handed.token);
    },
  },
];
