/**
 * The laws of schedules, as they can be read from the records and from what the processes told: nothing ran twice,
 * nothing is missing without a reason, and what a fault cut off went on in time.
 */
import type { RunRecord } from '@guard/core';
import type { Heard, Played } from './cluster.js';

/** What is to be judged. */
export interface Course {
  readonly records: readonly RunRecord[];
  readonly heard: readonly Heard[];
  readonly played: readonly Played[];
}

/** A series of instants that had to run. */
export interface Window {
  readonly fromMs: number;
  readonly count: number;
  readonly everyMs: number;
}

/** The instants of a window. */
export function instantsOf({ fromMs, count, everyMs }: Window): number[] {
  return Array.from({ length: count }, (_, place) => fromMs + place * everyMs);
}

/** Whether every instant of the window has come to its end, and every run that was cut off. */
export function isSettled({ records, played }: Omit<Course, 'heard'>, window: Window): boolean {
  const ended = new Set(
    records.filter(({ state }) => state !== 'pending' && state !== 'running').map(({ key }) => key),
  );
  const wanted = [
    ...instantsOf(window).map((at) => new Date(at).toISOString()),
    ...played.map(({ key }) => key),
  ];
  return wanted.every((key) => ended.has(key));
}

/** Each instant of the window completed; what was not cut off began once. */
export function runOnce({ records, heard, played }: Course, window: Window): string[] {
  const problems: string[] = [];
  const found = new Map(records.map((run) => [run.key, run]));
  const cutOff = new Set(played.map(({ key }) => key));
  for (const at of instantsOf(window)) {
    const key = new Date(at).toISOString();
    const run = found.get(key);
    if (run === undefined) problems.push(`${key} has no record`);
    else if (run.state !== 'completed') problems.push(`${key} is ${run.state} (${reasonOf(run)})`);
    const begun = heard.filter((one) => one.what === 'begin' && one.key === key);
    if (begun.length !== 1 && !cutOff.has(key)) {
      const where = begun.map(({ node, trigger }) => `${node} (${trigger})`).join(', ');
      problems.push(`${key} began ${begun.length} times: ${where}`);
    }
  }
  return problems;
}

/** Every instant from the first one to the last lies in exactly one record, or in one summary [S8]. */
export function withoutGaps(records: readonly RunRecord[], everyMs: number): string[] {
  const seen = new Map<number, number>();
  const add = (at: number): unknown => seen.set(at, (seen.get(at) ?? 0) + 1);
  for (const run of records) {
    if (run.scheduledForMs !== undefined) add(run.scheduledForMs);
    if (run.state !== 'expired' || run.summary === undefined) continue;
    const { fromMs, toMs } = run.summary;
    for (let at = (Math.floor(fromMs / everyMs) + 1) * everyMs; at <= toMs; at += everyMs) add(at);
  }
  const sorted = [...seen.keys()].sort((a, b) => a - b);
  const problems = sorted
    .filter((at) => seen.get(at)! > 1)
    .map((at) => `${new Date(at).toISOString()} is recorded ${seen.get(at)} times`);
  for (const [place, at] of sorted.entries()) {
    const before = sorted[place - 1];
    if (before !== undefined && at - before !== everyMs)
      problems.push(
        `nothing is recorded between ${new Date(before).toISOString()} and ${new Date(at).toISOString()}`,
      );
  }
  return problems;
}

/** How long each run that was cut off stood still, in milliseconds, until it began elsewhere. */
export function takeoverTimes({
  heard,
  played,
}: Course): { readonly played: Played; readonly ms: number | undefined }[] {
  return played.map((one) => {
    const next = heard.find(
      ({ what, key, node, atMs }) =>
        what === 'begin' && key === one.key && node !== one.node && atMs > one.atMs,
    );
    return { played: one, ms: next === undefined ? undefined : next.atMs - one.atMs };
  });
}

/**
 * Every run that was cut off goes on within this time, and a lease more for each run before it in the lock's queue that
 * was cut off too [L4].
 */
export function takenOver(course: Course, withinMs: number, ttlMs: number): string[] {
  return takeoverTimes(course).flatMap(({ played: { what, node, key, atMs }, ms = Infinity }) => {
    const between = course.played.filter((other) => other.atMs > atMs && other.atMs < atMs + ms);
    const limitMs = withinMs + between.length * ttlMs;
    if (ms <= limitMs) return [];
    const how = ms === Infinity ? 'never' : `after ${Math.round(ms)} ms, later than ${limitMs}`;
    return [`${key} went on ${how}: its node ${node} was hit by ${what}`];
  });
}

/** Who was stopped past its lease in a run was refused when it came to finish it, and was told so [S7]. */
export function refused({ heard, played }: Course): string[] {
  return played
    .filter(({ what }) => what === 'stop')
    .filter(
      ({ node, key }) => !heard.some((one) => one.what === 'refused' && one.node === node && one.key === key),
    )
    .map(({ node, key }) => `${node} was stopped past its lease in ${key}, and its finish was not refused`);
}

function reasonOf(run: RunRecord): string {
  return 'reason' in run && typeof run.reason === 'string' ? run.reason : 'without a reason';
}
