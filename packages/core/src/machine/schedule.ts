/**
 * Which occurrences of a task are due, and what becomes of those that nobody ran in time. A pure function of the
 * task's record, the schedule that a node knows, and the run store's time. What it answers becomes true by one
 * compare-and-set of the record; so of any number of nodes that look at the same moment, one plans each instant.
 *
 * The low-water mark only grows. An instant at or below it has a record, is planned, or lies in a summary.
 */
import type { Absence } from './absence.js';
import { type Calendar, latestUpTo } from './calendar.js';
import { caughtUp } from './caught-up.js';
import { earlierAt } from './definitions.js';
import { type IsRecorded, passed, summaryOf, withCauses } from './passed-over.js';
import type { PauseGap, Planned, TaskRecord } from './task-record.js';

/** What to do with instants that passed while nobody ran them. */
export type CatchUpPolicy =
  | { readonly mode: 'none' }
  | { readonly mode: 'latest' }
  /** The newest `max` of those that passed within the last `withinMs`. */
  | { readonly mode: 'all'; readonly max: number; readonly withinMs: number };

/** A schedule as one node knows it. */
export interface Schedule {
  /** As it is stored: equal texts are equal schedules. */
  readonly definition: { readonly hash: string; readonly text: string };
  readonly calendar: Calendar;
  /** Every start is moved by so much; the instants keep their names. */
  readonly offsetMs: number;
  readonly catchUp: CatchUpPolicy;
  /** The settings that decide about an instant before it begins, as text. Not a part of what the instants are. */
  readonly terms?: string;
}

/** What a node found when it looked. */
export interface Look {
  readonly task: string;
  readonly record: TaskRecord | undefined;
  /** The run store's time. */
  readonly nowMs: number;
  /** Since when this node follows the schedule. Default: since ever, so that all others count as later. */
  readonly followsSinceMs?: number;
  /** Whether this node's definition replaces the stored one, where that is another. */
  readonly replaces: boolean;
  /** The calendar of the stored definition, where that is another one that can be read. */
  readonly storedCalendar?: Calendar | undefined;
  /** Whether an instant is known to have its record: it is neither planned nor missed. */
  readonly recorded: IsRecorded;
  /** What was planned up to then and has its record leaves the list also where nothing is due. Default: nothing. */
  readonly settledUpToMs?: number;
  /** Whether the locks answer this node, as far as it knows. Default: they do not. */
  readonly locksAnswer?: boolean;
  /** What kept the node from planning, since before it was up. */
  readonly absences?: readonly Absence[];
}

/** What to do. */
export type Plan =
  /** Nothing is due. */
  | { readonly act: 'wait' }
  /** Another definition is in force, and stays. */
  | { readonly act: 'yield' }
  /** So many instants wait for their records that no more are planned: the store or the locks are in trouble. */
  | { readonly act: 'full' }
  /** `next` is to be written; then `runs` are this node's to begin, oldest first. */
  | { readonly act: 'write'; readonly next: TaskRecord; readonly runs: readonly Planned[] };

/** An instant that is begun within this time of being due was on time; the newest one, that is. */
export const ON_TIME_MS = 5_000;
const MAX_PLANNED = 500;
/** Pauses that are remembered while no node settles them; the newest takes in what follows it. */
const MAX_GAPS = 32;

/** What one look comes to. */
export function plan(schedule: Schedule, look: Look): Plan {
  const record = withOwnTerms(schedule, look);
  if (record === undefined) return planned(schedule, look);
  const answer = planned(schedule, { ...look, record });
  return answer.act === 'wait' ? write({ ...look, record }, baseOf({ ...look, record }), []) : answer;
}

/** The terms of another node that are stored for the definition of both. */
export function otherTerms(schedule: Schedule, record: TaskRecord | undefined): string | undefined {
  const { hash, terms } = record?.definition ?? {};
  return hash === schedule.definition.hash && terms?.text !== schedule.terms ? terms?.text : undefined;
}

/** The record with this node's terms, where nobody who started later has said others. */
function withOwnTerms(schedule: Schedule, { record, followsSinceMs: sinceMs }: Look): TaskRecord | undefined {
  const { terms: text } = schedule;
  const { definition } = record ?? {};
  if (record === undefined || definition?.hash !== schedule.definition.hash) return undefined;
  if (text === undefined || sinceMs === undefined || definition.terms?.text === text) return undefined;
  if (sinceMs <= (definition.terms?.sinceMs ?? -Infinity)) return undefined;
  return { ...record, definition: { ...definition, terms: { text, sinceMs } } };
}

function planned(schedule: Schedule, look: Look): Plan {
  const { record, nowMs } = look;
  if (record?.definition === undefined || record.lowWaterMarkMs === undefined)
    return write(look, defined(schedule, look, baseOf(look), nowMs), []);
  if (record.definition.hash !== schedule.definition.hash)
    return look.replaces ? changed(schedule, look, record.lowWaterMarkMs) : { act: 'yield' };
  // What was due before a pause is still to be run; what is due in it is settled when it ends.
  const [gap] = record.gaps ?? [];
  const pausedMs = gap?.fromMs ?? record.paused?.sinceMs ?? Infinity;
  const answer = due(schedule, look, record.lowWaterMarkMs, Math.min(nowMs, pausedMs) - schedule.offsetMs);
  if (gap === undefined || nowMs < gap.toMs || isDue(schedule, record.lowWaterMarkMs, pausedMs))
    return answer;
  return afterGap(schedule, look, record.lowWaterMarkMs, gap);
}

/** When the next look is due by the store's time; `undefined`: there is no further instant. */
export function nextDueMs(schedule: Schedule, markMs: number | undefined, nowMs: number): number | undefined {
  const { calendar, offsetMs } = schedule;
  // Under a pause the mark stands still: what lies before now is not waited for.
  const next = calendar.next(Math.max(markMs ?? nowMs, nowMs - offsetMs));
  return next === undefined ? undefined : next + offsetMs;
}

/**
 * The record after a pause: what fell into it was not run, and is not run any more. Where something may have been due
 * before it, the pause is remembered instead: `catchUp` is known to those that plan, and they settle one after the other.
 */
export function resumed(
  record: TaskRecord,
  calendar: Calendar | undefined,
  nowMs: number,
  offsetMs = 0,
  recorded: IsRecorded = () => false,
): TaskRecord {
  const { paused, ...rest } = record;
  const { lowWaterMarkMs: markMs, gaps = [] } = record;
  if (markMs === undefined || paused === undefined) return rest;
  const gap: PauseGap = { fromMs: paused.sinceMs, toMs: Math.max(nowMs, paused.sinceMs) };
  const isClear =
    gaps.length === 0 &&
    calendar !== undefined &&
    (calendar.next(markMs) ?? Infinity) + offsetMs > gap.fromMs;
  // What is due after the pause is still to be run, although its instant fell into it.
  const over = { fromMs: markMs, nowMs: gap.toMs - offsetMs, reason: 'paused', recorded } as const;
  if (isClear) return passed(rest, calendar, over);
  const last = gaps.at(-1);
  if (last === undefined || gaps.length < MAX_GAPS) return { ...rest, gaps: [...gaps, gap] };
  return { ...rest, gaps: [...gaps.slice(0, -1), { fromMs: last.fromMs, toMs: gap.toMs }] };
}

/** Nothing before the gap is left: what fell into it is passed over. */
function afterGap(schedule: Schedule, look: Look, markMs: number, gap: PauseGap): Plan {
  const { gaps = [], ...base } = baseOf(look);
  const left = gaps.slice(1);
  const { recorded } = look;
  const over = { fromMs: markMs, nowMs: gap.toMs - schedule.offsetMs, reason: 'paused', recorded } as const;
  const next = passed(base, schedule.calendar, over);
  return write(look, left.length === 0 ? next : { ...next, gaps: left }, []);
}

function isDue({ calendar, offsetMs }: Schedule, markMs: number, untilMs: number): boolean {
  return (calendar.next(markMs) ?? Infinity) <= untilMs - offsetMs;
}

function due(schedule: Schedule, look: Look, markMs: number, untilMs: number): Plan {
  const { calendar } = schedule;
  const { recorded } = look;
  const first = calendar.next(markMs);
  if (first === undefined || first > untilMs) return tidied(look);
  const newest = latestUpTo(calendar, untilMs, markMs) ?? first;
  const isOnTime = look.nowMs - schedule.offsetMs - newest <= ON_TIME_MS;
  const chosen = choose(schedule, look, markMs, newest, isOnTime);
  const kept = unsettled(look);
  if (kept.length + chosen.length > MAX_PLANNED) return { act: 'full' };
  const runs = chosen.map((instantMs): Planned => {
    return {
      instantMs,
      trigger: isOnTime && instantMs === newest ? 'cron' : 'catch-up',
      plannedAtMs: look.nowMs,
    };
  });
  const lastPassed = chosen[0] === undefined ? newest : latestUpTo(calendar, chosen[0] - 1, markMs);
  const summary =
    lastPassed === undefined
      ? undefined
      : summaryOf(calendar, markMs, lastPassed, lastPassed, 'missed', recorded);
  const base = {
    ...baseOf(look),
    lowWaterMarkMs: newest,
    ...(summary === undefined ? {} : { summary: withCauses(summary, look.absences) }),
  };
  const next = caughtUp(base, {
    ...{ mode: schedule.catchUp.mode, chosen, newest, isOnTime, nowMs: look.nowMs },
    hasPassed: summary !== undefined,
    wasMissed: look.nowMs - schedule.offsetMs - first > ON_TIME_MS,
    locksAnswer: look.locksAnswer === true,
  });
  return write(look, next, runs);
}

/**
 * Nothing is due. An instant whose record is known does not stay in the list until the next one is planned: that may
 * take longer than its record is kept, and then it would seem to be one that nobody has begun.
 */
function tidied(look: Look): Plan {
  const { record, recorded, settledUpToMs = -Infinity } = look;
  const isSettled = ({ instantMs, plannedAtMs }: Planned): boolean =>
    plannedAtMs <= settledUpToMs && recorded(instantMs);
  return record?.planned?.some(isSettled) ? write(look, baseOf(look), []) : { act: 'wait' };
}

/** The instants that are run, oldest first. What has a record is none of them, and takes no place of another. */
function choose(
  { calendar, catchUp }: Schedule,
  { nowMs, recorded }: Look,
  markMs: number,
  newest: number,
  isOnTime: boolean,
): number[] {
  switch (catchUp.mode) {
    case 'none':
      return isOnTime && !recorded(newest) ? [newest] : [];
    case 'latest':
      // Where the newest one has a record, an older one would come after it.
      return recorded(newest) ? [] : [newest];
    case 'all': {
      const chosen: number[] = [];
      let at: number | undefined = newest;
      while (at !== undefined && chosen.length < catchUp.max && at >= nowMs - catchUp.withinMs) {
        if (!recorded(at)) chosen.unshift(at);
        at = latestUpTo(calendar, at - 1, markMs);
      }
      return chosen;
    }
  }
}

/** The stored definition is settled up to now, and the new one begins. */
function changed(schedule: Schedule, look: Look, markMs: number): Plan {
  const { nowMs, storedCalendar, recorded } = look;
  const old = { fromMs: markMs, nowMs, reason: 'definition-changed', recorded } as const;
  const { gaps: _gaps, ...base } = baseOf(look);
  const settled = passed(base, storedCalendar, old);
  return write(look, defined(schedule, look, settled, settled.lowWaterMarkMs ?? nowMs), []);
}

/** This definition from now on. At first sight the mark is now: nothing before this moment was ever due. */
function defined(
  { definition, terms: text }: Schedule,
  { nowMs, followsSinceMs = nowMs }: Look,
  base: TaskRecord,
  markMs: number,
): TaskRecord {
  const terms = text === undefined ? {} : { terms: { text, sinceMs: followsSinceMs } };
  const { earlier: _earlier, ...rest } = base;
  const next = { ...rest, definition: { ...definition, sinceMs: nowMs, ...terms }, lowWaterMarkMs: markMs };
  const earlier = earlierAt(base, nowMs);
  return earlier.length === 0 ? next : { ...next, earlier };
}

/** What a new record goes on from. The runtime has written the last summary's record before it plans. */
function baseOf({ task, record }: Look): TaskRecord {
  const { summary, ...rest } = record ?? { task };
  return summary === undefined ? rest : { ...rest, summary: { ...summary, told: true } };
}

function unsettled({ record, recorded }: Look): readonly Planned[] {
  return (record?.planned ?? []).filter(({ instantMs }) => !recorded(instantMs));
}

function write(look: Look, next: TaskRecord, runs: readonly Planned[]): Plan {
  const { planned: _planned, ...rest } = next;
  const planned = [...unsettled(look), ...runs];
  return { act: 'write', next: planned.length === 0 ? rest : { ...rest, planned }, runs };
}
