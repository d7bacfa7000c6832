// What happens when a holder dies, stands still, is cut off, or its server goes away: how long until the next has the
// lock, for how long both believe in it, whether the fence refuses what the old one still writes, and how late it is
// told. All contenders play at the same time, and several faults too, for they do nothing but wait, each with processes of
// its own.
import { startTcpProxy } from '@guard/testing';
import { namesOf } from '../stage.mjs';
import { momentOf } from '../moments.mjs';
import { failedSample } from '../rounds.mjs';
import { FAULTS } from './faults.mjs';
import { Scene } from './scene.mjs';

const SCENARIO = 'expiry';
/** Until a process is up; two of them start at once. */
const START_MS = 120;
/** Until all holders have their locks, in one more part of their renewal period; and all that is asked afterwards. */
const AROUND_MS = 700;

export const expiry = {
  fits: (view) => !view.backend.oneClient && namesOf(view, SCENARIO, takesPart).length > 0,
  expectedMs: (view) =>
    view.bounds.expiry.rounds * actsOf(view).reduce((sum, act) => sum + actMs(view, act), 0) +
    castOf(view) * namesOf(view, SCENARIO, takesPart).length * START_MS,
  play: async (stage) => {
    await stage.processes.endBeyond(castOf(stage));
    const names = stage.names(SCENARIO, takesPart);
    // Who cannot be opened falls out in its turn.
    await Promise.allSettled(names.map((name) => stage.processes.several(name, castOf(stage))));
    stage.tick(castOf(stage) * names.length * START_MS);
    const samples = new Map();
    for (let round = 0; round < stage.bounds.expiry.rounds; round += 1) {
      for (const act of actsOf(stage)) {
        await Promise.all(act.map((fault) => playFault(stage, { names, fault, round, samples })));
        stage.tick(actMs(stage, act));
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

/** Faults that are played at once. Those that leave the processes alone come first: the others need new ones afterwards. */
function actsOf(view) {
  const fitting = FAULTS.filter(({ fits }) => fits(view));
  return ['around', 'within']
    .map((act) => fitting.filter((fault) => fault.act === act))
    .filter((faults) => faults.length > 0);
}

/** How many processes a contender needs. */
function castOf(view) {
  return 1 + Math.max(...actsOf(view).flatMap((act) => act.flatMap(({ cast }) => cast)));
}

/** The longest of what is played at once; the killed are replaced after it. */
function actMs(view, act) {
  const killed = act.filter(({ kills }) => kills).length;
  const starts = killed * namesOf(view, SCENARIO, takesPart).length * START_MS;
  const again = view.bounds.expiry.rounds > 1 ? starts : 0;
  return Math.max(...act.map((fault) => fault.expectedMs(termsOf(view, fault)))) + AROUND_MS + again;
}

function termsOf({ backend, bounds }, fault) {
  const smallest = backend.minTtlMs;
  return {
    ttlMs: fault.shortest ? smallest : Math.max(bounds.expiry.ttlMs, smallest),
    /** How much later than its ttl a lease may end here. */
    slackMs: backend.slackMs ?? 400,
  };
}

async function playFault(stage, { names, fault, round, samples }) {
  const terms = termsOf(stage, fault);
  const server = fault.startServer === undefined ? stage.server : await fault.startServer(stage.backend);
  const proxy =
    fault.proxied && server.endpoint !== undefined
      ? await startTcpProxy({ target: server.endpoint })
      : undefined;
  const { rounds } = stage.bounds.expiry;
  const moment = momentOf({ seed: stage.seed, round, rounds });
  // A client that knows one server cannot follow a group of them.
  const fitting = names.filter((name) => !fault.several || !stage.contenders[name].oneServer);
  const scenes = fitting.map(
    (name) => new Scene({ stage, name, fault, terms, server, proxy, round, moment }),
  );
  const failures = new Map();
  // A contender that fails is a result; the others go on.
  const each = (step) =>
    Promise.all(
      scenes
        .filter((scene) => !failures.has(scene))
        .map(async (scene) => step(scene).catch((error) => void failures.set(scene, failedSample(error)))),
    );
  try {
    await each((scene) => scene.open());
    await each((scene) => scene.begin());
    // What hits the server, or the network, hits all at once.
    const common = await fault.all?.({ server, proxy, terms });
    await each((scene) => scene.play(common));
    for (const scene of scenes)
      keep(samples, { fault, terms, name: scene.name, sample: failures.get(scene) ?? scene.result() });
    if (round === rounds - 1) for (const scene of scenes) if (!failures.has(scene)) scene.draw();
  } finally {
    await Promise.all(scenes.map((scene) => scene.close().catch(() => undefined)));
    await proxy?.close();
    if (server !== stage.server) await server.close();
  }
}

function keep(samples, { fault, terms, name, sample }) {
  if (!samples.has(fault.name)) samples.set(fault.name, { fault, terms, each: {} });
  const { each } = samples.get(fault.name);
  each[name] ??= [];
  each[name].push(sample);
}
