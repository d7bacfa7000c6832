/** Cases of the lock port: single operations that are answered at once, beside those of batches. */
import type { ClaimAnswer, Notice } from '@guard/core';
import { SeededRandom } from '../../clock/seeded-random.js';
import { assert, expectStatus } from '../assert.js';
import { answeredAtOnce, shortCut, unlessPush, type LockCase, type LockKit } from './kit.js';

/** How one of the two ways carries out an operation. */
interface Way {
  readonly key: string;
  acquire(claim: Parameters<LockKit['acquire']>[0]): Promise<ClaimAnswer>;
  release(
    release: Parameters<ReturnType<typeof shortCut>['release']>[0],
  ): Promise<{ readonly status: string }>;
}

function nearWay(kit: LockKit): Way {
  const { acquire, release } = shortCut(kit.backend);
  return {
    key: kit.key('near'),
    acquire: async (claim) => answeredAtOnce(acquire(claim)),
    release: async (one) => answeredAtOnce(release(one)),
  };
}

function farWay(kit: LockKit): Way {
  const { backend } = kit;
  return {
    key: kit.key('far'),
    acquire: async (claim) => (await backend.acquire([claim]))[0]!,
    release: async (one) => (await backend.release([one]))[0]!,
  };
}

/** One random operation of one of three claims; the same draws for both ways. */
function drawStep(random: SeededRandom) {
  const draw = { kind: random.fraction(), who: random.integer(0, 2), wait: random.fraction() < 0.5 };
  return { ...draw, tombstone: random.fraction() < 0.3, passMs: random.fraction() < 0.2 };
}

/** Plays steps on the key of one way, and tells what every answer says except tokens, which belong to the key. */
async function play(kit: LockKit, way: Way, steps: readonly ReturnType<typeof drawStep>[]) {
  const told: unknown[] = [];
  const claims = [0, 1, 2].map((n) =>
    kit.claim(way.key, { session: `session ${n % 2}`, holder: { label: `${n}` } }),
  );
  const tokens = [1n, 1n, 1n];
  const ranks: bigint[] = [];
  for (const { kind, who, wait, tombstone, passMs } of steps) {
    const { id, session } = claims[who]!;
    if (kind < 0.5) {
      const answer = await way.acquire({ ...claims[who]!, wait });
      if (answer.status === 'granted') ranks.push((tokens[who] = answer.token));
      told.push(tellable(answer));
    } else if (kind < 0.8) {
      told.push(await way.release({ key: way.key, claim: id, session, token: tokens[who]! }));
    } else if (kind < 0.9) {
      told.push(
        await way.release({
          cancel: true,
          key: way.key,
          claim: id,
          session,
          tombstoneMs: tombstone ? 60_000 : 0,
        }),
      );
      claims[who] = kit.claim(way.key, { session, holder: { label: `${who}` } });
    } else if (passMs) {
      // No sum of these is a ttl: at that very instant rounding would decide.
      await kit.time.pass(kit.ttlMs * 0.35);
    }
    const { held, waiting, holder } = await kit.info(way.key);
    told.push({ held, waiting, holder });
  }
  assert.ok(
    ranks.every((token, n) => n === 0 || token >= ranks[n - 1]!),
    'tokens grow',
  );
  return told;
}

function tellable(answer: ClaimAnswer): unknown {
  if (answer.status === 'granted') return 'granted';
  if (answer.status === 'queued') return { ahead: answer.ahead, fresh: answer.fresh };
  return answer.status === 'busy' ? { busy: answer.holder } : answer;
}

export const shortCutCases: readonly LockCase[] = [
  {
    title: '[S1] [L2] answers random sequences as batches of one do, to the place in the queue',
    unless: (_, { virtualTime }) =>
      virtualTime ? undefined : 'two ways meet the same times on a virtual clock only',
    run: async (kit) => {
      const random = new SeededRandom();
      for (let round = 0; round < (kit.profile === 'quick' ? 30 : 300); round += 1) {
        const steps = Array.from({ length: 40 }, () => drawStep(random));
        const near = nearWay(kit);
        const far = farWay(kit);
        const place = (way: Way): Way => ({ ...way, key: `${way.key}${round}` });
        const [atOnce, inBatches] = [await play(kit, place(near), steps), await play(kit, place(far), steps)];
        assert.deepEqual(atOnce, inBatches, `seed ${random.seed}, round ${round}`);
      }
    },
  },
  {
    title: '[S1] [S2] stands in one order with batches: each sees what the other did',
    run: async (kit) => {
      const { acquire, release } = shortCut(kit.backend);
      const first = kit.claim(kit.key(), { wait: true });
      const second = kit.claim(kit.key(), { wait: true });
      const mine = expectStatus(answeredAtOnce(acquire(first)), 'granted', 'the first, at once');
      const [queued] = await kit.backend.acquire([second]);
      expectStatus(queued!, 'queued', 'the second, in a batch');
      const { key, session } = first;
      const given = answeredAtOnce(release({ key, claim: first.id, token: mine.token, session }));
      expectStatus(given, 'released', 'the first');
      const theirs = expectStatus(answeredAtOnce(acquire(second)), 'granted', 'the second, handed over');
      assert.ok(theirs.token > mine.token, 'tokens grow over both ways');
      expectStatus(answeredAtOnce(acquire(kit.claim(key))), 'busy', 'a third');
      const ref = { key, claim: second.id, token: theirs.token, session: second.session };
      expectStatus((await kit.backend.release([ref]))[0]!, 'released', 'the second, in a batch');
      expectStatus(answeredAtOnce(release(ref)), 'lost', 'the second, once more');
    },
  },
  {
    title: 'tells of a hand-over after the call has returned, not from inside of it',
    unless: unlessPush,
    run: async (kit) => {
      const { acquire, release } = shortCut(kit.backend);
      const held = kit.claim(kit.key());
      const next = kit.claim(kit.key(), { wait: true });
      const heard: Notice[] = [];
      const stream = await kit.backend.subscribe!(next.session, (notice) => void heard.push(notice));
      const { token } = expectStatus(answeredAtOnce(acquire(held)), 'granted', 'the holder');
      expectStatus(answeredAtOnce(acquire(next)), 'queued', 'the next');
      release({ key: held.key, claim: held.id, token, session: held.session });
      assert.deepEqual(heard, [], 'nothing is told inside the call');
      await kit.time.untilTrue(() => heard.length > 0, 2_000, 'the notice');
      await stream.close();
    },
  },
];
