/** Cases of the lock port: tickets, their order and their life. */
import { assert, expectStatus, expectWithin } from '../assert.js';
import { unlessFifo, type LockCase, type LockKit } from './kit.js';

/** Queues `count` claims of different sessions, over two connections in turn. */
/** Tickets that outlast a case on a busy server, and leases that do. */
async function queueUp(kit: LockKit, count: number, ticketTtlMs = kit.ttlMs * 30) {
  const ttlMs = kit.ttlMs * 10;
  const connections = [kit.backend, await kit.second()];
  const waiting = [];
  for (let n = 0; n < count; n += 1) {
    waiting.push(await kit.queue(kit.claim(kit.key(), { ttlMs, ticketTtlMs }), connections[n % 2]));
  }
  return waiting;
}

const cases: readonly LockCase[] = [
  {
    title: 'grants a claim that would wait at once where the lock is free',
    run: async (kit) => {
      await kit.grant(kit.claim(kit.key(), { wait: true }));
      assert.equal((await kit.info(kit.key())).waiting, 0);
    },
  },
  {
    title: 'says in queued how many stand before it, if it knows, and that the ticket is new',
    run: async (kit) => {
      const { token } = await kit.grant(kit.claim(kit.key()));
      for (let ahead = 0; ahead < 3; ahead += 1) {
        const answer = await kit.acquire(kit.claim(kit.key(), { wait: true }));
        const queued = expectStatus(answer, 'queued', 'a waiting claim');
        if (queued.ahead !== undefined) expectWithin(queued.ahead, ahead, ahead + 1, 'ahead');
        assert.notEqual(queued.fresh, false, 'a new ticket is fresh');
        assert.ok(queued.minted >= token, `minted ${queued.minted} is below the holder's token ${token}`);
      }
      assert.equal((await kit.info(kit.key())).waiting, 3);
    },
  },
  {
    title: '[L2] serves tickets in the order in which it saw them, over connections',
    run: async (kit) => {
      const count = kit.profile === 'quick' ? 8 : 50;
      let holder = (await kit.grant(kit.claim(kit.key()))).ref;
      const waiting = await queueUp(kit, count);
      const served: string[] = [];
      for (let n = 0; n < count; n += 1) {
        expectStatus(await kit.release(holder), 'released', 'release');
        const { lease } = await kit.info(kit.key());
        assert.ok(lease !== undefined, 'the lock went to a ticket in the same step');
        served.push(lease.claim);
        holder = (await kit.grant(waiting[n]!)).ref;
      }
      assert.deepEqual(
        served,
        waiting.map(({ id }) => id),
      );
    },
  },
  {
    title: '[L2] keeps a ticket’s place when it asks again',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const [first, second] = await queueUp(kit, 2);
      await kit.queue(first!);
      await kit.queue(second!);
      await kit.queue(first!);
      assert.equal((await kit.info(kit.key())).waiting, 2);
      await kit.release(held.ref);
      await kit.queue(second!);
      await kit.grant(first!);
    },
  },
  {
    title: 'grants a hand-over under a token above the minted one, and for ticketTtlMs only',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key(), { ttlMs: kit.ttlMs * 20 }));
      const ticketTtlMs = kit.ttlMs;
      const waiting = await kit.queue(kit.claim(kit.key(), { ttlMs: kit.ttlMs * 20, ticketTtlMs }));
      await kit.release(held.ref);
      const info = await kit.info(kit.key());
      assert.equal(info.lease?.claim, waiting.id);
      assert.ok(info.token > waiting.minted, `${info.token} is not above the minted ${waiting.minted}`);
      assert.ok(info.token > held.token, `${info.token} is not above the last ${held.token}`);
      expectWithin(
        info.expiresInMs,
        1,
        ticketTtlMs + kit.traits.ttlGranularityMs + kit.slackMs,
        'expiresInMs',
      );
      await kit.expire(ticketTtlMs);
      expectStatus(await kit.renew(info.lease), 'lost', 'renewal of an untouched hand-over');
      await kit.grant(kit.claim(kit.key()));
    },
  },
  {
    title: 'lets the new holder renew a hand-over, or ask again for it: same token, full ttl',
    run: async (kit) => {
      const long = kit.ttlMs * 20;
      const held = await kit.grant(kit.claim(kit.key()));
      const waiting = await kit.queue(kit.claim(kit.key(), { ttlMs: long }));
      await kit.release(held.ref);
      const handed = (await kit.info(kit.key())).lease!;
      expectStatus(await kit.renew(handed), 'renewed', 'renewal by the new holder');
      const again = await kit.grant(waiting);
      assert.equal(again.token, handed.token);
      expectWithin((await kit.info(kit.key())).expiresInMs, long * 0.8, long * 1.2, 'expiresInMs');
    },
  },
  {
    title: 'hands an expired lease to the first live ticket, whoever meets it; a try does not pass',
    run: async (kit) => {
      const dead = await kit.grant(kit.claim(kit.key()));
      const [first, second] = await queueUp(kit, 2);
      await kit.expire();
      await kit.busy(kit.key());
      expectStatus(await kit.acquire({ ...second!, wait: true }), 'queued', 'the second ticket');
      const { token } = await kit.grant(first!);
      assert.ok(token > dead.token);
    },
  },
  {
    title: 'makes a claim that does not wait pass no live ticket, and leave none behind',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const [first] = await queueUp(kit, 1);
      await kit.release(held.ref);
      await kit.busy(kit.key());
      await kit.busy(kit.key(), await kit.second());
      assert.equal((await kit.info(kit.key())).waiting, 0);
      await kit.grant(first!);
    },
  },
  {
    title: 'takes the ticket of a claim back when the claim asks without waiting and is refused',
    run: async (kit) => {
      await kit.grant(kit.claim(kit.key()));
      const waiting = await kit.queue(kit.claim(kit.key()));
      expectStatus(await kit.acquire({ ...waiting, wait: false }), 'busy', 'the claim, not waiting any more');
      assert.equal((await kit.info(kit.key())).waiting, 0);
    },
  },
  {
    title: 'skips dead tickets at a hand-over',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key(), { ttlMs: kit.ttlMs * 20 }));
      const dead = await kit.queue(kit.claim(kit.key()));
      const [alive] = await queueUp(kit, 1, kit.ttlMs * 20);
      await kit.expire();
      assert.equal((await kit.info(kit.key())).waiting, 1);
      await kit.release(held.ref);
      await kit.queue(dead);
      await kit.grant(alive!);
    },
  },
  {
    title: 'is free after the release where every ticket is dead',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key(), { ttlMs: kit.ttlMs * 20 }));
      await kit.queue(kit.claim(kit.key()));
      await kit.queue(kit.claim(kit.key()));
      await kit.expire();
      await kit.release(held.ref);
      await kit.grant(kit.claim(kit.key()));
    },
  },
  {
    title: 'keeps a ticket alive for as long as it asks again in time',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key(), { ttlMs: kit.ttlMs * 20 }));
      const waiting = await kit.queue(kit.claim(kit.key()));
      for (let n = 0; n < 3; n += 1) {
        await kit.time.pass(kit.ttlMs * 0.6);
        const again = expectStatus(await kit.acquire(waiting), 'queued', 'a refresh');
        assert.notEqual(again.fresh, true, 'a live ticket is not fresh');
      }
      await kit.release(held.ref);
      assert.equal((await kit.info(kit.key())).lease?.claim, waiting.id);
    },
  },
  {
    title: 'refreshes every ticket of the session on the key with one of them',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key(), { ttlMs: kit.ttlMs * 20 }));
      const session = kit.claim(kit.key()).session;
      const [first, second] = [kit.claim(kit.key(), { session }), kit.claim(kit.key(), { session })];
      const oldest = await kit.queue(first);
      const other = await kit.queue(second);
      const foreign = await kit.queue(kit.claim(kit.key()));
      for (let n = 0; n < 3; n += 1) {
        await kit.time.pass(kit.ttlMs * 0.6);
        await kit.queue(oldest);
      }
      assert.equal((await kit.info(kit.key())).waiting, 2, 'two of the session, not the foreign one');
      await kit.cancel(oldest);
      await kit.release(held.ref);
      assert.equal((await kit.info(kit.key())).lease?.claim, other.id);
      expectStatus(await kit.acquire(foreign), 'queued', 'the foreign one, again');
    },
  },
  {
    title: 'says fresh to a claim whose ticket had died, which starts again at the end',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key(), { ttlMs: kit.ttlMs * 20 }));
      const dead = await kit.queue(kit.claim(kit.key()));
      await kit.expire();
      const [other] = await queueUp(kit, 1);
      const again = expectStatus(await kit.acquire(dead), 'queued', 'the dead ticket, again');
      assert.equal(again.fresh, true);
      await kit.release(held.ref);
      await kit.queue(dead);
      await kit.grant(other!);
    },
  },
  {
    title: '[S3] hands nothing over for a release by somebody who holds nothing',
    run: async (kit) => {
      const held = await kit.grant(kit.claim(kit.key()));
      const [first] = await queueUp(kit, 1);
      const foreign = { ...held.ref, claim: kit.claim(kit.key()).id };
      expectStatus(await kit.release(foreign), 'lost', 'a foreign release');
      expectStatus(await kit.release({ ...held.ref, claim: first!.id }), 'lost', 'a release by the ticket');
      expectStatus(await kit.renew(held.ref), 'renewed', 'the holder');
      assert.equal((await kit.info(kit.key())).waiting, 1);
    },
  },
];

export const queueingCases: readonly LockCase[] = cases.map((one) => ({ unless: unlessFifo, ...one }));
