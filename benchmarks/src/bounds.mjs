// How much each scenario plays: `quick` for a look within a minute for one backend, `full` for figures to quote. What is
// not compiled yet, or a core that slept a moment ago, would be most of a short sample: so before anything is measured a
// contender works for `warmMs`, and before each sample for `settleMs`.
export function boundsOf(quick, { sampleFactor = 1, handoverFactor = 1 }) {
  if (!quick) return FULL;
  const contention = QUICK.contention.map((each) => ({ ...each, forMs: each.forMs * handoverFactor }));
  return { ...QUICK, pairMs: QUICK.pairMs * sampleFactor, contention };
}

const THINK_MS = 10;

const QUICK = {
  quick: true,
  rounds: 5,
  warmMs: 200,
  settleMs: 10,
  pairMs: 30,
  concurrency: [1, 8, 64, 256],
  contention: [{ processes: 4, waiters: 16, holdMs: 2, thinkMs: THINK_MS, forMs: 130 }],
  expiry: { rounds: 1, ttlMs: 500 },
  hold: { rounds: 1, ttlMs: 1_200, sizes: [100, 10_000] },
  run: { rounds: 5, forMs: 60, concurrency: 16 },
  start: { rounds: 5 },
};

const FULL = {
  quick: false,
  rounds: 5,
  warmMs: 1_000,
  settleMs: 50,
  pairMs: 600,
  concurrency: [1, 8, 64, 256],
  contention: [
    { processes: 1, waiters: 16, holdMs: 2, thinkMs: THINK_MS, forMs: 1_000 },
    { processes: 4, waiters: 16, holdMs: 2, thinkMs: THINK_MS, forMs: 1_000 },
    { processes: 16, waiters: 16, holdMs: 2, thinkMs: THINK_MS, forMs: 1_000 },
    { processes: 4, waiters: 64, holdMs: 2, thinkMs: THINK_MS, forMs: 1_000 },
    { processes: 1, waiters: 16, holdMs: 0, thinkMs: THINK_MS, forMs: 1_000 },
    { processes: 1, waiters: 16, holdMs: 20, thinkMs: THINK_MS, forMs: 1_000 },
    { processes: 1, waiters: 16, holdMs: 2, thinkMs: 0, forMs: 1_000 },
  ],
  expiry: { rounds: 5, ttlMs: 3_000 },
  hold: { rounds: 5, ttlMs: 10_000, sizes: [100, 10_000] },
  run: { rounds: 5, forMs: 1_000, concurrency: 16 },
  start: { rounds: 9 },
};
