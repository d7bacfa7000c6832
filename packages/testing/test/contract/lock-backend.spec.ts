import { memoryLocks, type AtOnce, type LockBackend, type LockTraits, type Notice } from '@guard/core';
import { describeLockBackend, VirtualClock } from '@guard/testing';
import { failures, runSuite, type Outcome } from './support.js';

type Defect = (inner: LockBackend) => Partial<LockBackend>;

/** Runs the port's part of the suite on a memory backend with a defect. */
function runWith(
  defect: Defect,
  part = '',
  traits: Partial<LockTraits> = {},
  group = 'lock backend: ',
): Promise<Outcome> {
  const create = async () => {
    const clock = new VirtualClock();
    const inner = memoryLocks({ clock });
    const whole: LockBackend = {
      name: inner.name,
      traits: { ...inner.traits, ...traits },
      acquire: (claims) => inner.acquire(claims),
      renew: (renewals) => inner.renew(renewals),
      release: (releases) => inner.release(releases),
      inspect: (query) => inner.inspect(query),
      subscribe: (session, onNotice) => inner.subscribe!(session, onNotice),
      close: () => inner.close(),
    };
    const backend = Object.assign(whole, defect(inner));
    return { backend, connect: async () => backend, clock, cleanup: () => inner.close() };
  };
  const all = { ...memoryLocks().traits, ...traits };
  return runSuite(
    (runner) =>
      describeLockBackend({
        runner,
        name: 'with a defect',
        traits: all,
        virtualTime: true,
        atOnce: group.includes('at once'),
        create,
      }),
    group,
    part,
  );
}

const DEFECTS: readonly [what: string, defect: Defect, found: string][] = [
  [
    'releases whoever holds the key',
    (inner) => ({
      release: async (releases) => {
        const infos = await inner.inspect({ keys: releases.map(({ key }) => key) });
        return inner.release(releases.map((one, n) => (one.cancel ? one : (infos[n]!.lease ?? one))));
      },
    }),
    '[S3] releases by claim id only',
  ],
  [
    're-creates a lock that a late renewal names',
    (inner) => ({
      renew: async ([one, ...more]) => {
        const answers = await inner.renew([one!, ...more]);
        if (answers[0]?.status !== 'lost') return answers;
        const { claim: id, ...rest } = one!;
        const claim = { ...rest, id, wait: false, ticketTtlMs: rest.ttlMs, holder: { label: 'late' } };
        const [granted] = await inner.acquire([claim]);
        return [{ status: granted?.status === 'granted' ? 'renewed' : 'lost' }];
      },
    }),
    '[S5] answers lost for a key that nobody holds',
  ],
  [
    'answers renewed without renewing',
    () => ({ renew: async (renewals) => renewals.map(() => ({ status: 'renewed' as const })) }),
    'sets the lease to now + ttl',
  ],
  [
    'takes its own re-sent acquire for somebody else’s',
    (inner) => {
      const seen = new Set<string>();
      return {
        acquire: async (claims) => {
          const again = claims.some(({ id }) => seen.has(id));
          claims.forEach(({ id }) => seen.add(id));
          return again ? claims.map(() => ({ status: 'busy' as const })) : inner.acquire(claims);
        },
      };
    },
    '[S4] answers a re-sent acquire of a live claim',
  ],
  [
    'mints a token that does not grow',
    (inner) => ({
      acquire: async (claims) =>
        (await inner.acquire(claims)).map((answer) =>
          answer.status === 'granted' ? { ...answer, token: 7n } : answer,
        ),
    }),
    '[S2] grow over release',
  ],
  [
    'makes a token a double on its way',
    (inner) => ({
      acquire: async (claims) =>
        (await inner.acquire(claims)).map((answer) =>
          answer.status === 'granted' ? { ...answer, token: BigInt(Number(answer.token)) } : answer,
        ),
    }),
    'to the last digit',
  ],
  [
    'ignores the floor of a re-sent acquire',
    (inner) => {
      const seen = new Set<string>();
      return {
        acquire: (claims) => {
          const heard = claims.map(({ floor, ...claim }) =>
            floor === undefined || seen.has(claim.id) ? claim : { ...claim, floor },
          );
          for (const { id } of claims) seen.add(id);
          return inner.acquire(heard);
        },
      };
    },
    '[S2] are raised to the floor of a re-sent acquire',
  ],
  [
    'queues a claim that does not wait',
    (inner) => ({
      acquire: async (claims) =>
        (await inner.acquire(claims.map((claim) => ({ ...claim, wait: true })))).map((answer, n) =>
          answer.status === 'queued' && !claims[n]!.wait ? { status: 'busy' as const } : answer,
        ),
    }),
    '[B33] leaves nothing behind',
  ],
  [
    'leaves no tombstone',
    (inner) => ({
      release: (releases) =>
        inner.release(releases.map((one) => (one.cancel ? { ...one, tombstoneMs: 0 } : one))),
    }),
    '[S4] [B52] leaves a tombstone',
  ],
  [
    'answers a batch in another order',
    (inner) => ({ acquire: async (claims) => [...(await inner.acquire(claims))].reverse() }),
    'answer in the order of the operations',
  ],
  [
    'folds the case of keys',
    (inner) => ({
      acquire: (claims) => inner.acquire(claims.map((claim) => ({ ...claim, key: claim.key.toLowerCase() }))),
    }),
    '[B159] [B162] are each themselves',
  ],
  [
    'loses every notice',
    (inner) => ({ subscribe: (session) => inner.subscribe!(session, () => undefined) }),
    '[L2] tells the ticket’s session',
  ],
  [
    'tells every session of everything',
    (inner) => {
      const listeners = new Set<(notice: Notice) => void>();
      return {
        subscribe: async (session, onNotice) => {
          listeners.add(onNotice);
          const all = (notice: Notice) => listeners.forEach((listener) => listener(notice));
          const subscription = await inner.subscribe!(session, all);
          return { close: () => (listeners.delete(onNotice), subscription.close()) };
        },
      };
    },
    'tells no other session',
  ],
  [
    'lists free locks too',
    (inner) => ({
      inspect: async (query) => {
        const infos = await inner.inspect(query);
        return 'keys' in query ? infos : [...infos, { ...infos[0]!, key: `${query.prefix}zz`, held: false }];
      },
    }),
    'lists held locks below a prefix',
  ],
];

/** Mistakes of a short cut beside a port that is right. */
const SHORT_CUTS: readonly [what: string, defect: (right: AtOnce) => Partial<AtOnce>, found: string][] = [
  [
    'has counters of its own',
    () => ({ acquire: () => ({ status: 'granted', token: 7n }) }),
    '[S1] refuses every other claim while the lease lasts',
  ],
  [
    'lets a claim that does not wait pass by the queue',
    (right) => ({
      acquire: (claim) => {
        const answer = right.acquire(claim);
        return answer?.status === 'busy' ? { status: 'granted', token: 7n } : answer;
      },
    }),
    '[S1] [S2] stands in one order with batches',
  ],
  [
    'queues every claim',
    (right) => ({ acquire: (claim) => right.acquire({ ...claim, wait: true }) }),
    '[S1] [L2] answers random sequences as batches of one do',
  ],
  [
    'releases whatever it is asked to',
    (right) => ({ release: (release) => (right.release(release), { status: 'released' }) }),
    '[S1] [L2] answers random sequences as batches of one do',
  ],
  ['has no answers', () => ({ acquire: () => undefined }), '[S1] grants a free key'],
];

describe('describeLockBackend', () => {
  it('passes the memory backend, whole', async () => {
    const outcome = await runWith(() => ({}));
    expect(failures(outcome)).toEqual([]);
    expect(outcome.passed.length).toBeGreaterThan(75);
  });

  it.each(DEFECTS)('finds a backend that %s', async (_what, defect, found) => {
    expect(failures(await runWith(defect, found))).toEqual([expect.stringContaining(found)]);
  });

  it.each(SHORT_CUTS)('finds a short cut that %s', async (_what, defect, found) => {
    const atOnce = (inner: LockBackend) => ({
      atOnce: () => ({ ...inner.atOnce!(), ...defect(inner.atOnce!()) }),
    });
    expect(failures(await runWith(atOnce, found, {}, 'lock backend at once'))).toContainEqual(
      expect.stringContaining(found),
    );
  });

  it('finds traits that are not true', async () => {
    const outcome = await runWith(() => ({ traits: { ...memoryLocks().traits, maxBatch: 0 } }));
    expect(failures(outcome)).toContainEqual(expect.stringContaining('shows the traits'));
  });

  it('reports by name and reason what traits rule out', async () => {
    const outcome = await runWith(() => ({}), '', { push: false, fifo: false, floor: false });
    expect(failures(outcome)).toEqual([]);
    expect(outcome.skipped.length).toBeGreaterThan(20);
    for (const title of outcome.skipped) expect(title).toMatch(/ \(skipped: .+\)$/);
    expect(outcome.skipped).toContainEqual(
      expect.stringMatching(/^\[L2\] serves tickets in the order .*\(skipped: .*traits\.fifo\)\)$/),
    );
  });
});
