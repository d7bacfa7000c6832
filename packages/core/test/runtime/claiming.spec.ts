import {
  createGuard,
  currentLock,
  memoryLocks,
  type ClaimAnswer,
  type LockBackend,
  type Notice,
} from '../../src/index.js';
import { plain, stage, watch } from './stage.js';

describe('a claim', () => {
  it('[C1] costs one request to take a free lock, and one to give it back', async () => {
    const { process } = stage();
    const { guard, net } = process();
    await guard.withLock('a', () => undefined);
    expect(net.plan.traffic('acquire').calls).toBe(1);
    expect(net.plan.total().calls).toBe(2);
  });

  it('[S6] is never told busy when the backend cannot be asked', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    const unavailable: unknown[] = [];
    guard.on('backend-unavailable', ({ cause }) => unavailable.push(cause));
    net.down(new Error('ECONNREFUSED'));
    const tried = watch(guard.tryAcquire('a'));
    const waited = watch(guard.acquire('b', { wait: 1_000 }));
    await clock.advance(2_500);
    expect(tried.error).toMatchObject({ code: 'unavailable', cause: { message: 'ECONNREFUSED' } });
    expect(waited.error).toMatchObject({ code: 'unavailable', cause: { message: 'ECONNREFUSED' } });
    expect(unavailable).toHaveLength(1);
  });

  class TimeoutError extends Error {}

  it.each([
    ['TimeoutError', new TimeoutError()],
    ['AbortError', Object.assign(new Error(), { name: 'AbortError' })],
  ])('[S6] says what the trouble is by the name of an error that has no words: %s', async (name, error) => {
    const { clock, process } = stage();
    const { guard, net } = process();
    net.down(error);
    const tried = watch(guard.tryAcquire('a'));
    await clock.advance(2_500);
    expect((tried.error as Error).message).toMatch(new RegExp(`\\(the backend failed\\): ${name}$`));
  });

  it('[L3] ends with its wait although the backend is silent', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    net.cut();
    const waited = watch(guard.acquire('a', { wait: 1_000 }));
    await clock.advance(999);
    expect(waited.settled).toBe(false);
    await clock.advance(1);
    expect(waited.error).toMatchObject({ code: 'unavailable' });
  });

  it('[S4] that was given up leaves nothing behind when its request is carried out later', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    a.net.plan.play(
      { type: 'execute-later', afterMs: 3_000, answer: 'never' },
      { verbs: ['acquire'], times: 1 },
    );
    const waited = watch(a.guard.acquire('ghost', { ttl: '60s', wait: 500 }));
    await clock.advance(5_000);
    expect(waited.error).toMatchObject({ code: 'unavailable' });
    expect(await b.guard.tryAcquire('ghost')).not.toBeNull();
  });

  it.each([
    ['a ticket behind somebody else', true],
    ['a grant of the free lock', false],
  ])('[S4] that a message overtook gives back what its refresh still brings: %s', async (_, contended) => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    const first = await a.guard.acquire('q');
    const waiting = b.guard.acquire('q');
    await clock.advance(1_990);
    // The refresh that is due at 2 s is carried out after the lock was handed over, used and given back.
    b.net.plan.play({ type: 'delay', requestMs: 100 }, { verbs: ['acquire'], times: 1 });
    await clock.advance(20);
    await first.release();
    await (await clock.runUntil(waiting)).release();
    const next = contended ? await a.guard.acquire('q') : undefined;
    await clock.advance(200);
    await next?.release();
    await clock.advance(10);
    expect(await a.guard.inspect('q')).toMatchObject({ held: false, waiting: 0 });
  });

  it('[S1] that a message overtook keeps its lock when the older answer of its refresh arrives', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    const first = await a.guard.acquire('q');
    const waiting = b.guard.acquire('q');
    await clock.advance(1_990);
    b.net.plan.play({ type: 'delay', replyMs: 100 }, { verbs: ['acquire'], times: 1 });
    await clock.advance(20);
    await first.release();
    const second = await clock.runUntil(waiting);
    await clock.advance(200);
    expect(second.isHeld()).toBe(true);
    expect(await a.guard.inspect('q')).toMatchObject({ held: true, token: second.token });
  });

  it('[S6] is not told busy by what an abandoned claim of its own guard left behind', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    net.plan.play({ type: 'lose-reply' }, { verbs: ['acquire'], times: 1 });
    net.plan.play({ type: 'reset', executed: false }, { verbs: ['release'], times: 2 });
    const abandoned = watch(guard.acquire('a', { ttl: '60s', wait: 500 }));
    await clock.advance(500);
    expect(abandoned.error).toMatchObject({ code: 'unavailable' });
    const lock = await clock.runUntil(guard.tryAcquire('a'));
    expect(lock?.isHeld()).toBe(true);
  });

  it('[S4] whose answer was lost is answered with its own grant, lease set anew', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    net.loseReply('acquire');
    const lock = await clock.runUntil(guard.acquire('amb', { ttl: '60s' }));
    expect(lock.remainingMs()).toBeGreaterThan(58_000);
    expect((await guard.inspect('amb')).token).toBe(lock.token);
    await clock.advance(120_000);
    expect(lock.isHeld()).toBe(true);
  });

  it('[S1] is not believed when the grant comes after its own deadline, and goes on under a new id', async () => {
    const { clock, process } = stage();
    const { guard, net } = process();
    // The flight's own time-out is a third of the ttl, so a very late answer is a re-sent one's.
    net.plan.play({ type: 'delay', replyMs: 2_000 }, { verbs: ['acquire'], times: 1 });
    const lock = await clock.runUntil(guard.acquire('a', { ttl: 1_000, wait: '10s' }));
    expect(lock.isHeld()).toBe(true);
    expect(lock.remainingMs()).toBeGreaterThan(900);
  });

  it('[L2] is served in the order of asking, across processes', async () => {
    const { clock, process } = stage();
    const processes = [process(), process(), process()];
    const first = await processes[0]!.guard.acquire('q');
    const order: number[] = [];
    for (let index = 0; index < 9; index += 1) {
      const { guard } = processes[index % 3]!;
      void guard.withLock('q', () => void order.push(index));
      await clock.settle();
    }
    await first.release();
    await clock.advance(1_000);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('[C4] hands over by one release and one message', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    const lock = await a.guard.acquire('q');
    const next = b.guard.acquire('q');
    await clock.advance(50);
    a.net.plan.forgetTraffic();
    b.net.plan.forgetTraffic();
    await lock.release();
    const second = await clock.runUntil(next);
    expect(a.net.plan.total().calls).toBe(1);
    expect(b.net.plan.total().calls).toBe(0);
    expect(b.net.notices).toBe(1);
    await second.release();
    expect(b.net.plan.total().calls).toBe(1);
  });

  it('[L2] is woken within a refresh when the message of its hand-over is lost', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    const lock = await a.guard.acquire('q');
    const next = watch(b.guard.acquire('q'));
    await clock.advance(50);
    b.net.playNotices({ type: 'drop' });
    await lock.release();
    await clock.advance(2_000);
    expect(next.value?.isHeld()).toBe(true);
    await clock.advance(60_000);
    expect(next.value?.isHeld()).toBe(true);
  });

  it('[L2] goes on being served when the claim that spoke for its process has got the lock by asking', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    const lock = await a.guard.acquire('q');
    const [next, last] = [1, 2].map(() => watch(b.guard.acquire('q', { wait: Infinity })));
    await clock.advance(50);
    b.net.playNotices({ type: 'drop' });
    await lock.release();
    // Longer than a ticket lives: the last one's stays alive only if it is refreshed.
    await clock.advance(20_000);
    expect([next?.value?.isHeld(), last?.settled]).toEqual([true, false]);
    await next?.value?.release();
    await clock.advance(2_000);
    expect(last?.value?.isHeld()).toBe(true);
  });

  it('[S1] does not believe a message that is older than its ticket', async () => {
    const clock = stage().clock;
    let tell: ((token: bigint, claim: string) => void) | undefined;
    const inner = memoryLocks({ clock });
    const backend: LockBackend = {
      ...plain(inner),
      subscribe: async (session, onNotice) => {
        tell = (token, claim) => onNotice({ type: 'granted', key: 'default/lock/q', claim, token });
        return inner.subscribe!(session, onNotice);
      },
    };
    const asked: string[] = [];
    backend.acquire = async (claims) => {
      asked.push(...claims.map((claim) => claim.id));
      return inner.acquire(claims);
    };
    const guard = createGuard({ locks: backend, clock });
    const lock = await guard.acquire('q');
    const next = watch(guard.acquire('q'));
    await clock.advance(10);
    tell!(lock.token, asked[1]!);
    await clock.advance(10);
    expect(next.settled).toBe(false);
    expect(lock.isHeld()).toBe(true);
  });

  it.each<[string, (claim: string) => Notice]>([
    ['that notices may have been missed', () => ({ type: 'gap', open: true })],
    ['that it may be its turn', (claim) => ({ type: 'turn', key: 'default/lock/q', claim })],
    ['that it does not hold the lock any more', (claim) => ({ type: 'lost', key: 'default/lock/q', claim })],
  ])('[L2] asks once more where it is told, while a request is on its way, %s', async (_what, noticeFor) => {
    const { clock } = stage();
    const inner = memoryLocks({ clock });
    const asked: string[] = [];
    let tell: (notice: Notice) => void = () => undefined;
    const backend: LockBackend = {
      ...plain(inner),
      // Messages do not come, and answers take a while.
      subscribe: async (session, onNotice) => {
        tell = onNotice;
        return inner.subscribe!(session, () => undefined);
      },
      acquire: async (claims) => {
        asked.push(...claims.map((claim) => claim.id));
        const answers = await inner.acquire(claims);
        await new Promise<void>((resolve) => void clock.setTimer(() => resolve(), 100));
        return answers;
      },
    };
    const holder = createGuard({ locks: inner, clock });
    const lock = await holder.acquire('q');
    const next = watch(createGuard({ locks: backend, clock }).acquire('q', { wait: '1m' }));
    // It asks again as its messages may come now: carried out before the release, answered after it.
    await clock.advance(150);
    expect(asked).toHaveLength(2);
    await lock.release();
    tell(noticeFor(asked[1]!));
    tell(noticeFor(asked[1]!));
    await clock.advance(200);
    expect([next.value?.isHeld(), asked.length]).toEqual([true, 3]);
  });

  it('[S2] is refused a token that is not larger than one this process saw, and says why', async () => {
    const clock = stage().clock;
    const answers: ClaimAnswer[] = [
      { status: 'granted', token: 10n },
      { status: 'granted', token: 10n },
    ];
    const backend = plain(memoryLocks({ clock }));
    backend.acquire = async () => [answers.shift()!];
    const guard = createGuard({ locks: backend, clock });
    await (await guard.acquire('a')).release();
    await expect(guard.acquire('a')).rejects.toMatchObject({ code: 'unavailable', message: /went back/ });
  });

  it('that is aborted while it waits is gone, and the next in line gets the lock', async () => {
    const { clock, process } = stage();
    const [a, b, c] = [process(), process(), process()];
    const lock = await a.guard.acquire('abt');
    const abort = new AbortController();
    const second = watch(b.guard.acquire('abt', { signal: abort.signal }));
    await clock.advance(10);
    const third = watch(c.guard.acquire('abt'));
    await clock.advance(10);
    abort.abort(new Error('changed my mind'));
    await clock.advance(0);
    expect(second.error).toMatchObject({ code: 'aborted', cause: { message: 'changed my mind' } });
    await lock.release();
    await clock.advance(20);
    expect(third.value?.isHeld()).toBe(true);
  });

  it('that is aborted before it starts sends nothing', async () => {
    const { process } = stage();
    const { guard, net } = process();
    const failing = guard.acquire('a', { signal: AbortSignal.abort('no') });
    await expect(failing).rejects.toMatchObject({ code: 'aborted', cause: 'no' });
    expect(net.plan.total().calls).toBe(0);
  });

  it('[L5] keeps the process alive while it waits, and leaves no timer behind', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    const lock = await a.guard.acquire('a');
    const next = b.guard.acquire('a', { wait: Infinity });
    await clock.advance(100);
    expect(clock.pendingTimers.ref).toBeGreaterThan(0);
    await lock.release();
    await (await clock.runUntil(next)).release();
    await clock.advance(10);
    expect(clock.pendingTimers.ref).toBe(0);
  });

  it('is refused at once where the same context holds the lock', async () => {
    const { process } = stage();
    const { guard } = process();
    await guard.withLock('re', async () => {
      await expect(guard.acquire('re')).rejects.toMatchObject({ code: 'would-deadlock' });
      expect(await guard.tryAcquire('re')).toBeNull();
      await guard.withLock('other', () => expect(currentLock()?.key).toBe('other'));
    });
  });

  it('of several keys takes all or none, in the order of the keys, within one wait', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    const held = await a.guard.acquire('c');
    const failing = watch(b.guard.acquireAll(['c', 'b', 'a'], { wait: 500 }));
    await clock.advance(600);
    expect(failing.error).toMatchObject({ code: 'lock-busy', key: 'c' });
    expect((await a.guard.inspect('a')).held).toBe(false);
    await held.release();
    const all = await b.guard.acquireAll(['c', 'b', 'a']);
    expect(all.locks.map((lock) => lock.key)).toEqual(['a', 'b', 'c']);
    expect(await all.release()).toBe('released');
  });
});

describe('a ticket', () => {
  it('[L2] is refreshed in time however many others join its queue', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process()];
    const lock = await a.guard.acquire('q');
    const first = watch(b.guard.acquire('q', { wait: '5m' }));
    for (let second = 0; second < 20; second += 1) {
      await clock.advance(1_000);
      void b.guard.acquire('q', { wait: '5m' }).catch(() => undefined);
    }
    await clock.advance(10);
    expect((await a.guard.inspect('q')).waiting).toBe(21);
    await lock.release();
    await clock.advance(10);
    expect(first.value?.isHeld()).toBe(true);
  });
});

describe('closing a guard', () => {
  it('ends waiting claims, gives handles back at once, and lets work go on for the grace', async () => {
    const { clock, process } = stage();
    const [a, b] = [process({ grace: '10s' }), process()];
    const handle = await a.guard.acquire('handle');
    const other = await b.guard.acquire('other');
    const waiting = watch(a.guard.acquire('other'));
    let end = (): void => undefined;
    const work = watch(a.guard.withLock('work', () => new Promise<void>((resolve) => (end = resolve))));
    await clock.advance(10);
    const closing = watch(a.guard.close());
    await clock.advance(5_000);
    expect(waiting.error).toMatchObject({ code: 'closed' });
    expect(handle.isHeld()).toBe(false);
    expect((await b.guard.inspect('handle')).held).toBe(false);
    expect((await b.guard.inspect('work')).held).toBe(true);
    expect(closing.settled).toBe(false);
    end();
    await clock.advance(10);
    expect(work).toMatchObject({ settled: true, value: undefined });
    expect(closing.settled).toBe(true);
    expect((await b.guard.inspect('work')).held).toBe(false);
    await expect(a.guard.acquire('x')).rejects.toMatchObject({ code: 'closed' });
    await other.release();
  });

  it('lets work that is under a lock take further locks within the grace, and nobody else', async () => {
    const { clock, process } = stage();
    const { guard } = process({ grace: '10s' });
    let go = (): void => undefined;
    const work = watch(
      guard.withLock('outer', async () => {
        await new Promise<void>((resolve) => (go = resolve));
        return guard.withLock('inner', () => 'finished');
      }),
    );
    await clock.advance(10);
    const closing = watch(guard.close());
    await clock.advance(10);
    await expect(guard.tryAcquire('inner')).rejects.toMatchObject({ code: 'closed' });
    go();
    await clock.advance(100);
    expect(work.value).toBe('finished');
    expect(closing.settled).toBe(true);
  });

  it('[L3] tells work that outlives the grace that its lock is lost, and gives the lock back once it settled', async () => {
    const { clock, process } = stage();
    const [a, b] = [process({ grace: '2s' }), process()];
    const work = watch(
      a.guard.withLock(
        'work',
        (lock) => new Promise<void>((resolve) => lock.signal.addEventListener('abort', () => resolve())),
      ),
    );
    await clock.advance(10);
    const closing = watch(a.guard.close());
    await clock.advance(2_100);
    expect(work.error).toMatchObject({ code: 'lock-lost' });
    expect(closing.settled).toBe(true);
    expect((await b.guard.inspect('work')).held).toBe(false);
    expect(clock.pendingTimers.ref).toBe(0);
  });

  it('[S1] leaves the lease of work that does not settle to run out', async () => {
    const { clock, process } = stage();
    const [a, b] = [process({ grace: '1s' }), process()];
    void a.guard
      .withLock('work', { ttl: '30s' }, () => new Promise<void>(() => undefined))
      .catch(() => undefined);
    await clock.advance(10);
    await clock.runUntil(a.guard.close());
    expect((await b.guard.inspect('work')).held).toBe(true);
    await clock.advance(30_000);
    expect((await b.guard.inspect('work')).held).toBe(false);
  });

  it('[L3] is bounded although the backend is away, and leaves no timer behind', async () => {
    const { clock, process } = stage();
    const { guard, net } = process({ grace: '2s' });
    await guard.acquire('a');
    net.down();
    const start = clock.now().monoMs;
    await clock.runUntil(guard.close());
    expect(clock.now().monoMs - start).toBeLessThanOrEqual(4_000);
    await clock.advance(10);
    expect(clock.pendingTimers.ref).toBe(0);
  });

  it('[L3] does not wait for a stream of notices that never opened', async () => {
    const { clock, process } = stage();
    const [a, b] = [process(), process({ grace: '2s' })];
    await a.guard.acquire('a');
    b.net.plan.play({ type: 'cut' }, { verbs: ['subscribe'] });
    const waiting = watch(b.guard.acquire('a'));
    await clock.advance(100);
    const closing = watch(b.guard.close());
    await clock.advance(4_000);
    expect([waiting.settled, closing.settled]).toEqual([true, true]);
  });
});
