// How many pairs a process does in a second with 1, 8, 64 and 256 keys at once; in memory also with waiters on one key,
// and on a file that processes share with several of them.
import { cpuMsOf } from '../process-cpu.mjs';
import { playRounds } from '../rounds.mjs';
import { namesOf } from '../stage.mjs';
import { machineMs } from '../workloads/contend.mjs';

const SCENARIO = 'throughput';
const WAITERS = 16;
const KEYS_OF_PROCESS = 16;
/** So many keys at once make a contender do all that it does at all. */
const WARM_WORKERS = 64;
/** The way to the process and back, and the last pairs: many at once take a while. */
const SLACK_MS = 14;
/** Two thousand pairs, one after the other, that wait for a disk. */
const CLAIMS_MS = 3_500;

export const throughput = {
  fits: (view) => namesOf(view, SCENARIO).length > 0,
  expectedMs: (view) =>
    casesOf(view).reduce(
      (sum, each) =>
        sum +
        each.names.length *
          ((each.warm === undefined ? 0 : view.bounds.warmMs) + view.bounds.rounds * sampleMs(view.bounds)),
      remembering(view) ? CLAIMS_MS * view.bounds.rounds * namesOf(view, SCENARIO, hasNoLimit).length : 0,
    ),
  play: async (stage) => {
    for (const each of casesOf(stage)) await playCase(stage, each);
    if (remembering(stage)) await playClaims(stage);
    await stage.processes.endBeyond(1);
  },
};

/** Ticks of ten milliseconds need some time to say anything: a full run has it. */
function remembering({ backend, bounds }) {
  return backend.remembers !== undefined && !bounds.quick;
}

function hasNoLimit({ most }) {
  return most === undefined;
}

/** The server's work for a pair on one lock: the first so many claims on it, and as many when it has had so many. */
async function playClaims(stage) {
  const claims = stage.backend.remembers;
  const later = {};
  const first = await playRounds({
    names: stage.names(SCENARIO, hasNoLimit),
    rounds: stage.bounds.rounds,
    warmUp: false,
    play: async (name) => {
      const process = await stage.processes.get(name);
      const ask = { oneKey: true, forMs: Infinity, maxPairs: claims, prefix: `claims${machineMs()}` };
      const [fresh, used] = [await serverUs(stage, process, ask), await serverUs(stage, process, ask)];
      (later[name] ??= []).push(used);
      stage.tick(CLAIMS_MS);
      return fresh;
    },
  });
  stage.add(SCENARIO, first, { claimsBefore: 0 });
  stage.add(SCENARIO, later, { claimsBefore: claims });
}

async function serverUs(stage, process, ask) {
  const before = cpuMsOf(stage.server.pids());
  const { pairs, violations, failure } = await process.call('pairs', ask);
  const after = cpuMsOf(stage.server.pids());
  const measured = before !== undefined && pairs > 0;
  return {
    ...(measured ? { server_us_per_pair: ((after - before) * 1_000) / pairs } : {}),
    ...{ violations, failure },
  };
}

function casesOf(view) {
  const all = namesOf(view, SCENARIO);
  const { contenders } = view;
  const cases = view.bounds.concurrency.map((workers, n) => ({
    params: { concurrency: workers },
    // Once is enough: the others are done by the same processes.
    ...(n === 0 ? { warm: WARM_WORKERS } : {}),
    workers: [workers],
    names: all.filter((name) => (contenders[name].most ?? Infinity) >= workers),
  }));
  if (view.backend.oneClient)
    cases.push({
      params: { concurrency: WAITERS, oneKey: true },
      workers: [WAITERS],
      warm: WAITERS,
      oneKey: true,
      names: all.filter((name) => contenders[name].waits),
    });
  if (view.backend.processes !== undefined)
    cases.push({
      params: { concurrency: KEYS_OF_PROCESS, processes: view.backend.processes },
      workers: Array.from({ length: view.backend.processes }, () => KEYS_OF_PROCESS),
      warm: KEYS_OF_PROCESS,
      // Verrou on Knex reads a busy file as a lock that is taken, and waits 250 ms.
      names: all.filter((name) => contenders[name].shares || name.startsWith('guard')),
    });
  return cases;
}

async function playCase(stage, { params, workers, oneKey, names, warm }) {
  const { rounds, pairMs, settleMs, warmMs } = stage.bounds;
  const samples = await playRounds({
    names,
    rounds,
    warmUp: warm !== undefined,
    play: async (name, round) => {
      const processes = await stage.processes.several(name, workers.length);
      if (round < 0) {
        const most = stage.contenders[name].most ?? Infinity;
        const ask = { workers: Math.min(warm, most), oneKey, forMs: warmMs };
        await Promise.all(processes.map((each, n) => each.call('pairs', { ...ask, prefix: `t${n}.` })));
        return stage.tick(warmMs);
      }
      const serverBefore = cpuMsOf(stage.server.pids());
      const answers = await Promise.all(
        processes.map((each, n) =>
          each.call('pairs', { workers: workers[n], oneKey, forMs: pairMs, settleMs, prefix: `t${n}.` }),
        ),
      );
      stage.tick(sampleMs(stage.bounds));
      return together(answers, pairMs, serverBefore, cpuMsOf(stage.server.pids()));
    },
  });
  stage.add(SCENARIO, samples, params);
}

function sampleMs({ pairMs, settleMs }) {
  return settleMs + pairMs + SLACK_MS;
}

function together(answers, pairMs, serverBefore, serverAfter) {
  const allPairs = answers.reduce((sum, each) => sum + each.allPairs, 0);
  const counts = answers.map((each) => each.pairs);
  const several = answers.length > 1;
  return {
    pairs_per_s: answers.reduce((sum, each) => sum + (each.pairs * 1_000) / each.ms, 0),
    failure: answers.find(({ failure }) => failure !== undefined)?.failure,
    violations: answers.reduce((sum, each) => sum + each.violations, 0),
    ...(several ? { share_min_max: Math.min(...counts) / Math.max(1, ...counts) } : {}),
    ...(several ? { pair_max_ms: Math.max(...answers.map(({ max }) => max)) } : {}),
    ...(several ? { loop_lag_ms: Math.max(...answers.map(({ lagMs }) => lagMs)) } : {}),
    // Ticks of ten milliseconds say nothing about a short sample.
    ...(serverBefore !== undefined && pairMs >= 500 && allPairs > 0
      ? { server_us_per_pair: ((serverAfter - serverBefore) * 1_000) / allPairs }
      : {}),
  };
}
