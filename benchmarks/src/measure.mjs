// Rounds of every contender in turn, in rotated order, with exclusion and token growth checked inside.
import { performance } from 'node:perf_hooks';

/** How many pairs one round takes, by backend: a fraction of a second each. */
const PAIRS = { memory: 2_000, sqlite: 400, postgres: 256, redis: 512, etcd: 256 };

/** Times of all rounds by contender: `{ perRound, latencies, violations }` for each case of the scenario. */
export async function measure(scenario, backend, contenders, { quick }) {
  const rounds = quick ? 7 : 21;
  const cases =
    scenario === 'uncontended'
      ? [loneCase]
      : [keysCase(64), ...(backend === 'memory' ? [waitersCase(16)] : [])];
  const results = [];
  for (const one of cases) {
    const names = Object.keys(contenders).filter((name) => one.waiters === 1 || contenders[name].waits);
    const seen = Object.fromEntries(
      names.map((name) => [name, { pairMs: [], p50: [], p99: [], violations: 0 }]),
    );
    for (let round = -1; round < rounds; round += 1) {
      for (let turn = 0; turn < names.length; turn += 1) {
        const name = names[(turn + round + 1) % names.length];
        const sample = await play(one, contenders[name].pair, pairsOf(backend, contenders[name], one));
        if (round < 0) continue; // The first round warms up.
        const into = seen[name];
        into.pairMs.push(sample.ms / sample.pairs);
        into.p50.push(percentile(sample.latencies, 0.5));
        into.p99.push(percentile(sample.latencies, 0.99));
        into.violations += sample.violations;
      }
    }
    results.push({ ...one, seen });
  }
  return results;
}

const loneCase = { label: 'one after the other', workers: 1, waiters: 1 };
const keysCase = (workers) => ({ label: `${workers} keys at once`, workers, waiters: 1 });
const waitersCase = (workers) => ({ label: `${workers} waiters on one key`, workers, waiters: workers });

function pairsOf(backend, contender, { waiters }) {
  return waiters > 1 && contender.slowWaits ? 64 : PAIRS[backend];
}

async function play({ workers, waiters }, pair, pairs) {
  const latencies = [];
  const inside = new Map();
  const tokens = new Map();
  let violations = 0;
  const enter = (key, token) => {
    if (inside.get(key)) violations += 1;
    if (token !== undefined && token <= (tokens.get(key) ?? -1n)) violations += 1;
    inside.set(key, true);
    tokens.set(key, token);
  };
  const work = async (worker) => {
    for (let index = worker; index < pairs; index += workers) {
      const key = waiters > 1 ? 'one' : workers === 1 ? `k${index % 100}` : `w${worker}`;
      const from = performance.now();
      await pair(key, async (token) => {
        enter(key, token);
        inside.set(key, false);
      });
      latencies.push(performance.now() - from);
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
  return { ms: performance.now() - from, pairs, latencies, violations };
}

export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
