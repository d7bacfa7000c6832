// Waiters in several processes on one key, each with a client of its own: how fast the lock goes from hand to hand, how
// long the unluckiest waits, how even the shares are, and what the server is asked for it. Time to think after each
// release lets others have a turn: without it, a releaser that takes its own lock again looks as good as a fair queue.
import { setTimeout as pause } from 'node:timers/promises';
import { playRounds } from '../rounds.mjs';
import { judge } from '../hand-overs.mjs';
import { namesOf } from '../stage.mjs';
import { machineMs } from '../workloads/contend.mjs';

const SCENARIO = 'contention';
/** Until a process is up; two of them start at once. */
const START_MS = 150;
/** More processes than this are not kept for the next play: their memory is needed. */
const KEEP = 4;
/** The start together, and the last hold. */
const SLACK_MS = 85;
/** The round that warms up is this part of the others: it is for connections, and for the first time of everything. */
const WARM_UP = 0.5;
/** All waiters are there, and have had or missed their first turn, when the looking begins: this part of the time. */
const RAMP = 0.3;
const LINE_MS = 150;

export const contention = {
  fits: (view) => namesOf(view, SCENARIO, ({ waits }) => waits).length > 0,
  expectedMs: (view) =>
    casesOf(view).reduce((sum, each) => {
      const names = namesOf(view, SCENARIO, ({ waits }) => waits);
      const processes = names.length * each.processes * START_MS;
      return sum + names.length * (view.bounds.rounds * roundMs(each) + roundMs(each, WARM_UP)) + processes;
    }, 0),
  play: async (stage) => {
    for (const each of casesOf(stage)) await playCase(stage, each);
    await stage.processes.endBeyond(KEEP);
  },
};

function casesOf({ backend, bounds }) {
  if (!backend.oneClient) return bounds.contention;
  const alone = bounds.contention.map((each) => JSON.stringify({ ...each, processes: 1 }));
  return [...new Set(alone)].map((text) => JSON.parse(text));
}

/** How long a round takes. */
function roundMs({ forMs }, part = 1) {
  return part * forMs * (1 + RAMP) + SLACK_MS;
}

async function playCase(stage, { forMs: wholeMs, ...params }) {
  const names = stage.names(SCENARIO, ({ waits }) => waits);
  const { rounds } = stage.bounds;
  const kept = {};
  const counts = {};
  const floors = [];
  // Who cannot be opened falls out in its turn.
  await Promise.allSettled(
    names.map((name) => (params.processes <= KEEP ? open(stage, name, params) : undefined)),
  );
  stage.tick(names.length * params.processes * START_MS);
  const samples = await playRounds({
    names,
    rounds,
    play: async (name, round) => {
      const processes = await open(stage, name, params);
      const part = round < 0 ? WARM_UP : 1;
      const forMs = part * wholeMs;
      const startAt = machineMs() + 25 + forMs * RAMP;
      const window = { startAt, endAt: startAt + forMs };
      // When every client has done what it does but once.
      const counting = round === rounds - 1 ? countWithin(stage.server, window) : undefined;
      const [{ holds, waiting, failures }, counted] = await Promise.all([
        playOnce(stage, processes, { ...params, ...window, forMs }),
        counting,
      ]);
      if (counted !== undefined) counts[name] = perHandover(counted, holds);
      const measuresFloor = stage.server.floorMs !== undefined && round >= 0 && name === names[0];
      if (measuresFloor) floors.push({ floor_ms: await stage.server.floorMs() });
      kept[name] = { holds, startAt };
      if (params.processes > KEEP) await stage.processes.endBeyond(1);
      stage.tick(roundMs({ forMs: wholeMs }, part));
      return judge(holds, waiting, failures, { ...params, ...window });
    },
  });
  for (const [name, counted] of Object.entries(counts)) {
    if (counted === undefined) stage.note(`${name}, ${SCENARIO}: no hand-over while the server was counted`);
    Object.assign(samples[name][0], counted);
  }
  stage.add(SCENARIO, samples, params);
  if (floors.length > 0) stage.add(SCENARIO, { floor: floors }, params);
  for (const name of names) if (kept[name] !== undefined) draw(stage, name, params, kept[name]);
}

async function open(stage, name, { processes, waiters }) {
  const all = await stage.processes.several(name, processes);
  if (!stage.backend.oneClient)
    await Promise.all(all.map((each) => each.call('ready', { waiters: waiters / processes })));
  return all;
}

async function playOnce(stage, processes, { waiters, holdMs, thinkMs, startAt, endAt, forMs }) {
  const each = waiters / processes.length;
  const parts = await Promise.all(
    processes.map((process, n) =>
      process.call('contend', {
        ...{
          key: `contended.${startAt}`,
          waiters: each,
          first: n * each,
          startAt: startAt - forMs * RAMP,
          endAt,
        },
        ...{ holdMs, thinkMs },
        oneClient: stage.backend.oneClient ?? false,
      }),
    ),
  );
  const holds = parts.flatMap((part) => part.holds).sort((a, b) => a[2] - b[2]);
  return {
    holds,
    waiting: parts.flatMap((part) => part.waiting),
    failures: parts.flatMap((part) => part.failures),
  };
}

/**
 * What the server counts within the window. That costs it something where it must tell every command, so it is done in one
 * round alone.
 */
async function countWithin(server, { startAt, endAt }) {
  if (server.startCount === undefined) return undefined;
  await pause(startAt - machineMs());
  const stop = await server.startCount();
  const from = machineMs();
  await pause(Math.max(0, endAt - machineMs()));
  const to = machineMs();
  return { from, to, ...(await stop()) };
}

function perHandover({ operations, pushes, from, to }, holds) {
  const handovers = holds.filter(([, , entered]) => entered >= from && entered < to).length;
  if (handovers === 0) return undefined;
  return {
    ops_per_handover: operations / handovers,
    ...(pushes === undefined ? {} : { pushes_per_handover: pushes / handovers }),
  };
}

/** The last round: who held the lock in its first moments, and how often each waiter had it. */
function draw(stage, contender, params, { holds, startAt }) {
  const line = holds
    .filter(([, , entered]) => entered >= startAt && entered < startAt + LINE_MS)
    .map(([waiter, , entered, left]) => [waiter, round(entered - startAt), round(left - startAt)]);
  const grants = Array.from({ length: params.waiters }, () => 0);
  for (const [waiter, , entered] of holds) if (entered >= startAt) grants[waiter] += 1;
  stage.draw({ chart: 'handover', contender, params, line, grants });
}

function round(ms) {
  return Math.round(ms * 100) / 100;
}
