/**
 * What is played, each scene on a store of its own. A scene answers figures, and what was wrong with it in sentences.
 * Nothing is judged by the time that something took, but takeovers, whose bound is a promise.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type CatchUp, fingerprint } from '@guard/core';
import type { SeededRandom } from '@guard/testing';
import { Cluster, type ClusterOptions } from './cluster.js';
import * as judge from './judge.js';
import {
  DOWN_MS,
  judgeDown,
  type DownFigures,
  isMadeUpFor,
  PERIOD_MS,
  MANY,
  MANY_MS,
  POLICIES,
} from './down.js';
import { openStore, type SoakStore } from './store.js';

/** What a scene is played with. */
export interface SceneInput {
  readonly store: SoakStore;
  /** A file that is not there yet, for the log of locks. */
  readonly log: string;
  readonly random: SeededRandom;
  /** How long the schedule of every second is watched. */
  readonly seconds: number;
  /** Whether the time with everything down really passes; otherwise the store is left as it would leave it. */
  readonly realTime: boolean;
}

/** What came of a scene. */
export interface SceneResult {
  readonly figures: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
}

/** A scene of the soak. */
export type Scene = (input: SceneInput) => Promise<SceneResult>;

const SECOND_MS = 1_000;
const TTL_MS = 2_000;
const SWEEP_MS = 1_000;
/** A sweep comes at most so much later than its interval. */
const SWEEP_JITTER = 1.2;
/** Short runs that were first in the lock's queue, and a machine that has better things to do. */
const BUSY_MS = 1_500;
const SETTLE_MS = 30_000;
const TASK = 'tick';

/** Four processes skewed from −2 s to +2 s, an occurrence every second, work of 5 ms: each exactly once. */
export const even: Scene = (input) => everySecond(input, {});

/** The same with a process killed every five seconds, and one stopped for three leases every ten. */
export const troubled: Scene = (input) => everySecond(input, { 2: 'kill', 7: 'kill', 4: 'stop' });

/** The scenes by name. */
export const SCENES = { even, troubled, down } as const;

interface Named {
  readonly name: string;
  readonly everyMs: number;
}

async function everySecond(input: SceneInput, faults: ClusterOptions['faults']): Promise<SceneResult> {
  const { random, seconds, store, log } = input;
  const cluster = new Cluster(store, {
    ...{ log, faults, ttlMs: TTL_MS, sweepMs: SWEEP_MS, bodyMs: 5, waitMs: 20_000 },
    tasks: [{ name: TASK, everyMs: SECOND_MS, catchUp: { all: { max: 100 } } }],
  });
  try {
    const skews = [-2_000, random.integer(-1_500, 0), random.integer(0, 1_500), 2_000];
    await Promise.all(skews.map((skewMs) => cluster.start(skewMs)));
    // On SQLite the store's clock is the process's own: the fastest one is ahead of this process by its skew.
    const fromMs = Math.ceil(Date.now() / SECOND_MS) * SECOND_MS + 3 * SECOND_MS;
    const window = { fromMs, count: seconds, everyMs: SECOND_MS };
    await sleep(fromMs + seconds * SECOND_MS - Date.now());
    await settled(async () =>
      judge.isSettled({ records: await cluster.records(TASK), played: cluster.played }, window),
    );
    await cluster.end();
    const { heard, played } = cluster;
    const course = { records: await cluster.records(TASK), heard, played };
    const problems = [
      ...judge.runOnce(course, window),
      ...judge.withoutGaps(course.records, SECOND_MS),
      ...judge.takenOver(course, TTL_MS + SWEEP_MS * SWEEP_JITTER + BUSY_MS, TTL_MS),
      ...judge.refused(course),
      ...cluster.log.problems(),
      ...cluster.problems,
      ...enoughFaults(course, faults, seconds),
    ];
    return { figures: figuresOf(course), problems };
  } finally {
    await cluster.close();
  }
}

/** A scene whose faults never came shows nothing. */
function enoughFaults({ played }: judge.Course, faults: ClusterOptions['faults'], seconds: number): string[] {
  return (['kill', 'stop'] as const).flatMap((what) => {
    const perTen = Object.values(faults).filter((fault) => fault === what).length;
    const wanted = Math.floor((seconds / 10) * perTen);
    const got = played.filter((one) => one.what === what).length;
    return got < wanted ? [`only ${got} faults of the kind ${what} were played, of ${wanted}`] : [];
  });
}

function figuresOf(course: judge.Course): SceneResult['figures'] {
  const { records, heard, played } = course;
  const completed = records.filter(({ state }) => state === 'completed');
  const times = judge.takeoverTimes(course).map(({ ms }) => ms ?? Infinity);
  return {
    completed: completed.length,
    begun: heard.filter(({ what }) => what === 'begin').length,
    nodes: new Set(heard.map(({ node }) => node)).size,
    kills: played.filter(({ what }) => what === 'kill').length,
    stops: played.filter(({ what }) => what === 'stop').length,
    takeovers: heard.filter(({ what }) => what === 'taken over').length,
    slowestTakeoverMs: Math.round(Math.max(0, ...times)),
    refusedWrites: heard.filter(({ what }) => what === 'refused').length,
  };
}

/**
 * Everything is down over two ticks of three tasks with a policy each, and over 200 of a fourth; then two processes
 * start at once.
 */
async function down(input: SceneInput): Promise<SceneResult> {
  const { store, log, realTime } = input;
  const tasks: (Named & { readonly catchUp: CatchUp })[] = [
    ...Object.entries(POLICIES).map(([name, catchUp]) => ({ name, everyMs: PERIOD_MS, catchUp })),
    { name: MANY, everyMs: MANY_MS, catchUp: { all: { max: 10 } } },
  ];
  const cluster = new Cluster(store, {
    ...{ log, tasks, faults: {}, ttlMs: TTL_MS, sweepMs: SWEEP_MS, bodyMs: 0, waitMs: 5_000 },
  });
  try {
    if (realTime) await downForReal(cluster);
    else await leftBehind(store, tasks);
    const back = cluster.heard.length;
    await Promise.all([0, 0].map((skewMs) => cluster.start(skewMs)));
    await settled(async () => {
      const records = await Promise.all(tasks.map(({ name }) => cluster.records(name)));
      return isMadeUpFor(new Map(tasks.map(({ name }, place) => [name, records[place]!])));
    });
    await sleep(2 * SWEEP_MS);
    await cluster.end();
    const found = new Map<string, Awaited<ReturnType<Cluster['records']>>>();
    for (const { name } of tasks) found.set(name, await cluster.records(name));
    const { figures, problems }: { figures: DownFigures; problems: string[] } = judgeDown(
      (task) => found.get(task)!,
      cluster.heard.slice(back),
    );
    return { figures, problems: [...problems, ...cluster.log.problems(), ...cluster.problems] };
  } finally {
    await cluster.close();
  }
}

/** Two processes run until the first tick is through, are killed together, and stay away for two ticks and a half. */
async function downForReal(cluster: Cluster): Promise<void> {
  await Promise.all([0, 0].map((skewMs) => cluster.start(skewMs)));
  const tickMs = Math.ceil((Date.now() + 1_000) / PERIOD_MS) * PERIOD_MS;
  await sleep(tickMs + 1_500 - Date.now());
  await cluster.killAll();
  await sleep(tickMs + DOWN_MS - Date.now());
}

/** What the same processes would have left if they had been killed so long ago. */
async function leftBehind(store: SoakStore, tasks: readonly Named[]): Promise<void> {
  const { runs, close } = await openStore(store);
  for (const { name: task, everyMs } of tasks) {
    const text = `every ${everyMs}ms`;
    const markMs = Math.floor((Date.now() - DOWN_MS) / everyMs) * everyMs;
    const definition = { hash: fingerprint(text).slice(0, 16), text, sinceMs: markMs - everyMs };
    await runs.putTask('default', null, { task, definition, lowWaterMarkMs: markMs });
  }
  await close();
}

async function settled(look: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + SETTLE_MS;
  while (performance.now() < endMs && !(await look())) await sleep(250);
}
