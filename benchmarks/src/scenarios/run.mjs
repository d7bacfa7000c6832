// Single runs: how long one takes whose work does nothing, how many a process does in a second with 16 at once, and what
// the servers are asked for each. Queues and workflow engines do the nearest thing; what that is stands in the report.
import { failedSample, playRounds } from '../rounds.mjs';
import { ContenderProcess } from '../contender-process.mjs';

const SCENARIO = 'run';
const START_MS = 500;
const COUNTED = { forMs: 2_000, maxPairs: 20 };
/** The way to the process and back, and the last run. */
const SLACK_MS = 8;

export const run = {
  fits: (view) => Object.keys(view.runners ?? {}).length > 0,
  expectedMs: (view) => {
    const each = START_MS + 2 * (view.bounds.warmMs + view.bounds.run.rounds * sampleMs(view.bounds));
    return Object.keys(view.runners).length * each;
  },
  play: async (stage) => {
    const names = [];
    const address = (await stage.server.addressForRuns?.()) ?? stage.server.address;
    const module = `./backends/${stage.backend.name}.mjs`;
    const processes = {};
    // One by one: each makes its own tables, and some trip over each other when they do.
    for (const contender of Object.keys(stage.runners)) {
      processes[contender] = new ContenderProcess({ module, set: 'runners', contender, address });
      try {
        await processes[contender].call('warm');
        names.push(contender);
      } catch (error) {
        stage.add(SCENARIO, { [contender]: [failedSample(error)] }, { concurrency: 1 });
      }
      stage.tick(START_MS);
    }
    for (const name of names)
      if (stage.runners[name].compares !== undefined)
        stage.draw({ chart: 'compares', contender: name, text: stage.runners[name].compares });
    try {
      await playCase(stage, names, processes, 1);
      await playCase(stage, names, processes, stage.bounds.run.concurrency);
    } finally {
      await Promise.all(Object.values(processes).map((each) => each.end()));
    }
  },
};

async function playCase(stage, names, processes, workers) {
  const { warmMs, settleMs } = stage.bounds;
  const { rounds, forMs } = stage.bounds.run;
  const play = (name, more) =>
    processes[name].call('pairs', {
      ...{ workers, newKeys: true, prefix: `${name.replaceAll(/\W/g, '')}.` },
      ...more,
    });
  const trips = {};
  const samples = await playRounds({
    names,
    rounds,
    play: async (name, round) => {
      const sample = await play(name, round < 0 ? { forMs: warmMs } : { forMs, settleMs });
      if (round < 0 && workers === 1)
        trips[name] = await alone(processes, name, () => tripsOf(stage, () => play(name, COUNTED)));
      stage.tick(round < 0 ? warmMs : sampleMs(stage.bounds));
      const speed =
        workers === 1 ? { run_p50_ms: sample.p50 } : { runs_per_s: (sample.pairs * 1_000) / sample.ms };
      return { ...speed, violations: sample.violations, failure: sample.failure };
    },
  });
  for (const [name, value] of Object.entries(trips))
    if (value !== undefined) samples[name][0].trips_per_run = value;
  stage.add(SCENARIO, samples, { concurrency: workers });
}

function sampleMs({ settleMs, run: { forMs } }) {
  return settleMs + forMs + SLACK_MS;
}

/** Queues and engines look for work all the time: while one is counted, the processes of the others stand still. */
async function alone(processes, name, count) {
  const others = Object.keys(processes).filter((other) => other !== name && !processes[other].death);
  await Promise.all(others.map((other) => processes[other].pause()));
  try {
    return await count();
  } finally {
    for (const other of others) processes[other].resume();
  }
}

/** Counted once, in the round that warms up, when the process has done what it does but once. */
async function tripsOf(stage, play) {
  const stop = await stage.server.startCount?.();
  const { pairs } = await play();
  const counted = await stop?.();
  return counted === undefined || pairs === 0 ? undefined : counted.operations / pairs;
}
