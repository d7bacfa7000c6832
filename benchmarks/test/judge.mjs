// A program for the test: figures of small, written-down plays, as one line of JSON. What is not finite is said as text.
import { setTimeout as pause } from 'node:timers/promises';
import { judge } from '../src/hand-overs.mjs';
import { momentOf } from '../src/moments.mjs';
import { comparisonOf } from '../src/report/compare.mjs';
import { progressLine } from '../src/report/progress.mjs';
import { unjudged, verdictsOf } from '../src/report/targets.mjs';
import { playRounds } from '../src/rounds.mjs';
import { row } from '../src/rows.mjs';
import { contend, machineMs } from '../src/workloads/contend.mjs';
import { playPairs } from '../src/workloads/pairs.mjs';

const WINDOW = { waiters: 2, startAt: 0, endAt: 200 };

/** Waiter 1 comes later and is let in, while waiter 0 waits from the beginning. */
const barging = judge(
  [
    [1, 0, 1, 10],
    [1, 60, 60, 70],
    [0, 0, 100, 110],
  ],
  [],
  [],
  WINDOW,
);
/** Nobody waits while nobody holds the lock. */
const idle = judge(
  [
    [1, 0, 1, 10],
    [0, 60, 61, 70],
  ],
  [],
  [],
  WINDOW,
);
const wrong = judge(
  [
    [0, 0, 1, 10, 5n],
    [1, 0, 9, 20, 6n],
    [0, 20, 30, 40, 6n],
  ],
  [[1, 20]],
  ['it gave up'],
  WINDOW,
);

const rounds = await playRounds({
  names: ['well', 'ill'],
  rounds: 3,
  play: async (name, round) => {
    if (name === 'ill' && round === 1) throw new Error('it fell ill');
    return { round };
  },
});

async function violationsOf(pair) {
  const pairs = await playPairs({ pair }, { forMs: 20, maxPairs: 50, oneKey: true, workers: 2 });
  const now = machineMs();
  const ask = { key: 'k', waiters: 2, first: 0, startAt: now, endAt: now + 40, holdMs: 5, thinkMs: 2 };
  const play = await contend(() => ({ pair }), { ...ask, oneClient: true });
  const judged = judge(play.holds, play.waiting, play.failures, { ...WINDOW, startAt: now, endAt: now + 40 });
  return { pairs: pairs.violations, contend: judged.violations };
}

const numbers = (values, more = {}) =>
  row({
    ...{ scenario: 'expiry', backend: 'redis', contender: 'guard', metric: 'overlap_ms', values },
    params: { fault: 'sigstop', ttlMs: 500 },
    ...more,
  });
const report = (...rows) => ({ rows });
const { changes, ...counts } = comparisonOf(
  report(
    numbers([0]),
    numbers([1], { contender: 'gone' }),
    numbers([100], { contender: 'once' }),
    numbers([100, 101], { contender: 'twice' }),
  ),
  report(
    numbers([40], { params: { ttlMs: 500, fault: 'sigstop' } }),
    numbers([1], { contender: 'new' }),
    numbers([150], { contender: 'once' }),
    numbers([150, 151], { contender: 'twice' }),
    numbers([1], { contender: 'newer' }),
  ),
);

const crowd = { processes: 1, waiters: 16, holdMs: 2, thinkMs: 10 };
const ofCrowd = (metric, value) =>
  numbers([value], { scenario: 'contention', contender: 'guard', metric, params: crowd });
const targets = {
  starved: verdictsOf(report(ofCrowd('share_min_max', 0))).map(({ text, met }) => ({ text, met })),
  unjudged: unjudged(report(ofCrowd('gap_p50_ms', 1))),
};

let last = Promise.resolve();
/** One after the other, as it should be. */
function queue(_key, work) {
  last = last.then(() => work());
  return last;
}

console.log(
  JSON.stringify({
    ...{ barging, idle, wrong, rounds },
    violations: {
      queue: await violationsOf(queue),
      everybody: await violationsOf((_key, work) => work()),
      nobody: await violationsOf(() => pause(1)),
      twice: await violationsOf((_key, work) => queue(_key, work).then(() => queue(_key, work))),
    },
    targets,
    moments: [1, 2].map((seed) => [0, 1, 2, 3, 4].map((round) => momentOf({ seed, round, rounds: 5 }))),
    comparison: { ...counts, changes: changes.map(({ verdict, row: { value } }) => ({ verdict, value })) },
    lines: [Infinity, 79, 40, 10].map((room) =>
      progressLine(0.5, 4_000_000, 'etcd-cluster uncontended', room),
    ),
  }),
);
