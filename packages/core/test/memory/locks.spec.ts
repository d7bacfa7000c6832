/**
 * The lock port, sentence by sentence, on the backend that is its executable specification.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Claim, memoryLocks, type LeaseRef, type LockBackend, type Notice } from '@guard/core';
import { VirtualClock } from '@guard/testing';

const TTL = 3_000;
const TICKET = 900;

let clock: VirtualClock;
let locks: LockBackend;
let ids: number;

beforeEach(() => {
  clock = new VirtualClock();
  locks = memoryLocks({ clock });
  ids = 0;
});

function claim(over: Partial<Claim> = {}): Claim {
  ids += 1;
  const holder = { label: `node of ${over.session ?? 's1'}` };
  return {
    ...{ key: 'ns/lock/k', id: `c${ids}`, ttlMs: TTL, wait: true, ticketTtlMs: TICKET },
    ...{ session: 's1', holder },
    ...over,
  };
}

async function ask(wanted: Claim) {
  const [answer] = await locks.acquire([wanted]);
  return answer!;
}

async function granted(wanted: Claim): Promise<LeaseRef> {
  const answer = await ask(wanted);
  if (answer.status !== 'granted') throw new Error(`expected a grant, got ${answer.status}`);
  return { key: wanted.key, claim: wanted.id, token: answer.token, session: wanted.session };
}

async function release(lease: LeaseRef): Promise<string> {
  return (await locks.release([lease]))[0]!.status;
}

async function renew(lease: LeaseRef, ttlMs = TTL): Promise<string> {
  return (await locks.renew([{ ...lease, ttlMs }]))[0]!.status;
}

async function cancel({ key, id, session }: Claim, tombstoneMs = 60_000): Promise<string> {
  const [answer] = await locks.release([{ cancel: true, key, claim: id, session, tombstoneMs }]);
  return answer!.status;
}

async function look(key = 'ns/lock/k') {
  return (await locks.inspect({ keys: [key] }))[0]!;
}

async function listen(session: string): Promise<Notice[]> {
  const heard: Notice[] = [];
  await locks.subscribe!(session, (notice) => heard.push(notice));
  return heard;
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a grant', () => {
  it('[S1] excludes every other claim until it is released', async () => {
    const lease = await granted(claim());
    expect(await ask(claim({ wait: false }))).toMatchObject({ status: 'busy', expiresInMs: TTL });
    expect(await release(lease)).toBe('released');
    expect(await ask(claim({ wait: false }))).toMatchObject({ status: 'granted' });
  });

  it('[S1] lasts exactly its ttl by the monotonic clock, whatever the wall clock does', async () => {
    const lease = await granted(claim());
    clock.shiftWall(86_400_000);
    await clock.advance(TTL - 1);
    expect(await look()).toMatchObject({ held: true, expiresInMs: 1 });
    await clock.advance(1);
    expect(await look()).toMatchObject({ held: false, waiting: 0 });
    expect(await release(lease)).toBe('lost');
  });

  it('[S4] answers its re-sent acquire with the same token and dates the lease anew', async () => {
    const wanted = claim();
    const { token } = await granted(wanted);
    await clock.advance(TTL - 1);
    expect(await ask(wanted)).toEqual({ status: 'granted', token });
    expect(await look()).toMatchObject({ expiresInMs: TTL });
  });

  it('[S5] is not shortened by a late duplicate of its acquire, or by a short renewal', async () => {
    const wanted = claim();
    const lease = await granted(wanted);
    expect(await renew(lease, 60_000)).toBe('renewed');
    await ask(wanted);
    expect(await renew(lease, 1_000)).toBe('renewed');
    expect(await look()).toMatchObject({ expiresInMs: 60_000 });
  });

  it('[S5] is never revived: after its end the same claim gets a new grant, and the old lease names nothing', async () => {
    const wanted = claim();
    const old = await granted(wanted);
    await clock.advance(TTL);
    expect(await renew(old)).toBe('lost');
    expect(await look()).toMatchObject({ held: false });
    const fresh = await granted(wanted);
    expect(fresh.token).toBeGreaterThan(old.token);
    expect(await renew(old)).toBe('lost');
    expect(await release(old)).toBe('lost');
    expect(await look()).toMatchObject({ held: true, token: fresh.token });
  });

  it('[S3] is renewed and released by its own claim only', async () => {
    const lease = await granted(claim());
    expect(await renew({ ...lease, claim: 'other' })).toBe('lost');
    expect(await release({ ...lease, claim: 'other' })).toBe('lost');
    expect(await cancel(claim({ id: 'other' }))).toBe('released');
    expect(await look()).toMatchObject({ held: true, lease });
  });
});

describe('tokens', () => {
  it('[S2] grow over releases, expiry and the loss of the record, also when the wall clock steps back', async () => {
    let last = 0n;
    for (let round = 0; round < 20; round += 1) {
      const lease = await granted(claim());
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      if (round % 2 === 0) await release(lease);
      else await clock.advance(TTL);
      clock.shiftWall(-3_600_000);
    }
  });

  it('[S2] are not below the wall time in microseconds, so that a new process goes on above the old one', async () => {
    const first = await granted(claim());
    await release(first);
    expect(first.token).toBe(BigInt(clock.now().wallMs) * 1_000n);
    await clock.advance(1);
    const later = memoryLocks({ clock });
    const [answer] = await later.acquire([claim()]);
    expect(answer).toMatchObject({ status: 'granted', token: first.token + 1_000n });
  });

  it('are not below the floor of the claim, also of a ticket at its hand-over', async () => {
    const floor = 2n ** 62n;
    const lease = await granted(claim({ floor }));
    expect(lease.token).toBeGreaterThanOrEqual(floor);
    await ask(claim({ floor: floor * 2n }));
    await release(lease);
    expect((await look()).token).toBeGreaterThanOrEqual(floor * 2n);
  });

  it('are raised to the floor of a re-sent acquire, and later grants stay above it', async () => {
    const wanted = claim();
    const { token } = await granted(wanted);
    const floor = token + 1_000_000n;
    const raised = await granted({ ...wanted, floor });
    expect(raised.token).toBe(floor);
    await release(raised);
    expect((await granted(claim({ key: 'ns/lock/other' }))).token).toBeGreaterThan(floor);
  });
});

describe('the queue', () => {
  it('[L2] serves tickets in the order in which they came, over sessions', async () => {
    let lease = await granted(claim());
    const waiting = ['s1', 's2', 's1', 's3'].map((session) => claim({ session }));
    for (const [ahead, wanted] of waiting.entries()) {
      expect(await ask(wanted)).toMatchObject({ status: 'queued', ahead, fresh: true });
    }
    for (const wanted of waiting) {
      await release(lease);
      expect(await look()).toMatchObject({ held: true, lease: { claim: wanted.id } });
      lease = await granted(wanted);
    }
    await release(lease);
    expect(await look()).toMatchObject({ held: false });
  });

  it('[L2] tells the new holder, and nobody else, after the call that handed over has returned', async () => {
    const [first, second] = [await listen('s1'), await listen('s2')];
    const lease = await granted(claim());
    const wanted = claim({ session: 's2' });
    const queued = await ask(wanted);
    const answer = locks.release([lease]);
    expect(second).toEqual([]);
    await answer;
    await turn();
    expect(second).toEqual([
      { type: 'granted', key: wanted.key, claim: wanted.id, token: expect.any(BigInt) },
    ]);
    expect(first).toEqual([]);
    const [notice] = second;
    const minted = queued.status === 'queued' ? queued.minted : undefined;
    expect(minted).toBe(lease.token);
    expect(notice?.type === 'granted' && notice.token > lease.token).toBe(true);
  });

  it('grants a hand-over for the life of a ticket only, until the holder renews', async () => {
    const lease = await granted(claim());
    const wanted = claim();
    await ask(wanted);
    await release(lease);
    expect(await look()).toMatchObject({ lease: { claim: wanted.id }, expiresInMs: TICKET });
    const own = await granted(wanted);
    expect(own.token).toBe((await look()).token);
    expect(await look()).toMatchObject({ expiresInMs: TTL });
  });

  it.each(['inspect', 'renew', 'release', 'acquire', 'try', 'cancel'])(
    '[L2] hands an expired lease to the first live ticket, whoever meets it by %s',
    async (verb) => {
      const heard = await listen('s1');
      const old = await granted(claim());
      await clock.advance(TTL - TICKET / 2);
      const waiting = claim({ session: 's2' });
      await ask(waiting);
      await clock.advance(TICKET / 2);
      if (verb === 'inspect') await look();
      if (verb === 'renew') expect(await renew(old)).toBe('lost');
      if (verb === 'release') expect(await release(old)).toBe('lost');
      if (verb === 'acquire') expect(await ask(claim())).toMatchObject({ status: 'queued', ahead: 0 });
      if (verb === 'try') expect(await ask(claim({ wait: false }))).toMatchObject({ status: 'busy' });
      if (verb === 'cancel') await cancel(claim());
      expect(await look()).toMatchObject({ held: true, lease: { claim: waiting.id } });
      await turn();
      expect(heard).toEqual([{ type: 'lost', key: old.key, claim: old.claim }]);
    },
  );

  it('[L2] is not passed by a claim that does not wait, and that claim leaves nothing behind', async () => {
    const lease = await granted(claim());
    const waiting = claim();
    await ask(waiting);
    const trying = claim({ wait: false });
    expect(await ask(trying)).toMatchObject({ status: 'busy', holder: { label: 'node of s1' } });
    await release(lease);
    expect(await ask(trying)).toMatchObject({ status: 'busy' });
    expect(await look()).toMatchObject({ lease: { claim: waiting.id }, waiting: 0 });
    await ask({ ...trying, wait: true });
    await ask(trying);
    expect(await look()).toMatchObject({ waiting: 0 });
  });

  it('[L2] skips a ticket that nobody refreshed', async () => {
    const lease = await granted(claim());
    const dead = claim({ session: 's2' });
    const alive = claim({ session: 's3' });
    await ask(dead);
    await ask(alive);
    await clock.advance(TICKET / 2);
    expect(await ask(alive)).toMatchObject({ status: 'queued', ahead: 1, fresh: false });
    await clock.advance(TICKET / 2);
    expect(await look()).toMatchObject({ waiting: 1 });
    await release(lease);
    expect(await look()).toMatchObject({ lease: { claim: alive.id }, waiting: 0 });
  });

  it('refreshes every ticket of a session by one re-sent acquire, and of no other session', async () => {
    const lease = await granted(claim());
    const mine = [claim(), claim(), claim()];
    for (const wanted of [...mine, claim({ session: 's2' })]) await ask(wanted);
    for (let round = 0; round < 3; round += 1) {
      await clock.advance(TICKET - 1);
      expect(await ask(mine[0]!)).toMatchObject({ status: 'queued', ahead: 0 });
      await renew(lease);
    }
    expect(await look()).toMatchObject({ waiting: 3 });
    expect(await ask(mine[2]!)).toMatchObject({ status: 'queued', ahead: 2, fresh: false });
  });

  it('says fresh when a session was silent too long, and puts its claim at the end', async () => {
    await granted(claim());
    const silent = [claim(), claim()];
    for (const wanted of silent) await ask(wanted);
    await clock.advance(TICKET);
    await ask(claim({ session: 's2' }));
    expect(await ask(silent[0]!)).toMatchObject({ status: 'queued', ahead: 1, fresh: true });
    expect(await look()).toMatchObject({ waiting: 2 });
  });
});

describe('a cancel', () => {
  it('[S4] takes a grant away and hands it over', async () => {
    const first = claim();
    await granted(first);
    const second = claim();
    await ask(second);
    expect(await cancel(first)).toBe('released');
    expect(await look()).toMatchObject({ lease: { claim: second.id } });
  });

  it.each(['a grant', 'a ticket', 'nothing'])(
    '[S4] refuses the late acquire of a claim that had %s',
    async (had) => {
      const other = claim();
      const wanted = claim();
      if (had === 'a ticket') await ask(other);
      if (had !== 'nothing') await ask(wanted);
      expect(await cancel(wanted, 5_000)).toBe('released');
      expect(await look()).toMatchObject({ waiting: 0, held: had === 'a ticket' });
      await clock.advance(4_999);
      expect(await ask(wanted)).toEqual({ status: 'cancelled' });
      expect(await look()).toMatchObject({ waiting: 0 });
      await clock.advance(1);
      expect(await ask(wanted)).toMatchObject({ status: 'granted' });
    },
  );

  it('leaves no tombstone for 0, and says lost when it found nothing either', async () => {
    await granted(claim());
    const wanted = claim();
    await ask(wanted);
    expect(await cancel(wanted, 0)).toBe('released');
    expect(await cancel(wanted, 0)).toBe('lost');
    expect(await ask(wanted)).toMatchObject({ status: 'queued' });
  });
});

describe('a backend object', () => {
  it('answers a batch in the order of its operations, each for itself', async () => {
    const held = claim({ key: 'b' });
    await granted(held);
    const batch = ['a', 'b', 'c'].map((key) => claim({ key, wait: false }));
    expect((await locks.acquire(batch)).map(({ status }) => status)).toEqual(['granted', 'busy', 'granted']);
    expect((await locks.inspect({ keys: ['c', 'x', 'b'] })).map(({ held }) => held)).toEqual([
      true,
      false,
      true,
    ]);
  });

  it('keeps serving the other guards that share it when one closes', async () => {
    const heard = await listen('s2');
    const lease = await granted(claim());
    await ask(claim({ session: 's2' }));
    await locks.close();
    await release(lease);
    await turn();
    expect(heard).toHaveLength(1);
  });

  it('says nothing more to a stream that was closed, not even what was under way', async () => {
    const heard: Notice[] = [];
    const stream = await locks.subscribe!('s2', (notice) => heard.push(notice));
    const other = await listen('s2');
    const lease = await granted(claim());
    await ask(claim({ session: 's2' }));
    const released = locks.release([lease]);
    await Promise.all([stream.close(), released]);
    await turn();
    expect(heard).toEqual([]);
    expect(other).toHaveLength(1);
  });

  it('[L5] sets no timer', async () => {
    await granted(claim());
    await ask(claim());
    await cancel(claim());
    expect(clock.pendingTimers.total).toBe(0);
  });

  it('forgets keys that are free once there are others, and meets leases that nobody else met', async () => {
    const before = heapAfterCollection();
    const padding = 'k'.repeat(500);
    for (let round = 0; round < 50_000; round += 1) {
      const lease = await granted(claim({ key: `${padding}${round}` }));
      if (round % 10 !== 0) await release(lease);
      else clock.block(TTL / 10);
    }
    // 5,000 keys that were never released would be some 3 MB, all keys 30 MB.
    expect(heapAfterCollection() - before).toBeLessThan(2_000_000);
  });
});

function heapAfterCollection(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
