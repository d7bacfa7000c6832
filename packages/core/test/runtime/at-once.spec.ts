/** Guards on a backend that answers at once: what is promised does not depend on the way that an answer takes. */
import { SeededRandom, VirtualClock, faultyBackend } from '@guard/testing';
import {
  createGuard,
  memoryLocks,
  type Claim,
  type ClaimAnswer,
  type Guard,
  type GuardOptions,
  type Lock,
  type LockBackend,
} from '../../src/index.js';
import { watch } from './stage.js';

/** Guards over one memory backend: by the short cut, or (`far`) by requests. */
function stage(clock = new VirtualClock()) {
  const locks = memoryLocks({ clock });
  let seed = 0;
  const guard = (options: Partial<GuardOptions> = {}): Guard =>
    createGuard({ locks, clock, random: new SeededRandom((seed += 1)), ...options });
  const far = (): Guard => guard({ locks: faultyBackend(locks, { clock }).backend });
  return { clock, locks, guard, far };
}

/** A backend in which the short cut is the test's own. */
function answering(inner: LockBackend, acquire: (claim: Claim) => ClaimAnswer | undefined): LockBackend {
  const { backend } = faultyBackend(inner);
  return { ...backend, atOnce: () => ({ ...inner.atOnce!(), acquire }) };
}

/** A clock on which the event loop notes its turns, from one to the next. */
function notingTurns(clock: VirtualClock): { readonly gaps: number[]; stop(): void } {
  const gaps: number[] = [];
  let going = true;
  let lastMs = clock.now().monoMs;
  const turned = (): void => {
    gaps.push(clock.now().monoMs - lastMs);
    lastMs = clock.now().monoMs;
    if (going) clock.yield(turned);
  };
  clock.yield(turned);
  return { gaps, stop: () => (going = false) };
}

describe('a guard on a backend that answers at once', () => {
  it('[S1] [S2] lets one in at a time, with growing tokens, beside guards that send requests', async () => {
    const { clock, guard, far } = stage();
    const guards = [guard(), far(), guard()];
    let inside = 0;
    let most = 0;
    const tokens: bigint[] = [];
    const work = async (lock: Lock): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      tokens.push(lock.token);
      await Promise.resolve();
      expect(lock.isHeld()).toBe(true);
      inside -= 1;
    };
    const waits = Array.from({ length: 300 }, (_, n) => guards[n % 3]!.withLock('one', { wait: '1h' }, work));
    const all = watch(Promise.all(waits));
    await clock.advance(60_000);
    expect(all).toMatchObject({ settled: true });
    expect(all.error).toBeUndefined();
    expect(most).toBe(1);
    expect(tokens).toHaveLength(300);
    expect(tokens.every((token, n) => n === 0 || token > tokens[n - 1]!)).toBe(true);
  });

  it('[S2] sends the same claim by both ways, with the floor of what it has seen', async () => {
    const { clock, locks } = stage();
    const sent: Claim[] = [];
    let far = false;
    const backend = answering(locks, (claim) => {
      if (far) return undefined;
      sent.push(claim);
      return locks.atOnce!().acquire(claim);
    });
    const { acquire } = backend;
    backend.acquire = (claims) => {
      sent.push(...claims);
      return acquire(claims);
    };
    const guard = createGuard({ locks: backend, clock, random: new SeededRandom(1) });
    let token = 0n;
    for (far of [false, false, true, false]) await guard.withLock('a', (lock) => void (token = lock.token));
    expect(sent.map(({ floor }) => typeof floor)).toEqual(['undefined', 'bigint', 'bigint', 'bigint']);
    expect(token >= sent[3]!.floor!).toBe(true);
    const shapes = sent.slice(1).map((claim) => ({ ...claim, id: '', floor: 0n }));
    expect(shapes[1]).toEqual(shapes[0]);
    expect(shapes[2]).toEqual(shapes[0]);
  });

  it('[S2] is refused a token that is not larger than one it saw, and gives that grant back', async () => {
    const { clock, locks } = stage();
    let mint = 7n;
    const backend = answering(locks, ({ wait }) => (wait ? { status: 'granted', token: mint } : undefined));
    const guard = createGuard({ locks: backend, clock });
    await guard.withLock('a', () => undefined);
    mint = 6n;
    const refused = watch(guard.withLock('a', () => undefined));
    await clock.advance(1_000);
    expect(refused.error).toMatchObject({ code: 'unavailable' });
    expect(String(refused.error)).toContain('its counter went back');
  });

  it('never begins work inside the call that asks for it', async () => {
    const guard = stage().guard();
    let begun = false;
    const done = guard.withLock('a', () => void (begun = true));
    expect(begun).toBe(false);
    await done;
    expect(begun).toBe(true);
  });

  it('[L3] ends a wait on a lock that somebody holds, and one that is aborted, and leaves nothing', async () => {
    const { clock, guard: make } = stage();
    const guard = make();
    const held = await guard.acquire('a');
    const late = watch(guard.acquire('a', { wait: '2s' }));
    const controller = new AbortController();
    const given = watch(guard.acquire('a', { wait: '1h', signal: controller.signal }));
    await clock.advance(1_999);
    expect(late.settled).toBe(false);
    controller.abort();
    await clock.advance(1);
    expect(late.error).toMatchObject({ code: 'lock-busy' });
    expect(given.error).toMatchObject({ code: 'aborted' });
    expect(await guard.tryAcquire('a')).toBeNull();
    expect(await held.release()).toBe('released');
    expect((await guard.inspect('a')).waiting).toBe(0);
    expect(clock.pendingTimers.ref).toBe(0);
  });

  it('answers any number of releases with the one result', async () => {
    const guard = stage().guard();
    const lock = await guard.acquire('a');
    expect(await Promise.all([lock.release(), lock.release()])).toEqual(['released', 'released']);
    expect(lock.isHeld()).toBe(false);
    expect(await lock.release()).toBe('released');
    expect(await guard.tryAcquire('a')).not.toBeNull();
  });

  it('[L1] tells work that its lock was lost, rejects with the loss, and gives nothing of the next holder back', async () => {
    const { clock, guard } = stage();
    const seen = watch(
      guard().withLock('a', { ttl: '1s', renew: false }, async (lock) => {
        await new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
      }),
    );
    const next = watch(guard().acquire('a'));
    await clock.advance(2_000);
    expect(seen.error).toMatchObject({ code: 'lock-lost' });
    expect(next.value?.isHeld()).toBe(true);
  });

  it('[S6] takes a step that fails, or throws, for a fault: it asks again, and tells of the outage', async () => {
    for (const fail of [
      () => ({ status: 'failed', cause: new Error('no') }) as const,
      () => throwing('no'),
    ]) {
      const { clock, locks } = stage();
      let faults = 2;
      const backend = answering(locks, (claim) => (faults-- > 0 ? fail() : locks.atOnce!().acquire(claim)));
      backend.acquire = async (claims) => (faults-- > 0 ? claims.map(fail) : locks.acquire(claims));
      const guard = createGuard({ locks: backend, clock, random: new SeededRandom(1) });
      const told: string[] = [];
      guard.on('backend-unavailable', () => told.push('unavailable'));
      guard.on('backend-recovered', () => told.push('recovered'));
      const lock = watch(guard.acquire('a'));
      await clock.advance(1_000);
      expect(lock.value?.isHeld()).toBe(true);
      expect(told).toEqual(['unavailable', 'recovered']);
    }
  });

  it('passes by no policy that was handed in', async () => {
    const { locks, guard } = stage();
    let calls = 0;
    const policy = {
      execute: <T>(run: () => Promise<T>): Promise<T> => {
        calls += 1;
        return run();
      },
    };
    await guard({ locks, policy }).withLock('a', () => undefined);
    expect(calls).toBe(1);
  });
});

describe('the event loop under a guard that is answered at once', () => {
  it('[L1] turns every few milliseconds, however many loops of locks there are', async () => {
    const { clock, guard: make } = stage();
    const guards = [make(), make(), make()];
    const turns = notingTurns(clock);
    const loop = async (guard: Guard, key: string): Promise<void> => {
      for (let n = 0; n < 200; n += 1) await guard.withLock(key, () => clock.block(0.25));
    };
    const loops = guards.flatMap((guard, n) => [
      loop(guard, 'shared'),
      loop(guard, `own ${n}`),
      loop(guard, `b${n}`),
    ]);
    await Promise.all(loops);
    turns.stop();
    expect(turns.gaps.length).toBeGreaterThan((9 * 200 * 0.25) / 10);
    // Four milliseconds, and what was granted by then.
    expect(Math.max(...turns.gaps)).toBeLessThan(4 + guards.length * 3 * 0.25 + 0.01);
  });

  it('[L2] serves the claims that waited for it in the order in which they were made', async () => {
    const { clock, guard: make } = stage();
    const guard = make();
    const order: number[] = [];
    // Other keys use the turn up again and again, at odd steps; the claims on one key stand in the line between them.
    const others = Array.from({ length: 40 }, async (_, n) => {
      for (let step = 0; step < n % 7; step += 1) await Promise.resolve();
      await guard.withLock(`k${n % 5}`, { wait: '1h' }, () => clock.block(2));
    });
    const inOrder = Array.from({ length: 40 }, (_, n) =>
      guard.withLock('one', { wait: '1h' }, () => {
        order.push(n);
        clock.block(2);
      }),
    );
    const all = watch(Promise.all([...others, ...inOrder]));
    await clock.advance(1_000);
    expect(all.error).toBeUndefined();
    expect(all.settled).toBe(true);
    expect(order).toEqual(Array.from({ length: 40 }, (_, n) => n));
  });

  it('[L3] gives a claim up that waits for it, and never sends that one', async () => {
    const { clock, locks } = stage();
    const asked: string[] = [];
    const counted = answering(locks, (claim) => {
      asked.push(claim.key);
      return locks.atOnce!().acquire(claim);
    });
    counted.acquire = (claims) => {
      asked.push(...claims.map(({ key }) => key));
      return locks.acquire(claims);
    };
    const guard = createGuard({ locks: counted, clock });
    const controller = new AbortController();
    await guard.withLock('a', () => clock.block(5));
    const given = watch(guard.acquire('given', { signal: controller.signal }));
    const other = watch(guard.acquire('other'));
    controller.abort();
    await clock.settle();
    expect(given.error).toMatchObject({ code: 'aborted' });
    expect(other.value?.isHeld()).toBe(true);
    expect(asked).toEqual(['default/lock/a', 'default/lock/other']);
  });
});

function throwing(message: string): never {
  throw new Error(message);
}
