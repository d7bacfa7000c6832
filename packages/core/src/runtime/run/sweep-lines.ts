/**
 * Occurrences that wait for their turn: those of one task run one after another, oldest first, on however many nodes
 * sweep. So a sweep goes through them as one line for each task, and only the head of a line can be overdue.
 */
import type { RunRecord, StoredRun } from '../../machine/run-record.js';
import { occurrenceKey, type TaskRecord } from '../../machine/task-record.js';
import type { Schedule } from '../../machine/schedule.js';
import { type Foreseen, foreseen, isUnbegun, passedInLine } from '../../machine/waiting.js';
import type { Clock } from '../../port/clock.js';
import { recordedOf } from './recorded.js';
import { claimOf, sweepWaitMs } from './run-claim.js';
import type { RunEngine } from './run-engine.js';
import { emit, type RunHost } from './run-host.js';
import type { TaskDefinition } from './run-task.js';

const PAGE = 100;
/** Planned instants without a record that are looked for, the newest ones. */
const MAX_PLANNED = 100;
/** A plan that is older has its records: whoever looks at the task makes those that are lacking. */
const YOUNG_SWEEPS = 3;

/** Runs of one task, oldest first. */
export interface Line {
  readonly line: readonly StoredRun[];
  readonly task: TaskDefinition;
  /** Keys of those that this node made. */
  readonly mine?: ReadonlySet<string>;
  /** More of them wait than there are here. */
  readonly isCut?: boolean;
}

/**
 * Goes through a line. Where a run does not get its lock none behind it is tried: a later sweep goes on with them.
 * Never rejects: faults are events.
 */
export async function goThrough(host: RunHost, engine: RunEngine, asked: Line): Promise<void> {
  const { task, mine } = asked;
  const line = await passedOver(host, asked).catch((error: unknown) => {
    emit(host, 'error', { error, during: `what waits of ${task.name}` });
    return [];
  });
  for (const [index, stored] of line.entries()) {
    if (host.stopSignal.aborted) return;
    // Newer ones may come while it waits for its lock.
    const isPassed = async (): Promise<boolean> =>
      (await judged(host, task, line.slice(index))).includes(stored);
    if (!(await engine.adopt(stored, task, { mine: mine?.has(stored.run.key) === true, isPassed }))) return;
  }
}

/** The line with what this node made, and with what waits of the task since before. */
export async function withWaiting(
  host: RunHost,
  task: TaskDefinition,
  made: readonly StoredRun[],
): Promise<Line> {
  const { book, namespace, sweepIntervalMs: overdueMs } = host;
  const query = { tasks: [task.name], overdueMs, limit: PAGE };
  const mine = new Set(made.map(({ run }) => run.key));
  const { runs, cursor } = await book.asked((store) => store.due(namespace, query));
  const others = runs.filter((stored) => isWaiting(stored.run) && !mine.has(stored.run.key));
  return { line: sorted([...others, ...made]), task, mine, isCut: cursor !== undefined };
}

/**
 * What is left of a line when `catchUp` has judged it: the rest has expired. That is done under the lock of the task,
 * so it says nothing while nobody can have that lock, and whoever waits for its turn in the lock's queue has had it.
 */
async function passedOver(host: RunHost, { line, task, isCut }: Line): Promise<readonly StoredRun[]> {
  const [first] = await judged(host, task, line);
  if (first === undefined) return line;
  const { book, stopSignal } = host;
  const { policy } = task;
  const outcome = await claimOf(host, { run: first.run, policy, waitMs: sweepWaitMs(host, policy) });
  if (outcome.status !== 'granted') return [];
  const { lock } = outcome;
  try {
    // Its turn may have been long in coming.
    const passed = await judged(host, task, line);
    const move = { type: 'expire', reason: 'missed' } as const;
    for (const stored of passed) {
      if (stopSignal.aborted || !lock.isHeld()) return [];
      const moved = await book.move(stored, move);
      if (moved.status === 'moved') emit(host, 'run-expired', { run: moved.stored.run });
    }
    // Which of them are the newest is known only where all that wait are here.
    return isCut ? [] : line.filter((stored) => !passed.includes(stored));
  } finally {
    await lock.release();
  }
}

/** Those of a line that `catchUp` passes over at this moment. */
async function judged(
  host: RunHost,
  task: TaskDefinition,
  line: readonly StoredRun[],
): Promise<readonly StoredRun[]> {
  const { schedule } = task;
  if (schedule === undefined || !line.some(({ run }) => isUnbegun(run))) return [];
  const { book, namespace, time, lockOutages } = host;
  const nowMs = await time.now();
  const record = (await book.asked((store) => store.task(namespace, task.name)))?.record;
  if (record === undefined) return [];
  const { catchUp } = schedule;
  const { caughtUpFromMs, chosen, runs } = await foreseenHere(host, schedule, record, nowMs);
  const planned = catchUp.mode === 'all' ? await notBegun(host, record, line) : [];
  const ahead = [...planned, ...runs.map(({ instantMs }) => instantMs)];
  const turns = chosen !== undefined && lockOutages.hasAnsweredSince(chosen.atMs, nowMs) ? { chosen } : {};
  return passedInLine(line, { catchUp, nowMs, caughtUpFromMs, ahead, ...turns });
}

/** What the next plan would come to, and not by what somebody asked for before it. */
async function foreseenHere(
  host: RunHost,
  schedule: Schedule,
  record: TaskRecord,
  nowMs: number,
): Promise<Foreseen> {
  const first = foreseen(schedule, record, nowMs);
  const asked = await recordedOf(
    host,
    record.task,
    first.runs.map(({ instantMs }) => instantMs),
  );
  return asked.size === 0 ? first : foreseen(schedule, record, nowMs, (at) => asked.has(at));
}

/** Instants of plans of a moment ago that are not in the line: their records are on their way. */
async function notBegun(host: RunHost, record: TaskRecord, line: readonly StoredRun[]): Promise<number[]> {
  const { book, sweepIntervalMs, time } = host;
  const fromMs = time.estimate() - YOUNG_SWEEPS * sweepIntervalMs;
  const inLine = new Set(line.map(({ run }) => run.scheduledForMs));
  const young = (record.planned ?? []).filter(
    (one) => one.plannedAtMs > fromMs && !inLine.has(one.instantMs),
  );
  const found: number[] = [];
  for (const { instantMs } of young.slice(-MAX_PLANNED)) {
    const stored = await book.get({ task: record.task, key: occurrenceKey(instantMs) });
    if (stored === null || isUnbegun(stored.run)) found.push(instantMs);
  }
  return found;
}

/** Whether a run waits for its turn in the line of its task. */
function isWaiting({ state, scheduledForMs, keyed }: RunRecord): boolean {
  return state === 'pending' && scheduledForMs !== undefined && keyed !== true;
}

function sorted(line: readonly StoredRun[]): readonly StoredRun[] {
  return [...line].sort((a, b) => (a.run.scheduledForMs ?? 0) - (b.run.scheduledForMs ?? 0));
}

/** The lines of one sweep. */
export class Lines {
  private readonly waiting = new Map<string, StoredRun[]>();
  private readonly busy = new Set<string>();
  /** More runs wait than one sweep looks at. */
  isCut = false;

  /** Somebody works on this run. */
  runs(run: RunRecord): void {
    if (run.keyed !== true) this.busy.add(run.task);
  }

  /** Puts a run into its line; `false`: it needs none. */
  takes(stored: StoredRun): boolean {
    const { run } = stored;
    if (!isWaiting(run)) return false;
    const line = this.waiting.get(run.task);
    if (line === undefined) this.waiting.set(run.task, [stored]);
    else line.push(stored);
    return true;
  }

  /** Whether a run of this task holds the lock that its line waits for. */
  isBusy(task: string): boolean {
    return this.busy.has(task);
  }

  has(task: string): boolean {
    return this.waiting.has(task);
  }

  /** Each line, oldest instant first. */
  sorted(): readonly (readonly [task: string, line: readonly StoredRun[]])[] {
    return [...this.waiting].map(([task, line]) => [task, sorted(line)] as const);
  }
}

/** Which run is the head of a line, and since when this node has seen it there with nothing in its way. */
export class Heads {
  private readonly seen = new Map<string, { readonly key: string; readonly sinceMonoMs: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly patienceMs: number,
  ) {}

  isStuck({ task, key }: RunRecord, isBusy: boolean): boolean {
    const { monoMs } = this.clock.now();
    const before = this.seen.get(task);
    if (isBusy) this.seen.delete(task);
    else if (before?.key !== key) this.seen.set(task, { key, sinceMonoMs: monoMs });
    else return monoMs - before.sinceMonoMs >= this.patienceMs;
    return false;
  }

  /** Forgets tasks whose line is empty. */
  keep(lines: Lines): void {
    for (const task of this.seen.keys()) if (!lines.has(task)) this.seen.delete(task);
  }
}
