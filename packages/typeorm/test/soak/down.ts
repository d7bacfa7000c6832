/**
 * What each policy has to make of ticks that passed while everything was down: read from the records of its task. The
 * newest tick may come while the processes start, so what is expected follows from where the summary ends.
 */
import type { CatchUp, RunRecord } from '@guard/core';
import type { Heard } from './cluster.js';
import { withoutGaps } from './judge.js';

/** The period of the tasks with a policy each: three times as long as "on time", which is five seconds, and more. */
export const PERIOD_MS = 20_000;
/** For so long nobody is there: two ticks pass, and twelve seconds. */
export const DOWN_MS = 52_000;
/** The task of which 200 ticks are missed, and its period. */
export const MANY = 'many';
export const MANY_MS = 250;
const MAX_MANY = 10;
const MANY_MISSED = 200;

/** The tasks that miss two ticks. */
export const POLICIES = {
  none: 'none',
  latest: 'latest',
  all: { all: { max: 10 } },
} as const satisfies Record<string, CatchUp>;

/** How many were run afterwards, and how many are in the summary. */
export type DownFigures = Readonly<Record<string, number>>;

type Records = readonly RunRecord[];

/** @param heard what the processes told that started afterwards. */
export function judgeDown(
  of: (task: string) => Records,
  heard: readonly Heard[],
): { readonly figures: DownFigures; readonly problems: string[] } {
  const problems: string[] = [];
  const figures: Record<string, number> = {};
  for (const name of [...Object.keys(POLICIES), MANY] as (keyof typeof POLICIES | typeof MANY)[]) {
    const records = of(name);
    const caughtUp = heard.filter(
      (one) => one.what === 'begin' && one.task === name && one.trigger === 'catch-up',
    );
    figures[`${name} caught up`] = caughtUp.length;
    figures[`${name} passed over`] = passedOver(records);
    problems.push(
      ...withoutGaps(records, name === MANY ? MANY_MS : PERIOD_MS).map((text) => `${name}: ${text}`),
      ...beganOnce(name, heard),
      ...LAWS[name](records, caughtUp).map((text) => `${name}: ${text}`),
    );
  }
  return { figures, problems };
}

const LAWS: Record<
  keyof typeof POLICIES | typeof MANY,
  (records: Records, caughtUp: readonly Heard[]) => string[]
> = {
  none: (records, caughtUp) => [
    ...(passedOver(records) < 2 ? ['the missed ticks are not in a summary'] : []),
    ...(caughtUp.length > 0 ? [`${caughtUp.length} missed ticks were run`] : []),
  ],
  latest: (records, caughtUp) => [
    ...(passedOver(records) < 1 ? ['what was passed over is not in a summary'] : []),
    ...(caughtUp.length > 1 ? [`${caughtUp.length} missed ticks were run, not only the latest`] : []),
    ...(completedAfterSummary(records) === 0 ? ['the latest tick was not run'] : []),
  ],
  all: (records) => [
    ...(passedOver(records) > 0 ? [`${passedOver(records)} were passed over, although all fit`] : []),
    ...(records.filter(isCompleted).length < 2 ? ['not all were made up for'] : []),
  ],
  [MANY]: many,
};

/** Whether everything that was missed was dealt with: a busy machine needs its time, and only then can be judged. */
export function isMadeUpFor(records: ReadonlyMap<string, Records>): boolean {
  const of = (name: string): Records => records.get(name) ?? [];
  const summarized = [...records.keys()].filter((name) => name !== 'all');
  return (
    summarized.every((name) => summariesOf(of(name)).length > 0) &&
    of('all').filter(isCompleted).length >= 2 &&
    completedAfterSummary(of('latest')) > 0 &&
    firstAfterSummary(of(MANY)).every((run) => run !== undefined && isEnded(run))
  );
}

/**
 * Ten runs, the newest ones, whatever came while they waited; and everything before them in one summary. A busy machine
 * may be too slow for ticks that come after the ten: they are missed anew, and have summaries of their own.
 */
function many(records: Records): string[] {
  const [summary, ...others] = summariesOf(records);
  if (summary === undefined) return ['there is no summary'];
  const chosenToMs = summary.toMs + MAX_MANY * MANY_MS;
  const wrong = others.filter(({ fromMs }) => fromMs < chosenToMs);
  if (wrong.length > 0)
    return [`there are ${wrong.length + 1} summaries, not one${ranges([summary, ...wrong])}`];
  const problems: string[] = [];
  const missed = summary.count + MAX_MANY;
  if (missed < MANY_MISSED) problems.push(`only ${missed} ticks were missed`);
  const states = firstAfterSummary(records).map((run) =>
    run !== undefined && isCompleted(run) ? run.trigger : run?.state,
  );
  // Of one look the newest may be on time, and the others are made up for.
  const isRight = states.every(
    (state, place) => state === 'catch-up' || (state === 'cron' && place === MAX_MANY - 1),
  );
  if (!isRight) problems.push(`after the summary came ${states.join(', ')}`);
  return problems;
}

function ranges(summaries: ReturnType<typeof summariesOf>): string {
  const shown = summaries.map(({ fromMs, toMs, count }) => `${count} after ${fromMs} up to ${toMs}`);
  return `: ${shown.join('; ')}`;
}

/** The records of the instants that are run instead of passed over. */
function firstAfterSummary(records: Records): readonly (RunRecord | undefined)[] {
  const toMs = summariesOf(records)[0]!.toMs;
  return Array.from({ length: MAX_MANY }, (_, place) =>
    records.find(({ scheduledForMs }) => scheduledForMs === toMs + (place + 1) * MANY_MS),
  );
}

function beganOnce(task: string, heard: readonly Heard[]): string[] {
  const keys = heard.filter((one) => one.what === 'begin' && one.task === task).map(({ key }) => key);
  return keys.filter((key, place) => keys.indexOf(key) !== place).map((key) => `${task}: ${key} began twice`);
}

function completedAfterSummary(records: Records): number {
  const toMs = Math.max(...summariesOf(records).map((summary) => summary.toMs));
  return records.filter((run) => isCompleted(run) && run.scheduledForMs! > toMs).length;
}

function isCompleted({ state }: RunRecord): boolean {
  return state === 'completed';
}

function isEnded(run: RunRecord): boolean {
  return isCompleted(run) || run.state === 'expired';
}

function passedOver(records: Records): number {
  return summariesOf(records).reduce((sum, { count }) => sum + count, 0);
}

function summariesOf(records: Records) {
  return records.flatMap((run) =>
    run.state === 'expired' && run.summary !== undefined ? [run.summary] : [],
  );
}
