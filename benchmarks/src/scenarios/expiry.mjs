// What happens when a holder dies, stands still, is cut off, or its server goes away: how long until the next has the
// lock, for how long both believe in it, whether the fence refuses what the old one still writes, and how late it is
// told. All contenders play a fault at the same time, for they do nothing but wait, each with processes of its own.
import { startTcpProxy } from '@guard/testing';
import { namesOf } from '../stage.mjs';
import { FAULTS } from './faults.mjs';
import { Scene } from './scene.mjs';

const SCENARIO = 'expiry';
/** For each contender's two processes, and one more after each of two kills. */
const START_MS = 700;

export const expiry = {
  fits: (view) => !view.backend.oneClient && namesOf(view, SCENARIO, takesPart).length > 0,
  expectedMs: (view) =>
    view.bounds.expiry.rounds * groupsOf(view).reduce((sum, group) => sum + longest(view, group), 0),
  play: async (stage) => {
    await stage.processes.endBeyond(2);
    const names = stage.names(SCENARIO, takesPart);
    const samples = new Map();
    for (let round = 0; round < stage.bounds.expiry.rounds; round += 1) {
      for (const group of groupsOf(stage)) {
        await Promise.all(group.map((fault) => playFault(stage, { names, fault, round, samples })));
        stage.tick(longest(stage, group));
      }
    }
    for (const { fault, terms, each } of samples.values())
      stage.add(SCENARIO, each, { fault: fault.name, ttlMs: terms.ttlMs });
    // Clients of servers that are gone go on looking for them.
    await stage.processes.end();
  },
};

function takesPart({ holds }) {
  return holds === true;
}

/** Faults one after the other, but for those that can be played at once. */
function groupsOf(view) {
  const groups = new Map();
  for (const fault of FAULTS.filter(({ fits }) => fits(view))) {
    const name = fault.together ?? fault.name;
    groups.set(name, [...(groups.get(name) ?? []), fault]);
  }
  return [...groups.values()];
}

function longest(view, group) {
  return Math.max(...group.map((fault) => expectedMs(view, fault)));
}

function termsOf({ backend, bounds }, fault) {
  const smallest = backend.minTtlMs;
  return {
    ttlMs: fault.shortest ? smallest : Math.max(bounds.expiry.ttlMs, smallest),
    /** How much later than its ttl a lease may end here. */
    slackMs: backend.slackMs ?? 400,
  };
}

function expectedMs(view, fault) {
  const starts = fault.kills ? namesOf(view, SCENARIO, takesPart).length * START_MS * 0.5 : 0;
  return fault.expectedMs(termsOf(view, fault)) + starts + 500;
}

async function playFault(stage, { names, fault, round, samples }) {
  const terms = termsOf(stage, fault);
  const server = fault.startServer === undefined ? stage.server : await fault.startServer(stage.backend);
  const proxy =
    fault.proxied && server.endpoint !== undefined
      ? await startTcpProxy({ target: server.endpoint })
      : undefined;
  const chance = seeded(stage.seed * 1_000 + round);
  const scenes = names.map(
    (name) => new Scene({ stage, name, fault, terms, server, proxy, round, chance: chance() }),
  );
  try {
    await Promise.all(scenes.map((scene) => scene.open()));
    await Promise.all(scenes.map((scene) => scene.begin()));
    // What hits the server, or the network, hits all at once.
    const common = fault.all?.({ server, proxy, terms });
    await Promise.all(scenes.map((scene) => scene.play(common)));
    for (const scene of scenes) keep(samples, { fault, terms, scene });
    if (round === stage.bounds.expiry.rounds - 1) for (const scene of scenes) scene.draw();
  } finally {
    await Promise.all(scenes.map((scene) => scene.close()));
    await proxy?.close();
    if (server !== stage.server) await server.close();
  }
}

function keep(samples, { fault, terms, scene }) {
  if (!samples.has(fault.name)) samples.set(fault.name, { fault, terms, each: {} });
  const { each } = samples.get(fault.name);
  each[scene.name] ??= [];
  each[scene.name].push(scene.result());
}

/** Where in its renewal period a fault meets a holder: from the seed, in [0, 1). */
function seeded(seed) {
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) >>> 0;
    return state / 2 ** 32;
  };
}
