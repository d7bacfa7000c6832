// Latency of a lone pair: one after the other, over a hundred keys, with nobody else there.
import { playRounds } from '../rounds.mjs';
import { namesOf } from '../stage.mjs';

const SCENARIO = 'uncontended';
/** Until a process of a contender is up; two of them start at once. */
const START_MS = 250;
/** The way to the process and back, and the last pair. */
const SLACK_MS = 4;

export const uncontended = {
  fits: (view) => namesOf(view, SCENARIO).length > 0,
  expectedMs: (view) =>
    namesOf(view, SCENARIO).length *
    (START_MS + view.bounds.warmMs + view.bounds.rounds * sampleMs(view.bounds)),
  play: async (stage) => {
    const { rounds, pairMs, settleMs, warmMs } = stage.bounds;
    const names = stage.names(SCENARIO);
    // Who cannot be opened falls out in its turn.
    await Promise.allSettled(names.map((name) => stage.processes.get(name)));
    stage.tick(names.length * START_MS);
    const samples = await playRounds({
      names,
      rounds,
      play: async (name, round) => {
        const contender = await stage.processes.get(name);
        const ask = round < 0 ? { forMs: warmMs } : { forMs: pairMs, settleMs };
        const sample = await contender.call('pairs', ask);
        stage.tick(round < 0 ? warmMs : sampleMs(stage.bounds));
        return { ...sample, pair_p50_ms: sample.p50, pair_p99_ms: sample.p99 };
      },
    });
    stage.add(SCENARIO, samples, { concurrency: 1 });
    for (const [contender, each] of Object.entries(samples)) {
      const curves = each.flatMap(({ quantiles = [] }) => (quantiles.length > 0 ? [quantiles] : []));
      if (curves.length > 0) stage.draw({ chart: 'latency', contender, quantiles: medianCurve(curves) });
    }
  },
};

function sampleMs({ pairMs, settleMs }) {
  return settleMs + pairMs + SLACK_MS;
}

/** At each quantile the median of the rounds. */
function medianCurve(curves) {
  return curves[0].map((_, n) => {
    const values = curves.map((curve) => curve[n]).sort((a, b) => a - b);
    return values[values.length >> 1];
  });
}
