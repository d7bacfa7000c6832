/**
 * What became of one instant, and why: its own record says it, else the record of what was passed over, else the
 * task's own record. A reader of the history, not a part of it.
 */
import type { Explanation } from '../../api/tasks.js';
import type { Calendar } from '../../machine/calendar.js';
import type { RunRecord } from '../../machine/run-record.js';
import { occurrenceKey, summaryKey, type TaskRecord } from '../../machine/task-record.js';
import { lockKeyOf } from '../run/active-runs.js';
import { orphansOf, type RunHost } from '../run/run-host.js';
import { calendarOf } from './definition.js';
import { type Fate, fateAhead, fateBehind, type PassedTogether } from './fate.js';
import { readTask } from './task-book.js';

const PAGE = 100;
/** Pages of expired records that are looked through for the one that covers the instant. */
const MAX_PAGES = 20;

/** Which instant of which task. */
export interface Question {
  readonly task: string;
  readonly instantMs: number;
  readonly calendar: Calendar;
  /** So much later than its instant a start is due. */
  readonly offsetMs: number;
  readonly nowMs: number;
}

/** @throws GuardError `unavailable`. */
export async function explained(host: RunHost, question: Question): Promise<Explanation> {
  const { task, instantMs } = question;
  const key = occurrenceKey(instantMs);
  const own = await host.book.get({ task, key });
  if (own !== null) {
    const { run } = own;
    const isOrphan = (await orphansOf(host, [run]).catch(() => undefined))?.has(run) === true;
    const isBesideStray = run.state === 'pending' && host.active.hasStray(lockKeyOf(host.namespace, run));
    const more = isOrphan ? `, ${ORPHANED}` : isBesideStray ? `, ${BESIDE_STRAY}` : '';
    const text = `${sentence(run)}${more}`;
    return { verdict: run.state, run, trigger: run.trigger, text: `${key} ${text}` };
  }
  const record = await host.book.repeated(`reading task ${task}`, {}, () => readTask(host, task));
  return withoutRecord(host, question, record?.record ?? { task });
}

async function withoutRecord(host: RunHost, question: Question, record: TaskRecord): Promise<Explanation> {
  const known = { ...question, record, calendarOf };
  const told = ([verdict, text]: Fate, run?: RunRecord): Explanation => {
    const whole = `${occurrenceKey(question.instantMs)} ${text}`;
    return { verdict, text: whole, ...(run === undefined ? {} : { run }) };
  };
  const ahead = fateAhead(known);
  if (ahead !== undefined) return told(ahead);
  const passed = await passedOver(host, question, record);
  const behind = fateBehind(known, passed);
  return told(behind, behind[2] ? passed?.run : undefined);
}

const ORPHANED = 'but does not hold its lock any more: another node goes on with it, or it is put on hold';

const BESIDE_STRAY = 'but not on this node: earlier work of the task goes on here without its lock';

const HELD: Readonly<Record<string, string>> = {
  unsettled: 'its work did not settle after its time-out, and no node could go on with it',
};

const EXPIRED: Readonly<Record<string, string>> = {
  startingDeadline: 'older than the startingDeadline',
  missed: 'it could not begin in time, and catchUp passed it over',
};

/** What was passed over and covers the instant: the newest is in the task's record, before it has one of its own. */
async function passedOver(
  host: RunHost,
  { task, instantMs }: Question,
  { summary }: TaskRecord,
): Promise<(PassedTogether & { readonly run: RunRecord | undefined }) | undefined> {
  if (summary !== undefined && summary.fromMs < instantMs && instantMs <= summary.toMs) {
    const run = (await host.book.get({ task, key: summaryKey(summary.fromMs) }))?.run;
    // Where its record is pruned, those of the instants in its range that had one may be gone as well.
    if (run === undefined && summary.told) return undefined;
    return { reason: summary.reason, causes: summary.causes, run };
  }
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const query = {
      task,
      states: ['expired'] as const,
      limit: PAGE,
      ...(cursor === undefined ? {} : { cursor }),
    };
    const found = await host.book.repeated('listing what was passed over', {}, () =>
      host.book.asked((store) => store.list(host.namespace, query)),
    );
    const covering = found.runs.find(({ run }) => {
      const range = run.state === 'expired' ? run.summary : undefined;
      return range !== undefined && range.fromMs < instantMs && instantMs <= range.toMs;
    });
    if (covering?.run.state === 'expired') {
      const { run } = covering;
      return { reason: run.reason, causes: run.summary?.causes, run };
    }
    cursor = found.cursor;
    if (cursor === undefined) return undefined;
  }
  return undefined;
}

function sentence(run: RunRecord): string {
  switch (run.state) {
    case 'pending':
      return `waits to be begun${run.alarmed ? ' and is overdue' : ''}${run.reason === undefined ? '' : ` (${run.reason})`}`;
    case 'running':
      return `runs on ${run.node.label} since ${occurrenceKey(run.startedAtMs)}`;
    case 'completed':
      return `ran on ${run.node.label} (${run.trigger}) and completed at ${occurrenceKey(run.finishedAtMs)}`;
    case 'failed':
      return `failed at ${occurrenceKey(run.finishedAtMs)}: ${run.fault.name}: ${run.fault.message}`;
    case 'on-hold':
      return `waits for a person since ${occurrenceKey(run.sinceMs)} (${HELD[run.reason] ?? run.reason})`;
    case 'expired':
      return `was not run (${EXPIRED[run.reason] ?? run.reason})`;
    case 'skipped':
      return `was skipped: ${run.reason}${run.blockedBy === undefined ? '' : ` with ${run.blockedBy}`}`;
  }
}
