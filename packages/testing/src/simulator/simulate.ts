/**
 * A whole cluster in one process, played from one seed: real guards on clocks of their own, one backend in memory, and
 * a network, machines and processes that fail. After every turn the laws look at everything there is; the first one
 * that is broken ends the play. Then the faults end, and everything has to settle and leave nothing behind.
 *
 * To play a seed again, call `simulate({ seed })` with the same options and read `trace`: the same seed gives the same
 * lines on every machine.
 */
import { createGuard, kvRuns, memoryLocks, memoryState } from '@guard/core';
import { SeededRandom } from '../clock/seeded-random.js';
import type { Books } from './books.js';
import { Cluster } from './cluster.js';
import { Epilogue } from './epilogue.js';
import { Journal, type Violation } from './journal.js';
import { Beliefs } from './laws/beliefs.js';
import { Calls } from './laws/calls.js';
import { Entries } from './laws/entries.js';
import { Occurrences, SCHEDULED } from './laws/occurrences.js';
import { Runs } from './laws/runs.js';
import { Nemesis } from './nemesis.js';
import { checkPlan, drawPlan, type PlanOptions } from './plan.js';
import { Server } from './server.js';
import type { SimulatedCore, Stage } from './stage.js';
import { fullLockKey, NAMESPACE, STATE_PREFIX } from './workload.js';
import { World } from './world.js';

/** What to play. */
export interface SimulateOptions extends PlanOptions {
  /** Everything that is drawn is drawn from this number. */
  readonly seed: number;
  /** The code under test. Default: `@guard/core`. */
  readonly core?: SimulatedCore;
}

/** What came of it. */
export interface SimulationResult {
  readonly seed: number;
  /** The law that was broken, if one was. */
  readonly violation: Violation | undefined;
  /** What happened, line by line: true time in milliseconds, who, what. */
  readonly trace: readonly string[];
  /** The same for two plays only if every line is the same. */
  readonly hash: string;
  readonly turns: number;
  /** True time that passed. */
  readonly virtualMs: number;
  /** How often which mechanism was met. */
  readonly counts: Readonly<Record<string, number>>;
}

/**
 * Plays one seed. Never rejects because of what the guards do: that is a violation.
 *
 * @throws GuardError `invalid-argument` naming the option.
 */
export async function simulate(options: SimulateOptions): Promise<SimulationResult> {
  checkPlan(options);
  const { seed, core = { createGuard, kvRuns, memoryLocks, memoryState } } = options;
  const world = new World();
  const random = new SeededRandom(seed);
  const stage: Stage = { world, random, journal: new Journal(world), plan: drawPlan(random, options) };
  await play(stage, core);
  const { journal } = stage;
  return {
    seed,
    violation: journal.violation,
    trace: journal.lines,
    hash: journal.hash(),
    turns: world.turns,
    virtualMs: world.nowMs,
    counts: journal.counts,
  };
}

async function play(stage: Stage, core: SimulatedCore): Promise<void> {
  const { plan, journal, world } = stage;
  journal.note(
    `ttl ${plan.ttlMs}, ${plan.keys.length} keys, ${plan.workers} workers, faults ${[...plan.faults].join(' ')}`,
  );
  const calls = new Calls(stage, fullLockKey(''));
  const runs = new Runs(stage);
  const occurrences = new Occurrences(stage, `${NAMESPACE}/run/t/${SCHEDULED}`);
  const entries = new Entries(stage, STATE_PREFIX, (write) => {
    runs.written(write);
    if (plan.schedules) occurrences.written(write);
  });
  const server = new Server(stage, core, calls, entries);
  const books: Books = {
    calls,
    entries,
    runs,
    occurrences,
    grants: server.grants,
    beliefs: new Beliefs(stage, server.grants),
    booked: () => server.booked(),
  };
  const cluster = new Cluster(stage, core, server, books);
  const nemesis = new Nemesis(stage, cluster, server);
  cluster.startAll();
  nemesis.start();
  const turn = async (): Promise<boolean> => {
    const moved = await world.turn();
    calls.check();
    books.beliefs.check();
    return moved && journal.violation === undefined;
  };
  for (let step = 0; step < plan.steps; step += 1) if (!(await turn())) break;
  if (journal.violation === undefined) {
    nemesis.stop();
    await new Epilogue(stage, cluster, server, books, turn).play();
  }
}
