// Pairs of one contender for a fixed time: acquire, look at exclusion and tokens, release.
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';

const QUANTILES = 60;

/**
 * `workers` go on side by side, each over keys of its own, all on one key, or each time on a new one. One by one they walk over a hundred keys,
 * as an application does, and not over a new key each time. What happens in the first `settleMs` does not count.
 */
export async function playPairs(contender, { settleMs = 0, ...ask }) {
  const before = settleMs > 0 ? await playSample(contender, { ...ask, forMs: settleMs }) : { pairs: 0 };
  const sample = await playSample(contender, ask);
  // A server works for all of them.
  return { ...sample, allPairs: before.pairs + sample.pairs };
}

async function playSample(
  contender,
  { workers = 1, oneKey = false, newKeys = false, forMs, maxPairs = Infinity, prefix = '' },
) {
  const latencies = [];
  const law = new Law();
  const lag = watchLag();
  const begun = performance.now();
  const end = begun + forMs;
  let started = 0;
  const work = async (worker) => {
    for (let n = 0; started < maxPairs && (n === 0 || performance.now() < end); n += 1) {
      started += 1;
      const key = newKeys
        ? `${prefix}${begun}.${worker}.${n}`
        : oneKey
          ? `${prefix}one`
          : workers === 1
            ? `${prefix}k${n % 100}`
            : `${prefix}w${worker}`;
      const from = performance.now();
      try {
        let calls = 0;
        await contender.pair(key, (token) => {
          calls += 1;
          return law.see(key, token);
        });
        if (calls !== 1) throw new Error(`the work was done ${calls} times`);
        latencies.push(performance.now() - from);
      } catch (error) {
        law.failed(error);
        await nextTurn();
      }
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
  const ms = performance.now() - begun;
  const lagMs = lag.stop();
  latencies.sort((a, b) => a - b);
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))];
  return {
    failure: law.failure,
    ...{
      pairs: latencies.length,
      ms,
      violations: law.violations,
      p50: at(0.5),
      p99: at(0.99),
      max: at(1),
      lagMs,
    },
    // A curve needs something to go through.
    quantiles:
      latencies.length === 0 ? [] : Array.from({ length: QUANTILES + 1 }, (_, n) => at(n / QUANTILES)),
  };
}

/** How long the loop of this process could not run a timer. */
function watchLag() {
  let [last, worst] = [performance.now(), 0];
  const look = () => {
    const now = performance.now();
    worst = Math.max(worst, now - last - 5);
    last = now;
  };
  const timer = setInterval(look, 5);
  return {
    stop: () => {
      look();
      clearInterval(timer);
      return worst;
    },
  };
}

/** Exclusion and growing tokens, for the pairs of one process. */
class Law {
  violations = 0;
  /** The first error of a pair; each counts as a violation, for nobody did anything wrong. */
  failure;
  #inside = new Set();
  #tokens = new Map();

  failed(error) {
    this.violations += 1;
    this.failure ??= error?.message ?? String(error);
  }

  async see(key, token) {
    if (this.#inside.has(key)) this.violations += 1;
    if (token !== undefined) {
      if (token <= (this.#tokens.get(key) ?? -1n)) this.violations += 1;
      this.#tokens.set(key, token);
    }
    this.#inside.add(key);
    // Whoever is let in beside this one is let in now.
    await undefined;
    this.#inside.delete(key);
  }
}
