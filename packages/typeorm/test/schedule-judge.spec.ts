/** The laws of the soak: each one says so when it is broken. A law that never speaks would let everything pass. */
import type { RunRecord } from '@guard/core';
import type { Heard, Played } from './soak/cluster.js';
import { judgeDown, MANY, MANY_MS, PERIOD_MS } from './soak/down.js';
import * as judge from './soak/judge.js';

const START_MS = Date.UTC(2026, 0, 1);
const WINDOW = { fromMs: START_MS, count: 3, everyMs: 1_000 };
const keyOf = (second: number): string => new Date(START_MS + second * 1_000).toISOString();

function run(second: number, more: Partial<RunRecord> = {}): RunRecord {
  const scheduledForMs = START_MS + second * 1_000;
  return { key: keyOf(second), scheduledForMs, state: 'completed', trigger: 'cron', ...more } as RunRecord;
}

function passedOver(fromMs: number, toMs: number, count: number): RunRecord {
  const summary = { fromMs, toMs, count };
  return { key: `${fromMs}/passed`, state: 'expired', reason: 'missed', summary } as unknown as RunRecord;
}

const heard = (what: Heard['what'], second: number, node: string, more: Partial<Heard> = {}): Heard => {
  return { what, node, key: keyOf(second), atMs: 1_000 * second, trigger: 'cron', ...more };
};
const played = (what: Played['what'], second: number, node: string): Played => {
  return { what, node, task: 'tick', key: keyOf(second), atMs: 1_000 * second };
};

const all = [0, 1, 2].map((second) => run(second));
const begun = [0, 1, 2].map((second) => heard('begin', second, 'a'));

describe('the laws of the soak', () => {
  test('are silent where each occurrence ran once', () => {
    const course = { records: all, heard: begun, played: [] };
    expect(judge.runOnce(course, WINDOW)).toEqual([]);
    expect(judge.withoutGaps(all, 1_000)).toEqual([]);
    expect(judge.isSettled(course, WINDOW)).toBe(true);
    expect(judge.isSettled({ ...course, played: [played('kill', 4, 'a')] }, WINDOW)).toBe(false);
  });

  test('[S7] name an occurrence that began twice, unless a fault cut it off', () => {
    const twice = { records: all, heard: [...begun, heard('begin', 1, 'b')], played: [] };
    expect(judge.runOnce(twice, WINDOW)).toEqual([`${keyOf(1)} began 2 times: a (cron), b (cron)`]);
    expect(judge.runOnce({ ...twice, played: [played('kill', 1, 'a')] }, WINDOW)).toEqual([]);
  });

  test('[S8] name an occurrence without a record, or that did not complete', () => {
    const course = { records: [run(0), run(2, { state: 'pending' })], heard: begun, played: [] };
    expect(judge.runOnce(course, WINDOW)).toEqual([
      `${keyOf(1)} has no record`,
      `${keyOf(2)} is pending (without a reason)`,
    ]);
    expect(judge.withoutGaps(course.records, 1_000)).toEqual([
      `nothing is recorded between ${keyOf(0)} and ${keyOf(2)}`,
    ]);
    expect(judge.isSettled(course, WINDOW)).toBe(false);
  });

  test('[S8] know that a summary covers its range, and that nothing lies in it besides', () => {
    const summary = passedOver(START_MS, START_MS + 2_000, 2);
    expect(judge.withoutGaps([run(0), summary, run(3)], 1_000)).toEqual([]);
    expect(judge.withoutGaps([run(0), summary, run(2)], 1_000)).toEqual([`${keyOf(2)} is recorded 2 times`]);
  });

  test('[L4] name a run that went on too late, or never, and allow for others that were cut off before it', () => {
    const late = [heard('begin', 1, 'b', { atMs: 4_500 })];
    const course = { records: all, heard: late, played: [played('kill', 1, 'a')] };
    expect(judge.takenOver(course, 3_500, 2_000)).toEqual([]);
    expect(judge.takenOver(course, 3_000, 2_000)).toEqual([
      `${keyOf(1)} went on after 3500 ms, later than 3000: its node a was hit by kill`,
    ]);
    expect(judge.takenOver({ ...course, heard: [] }, 3_000, 2_000)).toHaveLength(1);
    const queued = { ...course, played: [played('kill', 1, 'a'), played('stop', 2, 'c')] };
    expect(judge.takenOver(queued, 3_000, 2_000)).toEqual([
      expect.stringContaining(`${keyOf(2)} went on never`),
    ]);
  });

  test('[S7] name a node that was stopped past its lease and finished all the same', () => {
    const course = { records: all, heard: begun, played: [played('stop', 1, 'a')] };
    expect(judge.refused(course)).toHaveLength(1);
    expect(judge.refused({ ...course, heard: [heard('refused', 1, 'a')] })).toEqual([]);
  });
});

describe('the laws of a time with everything down', () => {
  const at = (ticks: number, more: Partial<RunRecord> = {}): RunRecord =>
    run((ticks * PERIOD_MS) / 1_000, more);
  const many = (upTo: number): RunRecord[] => {
    const toMs = START_MS + 190 * MANY_MS;
    const runs = Array.from({ length: upTo }, (_, place) =>
      run((190 + place + 1) * (MANY_MS / 1_000), { trigger: place === 9 ? 'cron' : 'catch-up' }),
    );
    return [passedOver(START_MS, toMs, 190), ...runs];
  };
  const right: Record<string, readonly RunRecord[]> = {
    none: [at(0), passedOver(START_MS, START_MS + 2 * PERIOD_MS, 2)],
    latest: [at(0), passedOver(START_MS, START_MS + PERIOD_MS, 1), at(2, { trigger: 'catch-up' })],
    all: [at(0), at(1), at(2)],
    [MANY]: many(10),
  };
  const problemsOf = (changed: Record<string, readonly RunRecord[]>): readonly string[] =>
    judgeDown((task) => ({ ...right, ...changed })[task]!, []).problems;

  test('are silent where each policy did what it says', () => {
    expect(problemsOf({})).toEqual([]);
  });

  test('[V5] name a policy that did something else', () => {
    expect(problemsOf({ none: right['all']! })).toEqual(['none: the missed ticks are not in a summary']);
    expect(problemsOf({ latest: right['none']! })).toEqual(['latest: the latest tick was not run']);
    expect(problemsOf({ all: right['latest']! })).toEqual(['all: 1 were passed over, although all fit']);
  });

  test('[V6] name a backlog of other than ten runs and one summary', () => {
    expect(problemsOf({ [MANY]: many(9) })).toEqual([expect.stringMatching(/^many: after the summary came/)]);
    // What was chosen keeps its turn, however many newer ones come.
    const overtaken = many(14).map((one, place) =>
      place >= 1 && place <= 4 ? { ...one, state: 'expired', reason: 'missed', trigger: 'cron' } : one,
    ) as RunRecord[];
    expect(problemsOf({ [MANY]: overtaken })).toEqual([
      expect.stringMatching(/^many: after the summary came expired, expired, expired, expired, catch-up/),
    ]);
    const second = passedOver(START_MS - MANY_MS, START_MS, 1);
    expect(problemsOf({ [MANY]: [second, ...many(10)] })).toEqual([
      expect.stringMatching(/^many: there are 2 summaries, not one: 1 after /),
    ]);
    // What was missed on a busy machine after all was made up for.
    const later = passedOver(START_MS + 200 * MANY_MS, START_MS + 202 * MANY_MS, 2);
    expect(problemsOf({ [MANY]: [...many(10), later] })).toEqual([]);
  });
});
