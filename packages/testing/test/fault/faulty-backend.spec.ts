import type { Claim, LockBackend, Notice } from '@guard/core';
import { faultyBackend, VirtualClock } from '@guard/testing';

const claim = (key: string): Claim => ({
  key,
  id: `claim of ${key}`,
  ttlMs: 1_000,
  wait: false,
  ticketTtlMs: 1_000,
  session: 's',
  holder: { label: 'n' },
});

/** A backend that grants everything and sends notices when it is told to. */
function generous() {
  const executed: string[] = [];
  const sinks = new Set<(notice: Notice) => void>();
  const note = <O extends { key: string }, A>(
    verb: string,
    operations: readonly O[],
    answer: A,
  ): Promise<A[]> => {
    executed.push(`${verb} ${operations.map(({ key }) => key).join(' ')}`);
    return Promise.resolve(operations.map(() => answer));
  };
  const inner: LockBackend = {
    name: 'generous',
    traits: { fifo: true, push: true, floor: true, minTtlMs: 1, ttlGranularityMs: 1, maxBatch: 3 },
    partition: (key) => key.slice(0, 1),
    acquire: (claims) => note('acquire', claims, { status: 'granted', token: 1n } as const),
    renew: (renewals) => note('renew', renewals, { status: 'renewed' } as const),
    release: (releases) => note('release', releases, { status: 'released' } as const),
    inspect: () => Promise.resolve([]),
    subscribe: (_session, sink) => {
      sinks.add(sink);
      return Promise.resolve({ close: () => Promise.resolve(void sinks.delete(sink)) });
    },
    atOnce: () => ({
      acquire: ({ key }) => (executed.push(`acquire ${key} at once`), { status: 'granted', token: 2n }),
      release: ({ key }) => (executed.push(`release ${key} at once`), { status: 'released' }),
    }),
    close: () => Promise.resolve(void executed.push('close')),
  };
  const notify = (key: string): void => sinks.forEach((sink) => sink({ type: 'lost', key, claim: 'c' }));
  return { inner, executed, notify, sinks };
}

async function subscribed() {
  const clock = new VirtualClock();
  const server = generous();
  const faulty = faultyBackend(server.inner, { clock });
  const heard: string[] = [];
  const hear = (notice: Notice): number =>
    heard.push(notice.type === 'gap' ? `gap ${notice.open ? 'open' : 'closed'}` : notice.key);
  const subscription = await faulty.backend.subscribe!('s', hear);
  return { clock, server, faulty, heard, subscription };
}

describe('faultyBackend', () => {
  it('is the wrapped backend as long as no fault is played', async () => {
    const { inner, executed } = generous();
    const { backend, plan } = faultyBackend(inner);
    expect([backend.name, backend.traits, backend.partition!('k')]).toEqual(['generous', inner.traits, 'k']);
    expect(await backend.acquire([claim('ka'), claim('kb')])).toEqual([
      { status: 'granted', token: 1n },
      { status: 'granted', token: 1n },
    ]);
    await backend.close();
    expect(executed).toEqual(['acquire ka kb']);
    expect(plan.traffic('acquire')).toEqual({ calls: 1, operations: 2 });
  });

  it('answers failed per claim', async () => {
    const { backend, plan } = faultyBackend(generous().inner);
    plan.play({ type: 'fail', executed: false, operations: (one) => (one as Claim).key === 'kb' });
    const answers = await backend.acquire([claim('ka'), claim('kb')]);
    expect(answers.map(({ status }) => status)).toEqual(['granted', 'failed']);
  });

  it('goes down, tells its streams, rejects everything unexecuted, and comes back', async () => {
    const { faulty, server, heard } = await subscribed();
    faulty.down(new Error('connection refused'));
    await expect(faulty.backend.acquire([claim('k')])).rejects.toThrow('connection refused');
    await expect(faulty.backend.inspect({ keys: ['k'] })).rejects.toThrow('connection refused');
    server.notify('missed');
    faulty.heal();
    await faulty.backend.acquire([claim('k')]);
    server.notify('heard');
    expect(heard).toEqual(['gap closed', 'gap open', 'heard']);
    expect(server.executed).toEqual(['acquire k']);
  });

  it('cuts silently both ways, and reports the gap when it is healed', async () => {
    const { faulty, server, heard, clock } = await subscribed();
    faulty.cut();
    let settled = false;
    void faulty.backend.acquire([claim('k')]).finally(() => (settled = true));
    server.notify('missed');
    await clock.advance(10_000);
    expect([settled, server.executed, heard]).toEqual([false, [], []]);
    faulty.heal();
    expect(heard).toEqual(['gap open']);
  });

  it('drops, delays and doubles notices', async () => {
    const { faulty, server, heard, clock } = await subscribed();
    faulty.playNotices({ type: 'drop' }, 1);
    faulty.playNotices({ type: 'delay', ms: 50 }, 1);
    faulty.playNotices({ type: 'duplicate', afterMs: 20 }, 1);
    ['dropped', 'delayed', 'doubled', 'plain'].forEach((key) => server.notify(key));
    expect(heard).toEqual(['doubled', 'plain']);
    await clock.advance(50);
    expect(heard).toEqual(['doubled', 'plain', 'doubled', 'delayed']);
    expect(faulty.notices).toBe(4);
  });

  it('delivers nothing to a closed subscription, not even what is under way', async () => {
    const { faulty, server, heard, clock, subscription } = await subscribed();
    faulty.playNotices({ type: 'delay', ms: 50 });
    server.notify('late');
    expect(faulty.openStreams).toBe(1);
    await subscription.close();
    await clock.advance(50);
    expect([heard, server.sinks.size, faulty.openStreams]).toEqual([[], 0, 0]);
  });

  it('names the rules of the port that a call breaks', async () => {
    const faulty = faultyBackend(generous().inner);
    await faulty.backend.acquire([claim('ka'), claim('kb')]);
    expect(faulty.violations).toEqual([]);
    await faulty.backend.acquire([claim('kb'), claim('ka'), claim('ka'), claim('x')]);
    await faulty.backend.acquire([]);
    expect(faulty.violations).toEqual([
      'acquire: 4 operations in one batch of at most 3',
      'acquire: two operations on one key in one batch',
      'acquire: the batch is not sorted by key',
      'acquire: one batch over 2 partitions',
      'acquire: an empty batch',
    ]);
  });

  it('closes the wrapped backend only when it owns it', async () => {
    const { inner, executed } = generous();
    await faultyBackend(inner).backend.close();
    expect(executed).toEqual([]);
    await faultyBackend(inner, { closeInner: true }).backend.close();
    expect(executed).toEqual(['close']);
  });
});

describe('faultyBackend over a backend that answers at once', () => {
  const lease = { key: 'k', claim: 'claim of k', token: 2n, session: 's' };

  it('hides that unless it is asked for: who wraps it sees every operation as a request', () => {
    const { inner } = generous();
    expect(faultyBackend(inner).backend.atOnce).toBeUndefined();
  });

  it('answers at once while nothing is in play, and counts and checks that like a request', () => {
    const { inner, executed } = generous();
    const { backend, plan, violations } = faultyBackend(inner, { atOnce: true });
    const { acquire, release } = backend.atOnce!();
    expect([acquire(claim('k')), release(lease)]).toEqual([
      { status: 'granted', token: 2n },
      { status: 'released' },
    ]);
    expect(executed).toEqual(['acquire k at once', 'release k at once']);
    expect([plan.traffic('acquire'), plan.traffic('release')]).toEqual([
      { calls: 1, operations: 1 },
      { calls: 1, operations: 1 },
    ]);
    expect(violations).toEqual([]);
  });

  it('has no answer at once while a fault of the verb is in play, so that the request can suffer it', () => {
    const { inner, executed } = generous();
    const faulty = faultyBackend(inner, { atOnce: true });
    const { acquire, release } = faulty.backend.atOnce!();
    faulty.loseReply('acquire');
    expect([acquire(claim('k')), release(lease)?.status]).toEqual([undefined, 'released']);
    faulty.down();
    expect(release(lease)).toBeUndefined();
    faulty.heal();
    expect(acquire(claim('k'))?.status).toBe('granted');
    expect(executed).toEqual(['release k at once', 'acquire k at once']);
  });
});
