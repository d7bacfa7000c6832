import { createGuard, GuardError, memoryLocks, type LockBackend, type Notice } from '../../src/index.js';
import { plain, stage, watch } from './stage.js';

describe('a held lock', () => {
  it('[S1] is held until its trust deadline, counted from before the request was sent', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    net.plan.play({ type: 'delay', requestMs: 100, replyMs: 200 }, { verbs: ['acquire'] });
    const lock = await clock.runUntil(guard.acquire('a', { ttl: 1_000, renew: false }));
    // margin(1,000) is 50 ms, and the answer took 300.
    expect(lock.remainingMs()).toBe(650);
    await clock.advance(649);
    expect(lock.isHeld()).toBe(true);
    await clock.advance(1);
    expect(lock.isHeld()).toBe(false);
  });

  it('[S1] is not held after a blocked event loop, before any timer could run', async () => {
    const { clock, process } = stage();
    const lock = await process().guard.acquire('a', { ttl: 1_000 });
    clock.block(951);
    expect(lock.isHeld()).toBe(false);
    expect(() => lock.assertHeld()).toThrow(expect.objectContaining({ code: 'lock-lost' }));
    expect(lock.signal.aborted).toBe(true);
  });

  it('[L1] aborts its signal at the trust deadline although the backend never answers', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: 1_000 });
    const lostAt: number[] = [];
    lock.signal.addEventListener('abort', () => lostAt.push(clock.now().monoMs));
    const grantedAt = clock.now().monoMs;
    net.cut();
    await clock.advance(5_000);
    expect(lostAt).toEqual([grantedAt + 950]);
    expect(GuardError.is(lock.signal.reason, 'lock-lost')).toBe(true);
  });

  it('[L1] is lost already when the listeners of its signal run', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: 1_000 });
    const held: boolean[] = [];
    lock.signal.addEventListener('abort', () => held.push(lock.isHeld()));
    net.down();
    await clock.advance(1_000);
    expect(held).toEqual([false]);
  });

  it('[S5] is never given back its life by a renewal whose answer comes after the deadline', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: 1_000 });
    net.plan.play({ type: 'delay', replyMs: 900 }, { verbs: ['renew'] });
    await clock.advance(3_000);
    expect(lock.isHeld()).toBe(false);
    expect(await lock.release()).toBe('lost');
  });

  it('is renewed for as long as it is held, and a lost request is repeated in time', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: 1_500 });
    for (let round = 0; round < 30; round += 1) {
      net.plan.play({ type: 'cut' }, { verbs: ['renew'], times: 1 });
      await clock.advance(3_000);
      expect(lock.isHeld()).toBe(true);
    }
  });

  it('[S1] is suspect, and not held, when only the wall clock says that the deadline passed', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: '10s' });
    const suspected: string[] = [];
    guard.on('lock-suspect', ({ key }) => suspected.push(key));
    net.plan.play({ type: 'delay', replyMs: 100 }, { verbs: ['renew'] });
    clock.suspend(10_000);
    expect(lock.isHeld()).toBe(false);
    expect(() => lock.assertHeld()).toThrow(expect.objectContaining({ code: 'lock-suspect' }));
    expect(lock.signal.aborted).toBe(false);
    expect(suspected).toEqual(['a']);
    await clock.advance(150);
    // On this backend the lease did not sleep: the renewal was answered, and the lock is held again.
    expect(lock.isHeld()).toBe(true);
    expect(lock.signal.aborted).toBe(false);
  });

  it('[L1] loses a suspect lock within a second when no renewal settles it', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: '30s' });
    net.cut();
    const seen: number[] = [];
    lock.signal.addEventListener('abort', () => seen.push(clock.now().monoMs));
    const start = clock.now().monoMs;
    clock.suspend(60_000);
    await clock.advance(2_000);
    expect(lock.isHeld()).toBe(false);
    // Nobody asked the handle: the clocks are compared every half second, and the verdict takes at most one more.
    expect(seen[0]! - start).toBeLessThanOrEqual(1_500);
  });

  it('[L1] loses a lock whose deadline comes after a sleep of the machine, and on the wall clock only', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: '30s', renew: false });
    net.cut();
    const { signal } = lock;
    await clock.advance(5_000);
    clock.suspend(20_000);
    await clock.advance(4_000);
    expect([lock.isHeld(), signal.aborted]).toEqual([true, false]);
    // 29.4 s after the request, of which the monotonic clock has seen 9.4.
    await clock.advance(500 + 500 + 1_000);
    expect(signal.aborted).toBe(true);
  });

  it('[S1] stays held over a step of the wall clock backwards and over one that is shorter than its lease', async () => {
    const { clock, process } = stage();
    const lock = await process().guard.acquire('a', { ttl: '30s' });
    clock.shiftWall(-3_600_000);
    await clock.advance(60_000);
    expect(lock.isHeld()).toBe(true);
    clock.shiftWall(5_000);
    await clock.advance(60_000);
    expect(lock.isHeld()).toBe(true);
  });

  it('[S5] is extended, and never shortened', async () => {
    const { clock, process } = stage();
    const { guard } = process();
    const lock = await guard.acquire('a', { ttl: '5s', renew: false });
    await lock.extend(500);
    expect(lock.remainingMs()).toBe(4_900);
    await lock.extend('1m');
    await clock.advance(50_000);
    expect(lock.isHeld()).toBe(true);
    await clock.advance(10_000);
    await expect(lock.extend('1m')).rejects.toMatchObject({ code: 'lock-lost' });
  });

  it('says unavailable when an extension cannot be asked for, and keeps what it has', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: '30s', renew: false });
    net.down();
    await expect(clock.runUntil(lock.extend('1m'))).rejects.toMatchObject({ code: 'unavailable' });
    expect(lock.isHeld()).toBe(true);
  });

  it('[C3] costs one batch and one timer for a hundred locks per period', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const before = clock.pendingTimers.total;
    const locks = await Promise.all(Array.from({ length: 100 }, (_, index) => guard.acquire(`k${index}`)));
    await clock.advance(1);
    expect(clock.pendingTimers.total - before).toBe(1);
    await clock.advance(60_000);
    // Six periods of ten seconds; a batch of renewals travels with the first that is due.
    expect(net.plan.traffic('renew').operations).toBeGreaterThanOrEqual(500);
    expect(net.plan.traffic('renew').calls).toBeLessThanOrEqual(7 * 7);
    expect(locks.every((lock) => lock.isHeld())).toBe(true);
  });

  it('[L5] does not keep the process alive while it is idle', async () => {
    const { clock, process } = stage();
    await process().guard.acquire('a');
    await clock.advance(100);
    expect(clock.pendingTimers.ref).toBe(0);
  });

  it('shows its key and token, and never its claim', async () => {
    const { process } = stage();
    const lock = await process().guard.acquire(['account', 42]);
    expect(JSON.parse(JSON.stringify(lock))).toEqual({ key: 'account:42', token: lock.token.toString() });
    const shown = (await import('node:util')).inspect(lock);
    expect(shown).toContain('account:42');
    expect(shown).not.toContain((lock as unknown as { claim: string }).claim);
  });

  it('[S3] is taken away by a person, and its holder is told', async () => {
    const { clock, process } = stage();
    const [a, b] = [process().guard, process().guard];
    const notes: string[] = [];
    b.on('lock-forced', ({ note }) => notes.push(note));
    const lock = await a.acquire('a');
    await expect(b.forceRelease('a', { note: ' ' })).rejects.toMatchObject({ code: 'invalid-argument' });
    expect(await b.forceRelease('a', { note: 'node 1 was unplugged' })).toBe(true);
    expect(notes).toEqual(['node 1 was unplugged']);
    await clock.advance(11_000);
    expect(lock.isHeld()).toBe(false);
    const next = await b.acquire('a');
    expect(next.token > lock.token).toBe(true);
    expect(await b.forceRelease('nobody', { note: 'x' })).toBe(false);
  });
});

describe('a held lock whose backend tells of losses', () => {
  /** A guard on a backend whose notices the test makes, and what became of each wish to listen. */
  function telling(opens: () => boolean) {
    const { clock } = stage();
    const inner = memoryLocks({ clock });
    const listening: ((notice: Notice) => void)[] = [];
    const ids: string[] = [];
    let wishes = 0;
    const backend: LockBackend = {
      ...plain(inner),
      traits: { ...inner.traits, tellsLosses: true },
      acquire: (claims) => (ids.push(...claims.map(({ id }) => id)), inner.acquire(claims)),
      subscribe: async (_session, onNotice) => {
        wishes += 1;
        if (!opens()) throw new Error('no stream');
        listening.push(onNotice);
        return { close: async () => undefined };
      },
    };
    const guard = createGuard({ locks: backend, clock });
    const lost: string[] = [];
    guard.on('lock-lost', ({ key }) => void lost.push(key));
    return { clock, guard, lost, ids, tell: (notice: Notice) => listening[0]!(notice), wishes: () => wishes };
  }

  it('[L1] is lost once, at a notice and before any renewal, and others stay', async () => {
    const { guard, lost, ids, tell, wishes } = telling(() => true);
    const [one, other] = [await guard.acquire('one'), await guard.acquire('other')];
    for (let n = 0; n < 2; n += 1) tell({ type: 'lost', key: one.key, claim: ids[0]! });
    expect([one.signal.aborted, one.isHeld(), other.isHeld()]).toEqual([true, false, true]);
    expect(await one.release()).toBe('lost');
    expect(await other.release()).toBe('released');
    tell({ type: 'lost', key: other.key, claim: ids[1]! });
    expect([lost, wishes()]).toEqual([['one'], 1]);
  });

  it('[L3] is granted where the stream does not open, which later locks ask for again, and not each of them', async () => {
    let opens = false;
    const { clock, guard, ids, lost, tell, wishes } = telling(() => opens);
    guard.on('error', () => undefined);
    for (let n = 0; n < 20; n += 1) await (await guard.acquire(`k${n}`)).release();
    expect(wishes()).toBe(1);
    opens = true;
    await clock.advance(5_000);
    const lock = await guard.acquire('last');
    expect(wishes()).toBe(2);
    tell({ type: 'lost', key: lock.key, claim: ids.at(-1)! });
    expect(lost).toEqual(['last']);
  });

  it('of a backend that tells of none listens only once somebody waits', async () => {
    const { process } = stage();
    const { guard, net } = process();
    await guard.acquire('a');
    expect(net.plan.traffic('subscribe').calls).toBe(0);
  });
});

describe('a release', () => {
  it('is one release however often it is asked for', async () => {
    const { process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a');
    const results = await Promise.all(Array.from({ length: 10 }, () => lock.release()));
    expect(new Set(results)).toEqual(new Set(['released']));
    expect(net.plan.traffic('release').operations).toBe(1);
  });

  it('is repeated when its answer is lost, and says released when nobody could have come in between', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: '30s' });
    net.loseReply('release');
    expect(await clock.runUntil(lock.release())).toBe('released');
    expect(await process().guard.tryAcquire('a')).not.toBeNull();
  });

  it('[L3] tells its caller unknown after a bounded time, and goes on until the lease is over', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: '30s' });
    net.down();
    const start = clock.now().monoMs;
    expect(await clock.runUntil(lock.release())).toBe('unknown');
    expect(clock.now().monoMs - start).toBeLessThanOrEqual(5_001);
    net.heal();
    await clock.advance(2_000);
    expect((await process().guard.inspect('a')).held).toBe(false);
  });

  it('of a lock that was extended is repeated as long as that lease lasts, and says released', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const lock = await guard.acquire('a', { ttl: '1s' });
    await clock.runUntil(lock.extend('20s'));
    await clock.advance(2_000);
    net.down();
    const released = watch(lock.release());
    await clock.advance(500);
    expect(released.settled).toBe(false);
    net.heal();
    await clock.advance(1_000);
    expect(released.value).toBe('released');
    expect(await process().guard.tryAcquire('a')).not.toBeNull();
  });

  it('[S3] of a lock that was lost touches nobody else', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    const lock = await a.guard.acquire('a', { ttl: 300, renew: false });
    await clock.advance(350);
    const next = await b.guard.acquire('a', { ttl: '10s' });
    expect(await lock.release()).toBe('lost');
    expect(await process().guard.tryAcquire('a')).toBeNull();
    expect(next.isHeld()).toBe(true);
  });

  it('of withLock never hides what the work says', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const failing = watch(
      guard.withLock('a', { ttl: '10s' }, async () => {
        net.down();
        throw new TypeError('the work failed');
      }),
    );
    await clock.advance(10_000);
    expect(failing.error).toBeInstanceOf(TypeError);
  });

  it('of withLock rejects with lock-lost, the work’s own error as its cause, when the lock was lost before', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const failing = watch(
      guard.withLock('a', { ttl: '1s' }, async () => {
        net.cut();
        await new Promise<void>((resolve) => clock.setTimer(resolve, 2_000));
        throw new TypeError('too late');
      }),
    );
    await clock.advance(3_000);
    expect(failing.error).toMatchObject({ code: 'lock-lost', cause: expect.any(TypeError) });
  });
});
