/**
 * Tasks and people's decisions about them. Whatever is decided is one compare-and-set of the task's record, which
 * every node reads before it plans anything; so a pause holds from that moment, on all of them.
 */
import type { RunOutcome } from '../api/run.js';
import type {
  Backfill,
  BackfillOptions,
  Explanation,
  NextOptions,
  TasksApi,
  TaskView,
} from '../api/tasks.js';
import { type Calendar, listUpTo } from '../machine/calendar.js';
import { decidedIn } from '../machine/passed-over.js';
import type { RunRecord } from '../machine/run-record.js';
import { resumed } from '../machine/schedule.js';
import { occurrenceKey, type TaskRecord } from '../machine/task-record.js';
import type { StoredTask } from '../port/run-store.js';
import { closedError } from '../runtime/lock/lock-errors.js';
import { inParts, recordedOf } from '../runtime/run/recorded.js';
import type { RunEngine } from '../runtime/run/run-engine.js';
import type { RunHost } from '../runtime/run/run-host.js';
import { jsonText } from '../runtime/run/run-values.js';
import { calendarOf, storedOffsetMs } from '../runtime/schedule/definition.js';
import { explained } from '../runtime/schedule/explain.js';
import { passOver } from '../runtime/schedule/occurrences.js';
import { readTask, writeTask } from '../runtime/schedule/task-book.js';
import { GuardError, invalidArgument } from '../value/error.js';
import { encodeKey } from '../value/key.js';
import { checkOptions } from '../value/options.js';
import { noteOf } from './run-desk.js';

const MAX_ROUNDS = 16;
const MAX_NEXT = 100;
const MAX_BACKFILL = 1_000;
/** Beyond these a calendar has no answer, and nothing was ever due. */
const FIRST_MS = 0;
const LAST_MS = Date.UTC(3000, 0, 1);

/** A task with the schedule that is in force. */
interface Scheduled {
  readonly name: string;
  readonly calendar: Calendar;
  /** So much later than its instant a start is due. */
  readonly offsetMs: number;
  readonly record: TaskRecord;
}

/** The tasks of one guard, for people. */
export class TaskDesk implements TasksApi {
  constructor(
    private readonly host: RunHost,
    private readonly engine: RunEngine,
  ) {}

  async get(task: string): Promise<TaskView | null> {
    const name = encodeKey('task', task);
    const stored = await this.read(name);
    return stored === null ? null : viewOf(stored.record);
  }

  async pause(task: string, options: { readonly note: string }): Promise<TaskView> {
    const name = encodeKey('task', task);
    const note = noteOf('pause options', options, ['note']);
    return this.changed(name, ({ resumed: _before, ...record }, nowMs) => ({
      ...record,
      paused: { note, sinceMs: record.paused?.sinceMs ?? nowMs },
    }));
  }

  async resume(task: string, options?: { readonly note: string }): Promise<TaskView> {
    const name = encodeKey('task', task);
    const note = options === undefined ? undefined : noteOf('resume options', options, ['note']);
    return this.changed(name, async (record, nowMs) => {
      if (record.paused === undefined) return record;
      const calendar = record.definition && calendarOf(record.definition.text);
      const ended = (recorded: ReadonlySet<number>): TaskRecord =>
        resumed(record, calendar, nowMs, this.offsetMs(record), (at) => recorded.has(at));
      const asked = calendar === undefined ? [] : decidedIn(calendar, record, ended(new Set()));
      const next = ended(await recordedOf(this.host, name, asked));
      return { ...next, resumed: { ...(note === undefined ? {} : { note }), atMs: nowMs } };
    });
  }

  async runNow(task: string, input?: unknown): Promise<RunOutcome<unknown>> {
    const definition = this.host.tasks.get(encodeKey('task', task));
    if (definition === undefined) {
      throw invalidArgument('task', task, 'must be registered here: elsewhere, ask for a run by runs.create');
    }
    const { name, policy } = definition;
    const text = jsonText('input', input);
    const plain = { ...policy, windowMs: undefined };
    const wish = {
      task: name,
      policy: plain,
      input: text,
      trigger: 'manual',
      ...definition.workFor(text),
    } as const;
    return this.engine.call(wish);
  }

  async backfill(task: string, options: BackfillOptions): Promise<Backfill> {
    checkOptions('backfill options', options, ['from', 'to', 'limit', 'preview']);
    const { from, to, limit = 100, preview = false } = (options ?? {}) as Partial<BackfillOptions>;
    const fromMs = timeOf('from', from);
    const toMs = timeOf('to', to);
    if (fromMs > toMs) throw invalidArgument('from', occurrenceKey(fromMs), 'must not be later than to');
    if (typeof preview !== 'boolean') throw invalidArgument('preview', preview, 'must be true or false');
    const max = whole('limit', limit, MAX_BACKFILL);
    const { name, calendar } = await this.scheduled(task);
    const nowMs = await this.host.time.now();
    if (toMs > nowMs) throw invalidArgument('to', occurrenceKey(toMs), 'must not be later than now');
    const instants = listUpTo(calendar, fromMs - 1, toMs, max + 1);
    if (instants.length > max) {
      throw invalidArgument('limit', limit, 'must not be smaller than the number of instants in the window');
    }
    const found = await inParts(instants, (instantMs) =>
      preview ? this.recordOf(name, instantMs) : this.filledIn(name, instantMs, nowMs),
    );
    const missing = instants.filter((_, place) => found[place] === undefined).map((ms) => new Date(ms));
    const present = instants.flatMap((ms, place) => {
      const run = found[place];
      return run === undefined ? [] : [{ at: new Date(ms), run }];
    });
    return { missing, present };
  }

  async next(task: string, options: NextOptions = {}): Promise<readonly Date[]> {
    checkOptions('next options', options, ['count', 'after']);
    const { count = 5, after } = options;
    const max = whole('count', count, MAX_NEXT);
    const afterMs = after === undefined ? undefined : timeOf('after', after);
    const { calendar, record } = await this.scheduled(task);
    const nowMs = await this.host.time.now();
    const fromMs = afterMs ?? nowMs;
    const gone = listUpTo(calendar, fromMs, nowMs, max);
    // Where the store's clock went back, what lies up to the mark is settled, and will not come.
    const comingMs = Math.max(fromMs, nowMs, record.lowWaterMarkMs ?? -Infinity);
    const coming = listUpTo(calendar, comingMs, Infinity, max - gone.length);
    return [...gone, ...coming].map((ms) => new Date(ms));
  }

  async explain(task: string, instant: Date): Promise<Explanation> {
    const instantMs = timeOf('instant', instant);
    const { name, calendar, offsetMs } = await this.scheduled(task);
    const nowMs = await this.host.time.now();
    return explained(this.host, { task: name, instantMs, calendar, offsetMs, nowMs });
  }

  private async recordOf(task: string, instantMs: number): Promise<RunRecord | undefined> {
    return (await this.host.book.get({ task, key: occurrenceKey(instantMs) }))?.run;
  }

  /** Creates the record of an instant; answers the one that was there. */
  private async filledIn(task: string, instantMs: number, nowMs: number): Promise<RunRecord | undefined> {
    const { random, book } = this.host;
    const key = occurrenceKey(instantMs);
    const run = { task, key, id: random.id(), trigger: 'backfill', scheduledForMs: instantMs } as const;
    // Due now, not then: a person asked for it, so no deadline that passed stands in its way.
    const answer = await book.create({ type: 'create', run, availableAtMs: nowMs });
    return answer.created ? undefined : answer.stored.run;
  }

  /** The schedule of a task that is in force; before any node started it, the one that is registered here. */
  private async scheduled(task: string): Promise<Scheduled> {
    const name = encodeKey('task', task);
    const here = this.host.tasks.get(name)?.schedule;
    const record = (await this.read(name))?.record ?? { task: name };
    const { definition } = record;
    const isOwn = definition === undefined || definition.hash === here?.definition.hash;
    const calendar = isOwn ? here?.calendar : calendarOf(definition.text);
    const offsetMs = this.offsetMs(record);
    if (calendar !== undefined) return { name, calendar, offsetMs, record };
    if (definition === undefined) {
      const why = 'none is registered here, and none was ever started';
      throw invalidArgument('task', task, `must have a schedule: ${why}`);
    }
    const message = `the schedule of task ${name} that is in force cannot be read here: ${definition.text}`;
    throw new GuardError('invalid-argument', message);
  }

  /** By how much starts are moved, as the node says that started last; else as it is registered here. */
  private offsetMs({ task, definition }: TaskRecord): number {
    const here = this.host.tasks.get(task)?.schedule?.offsetMs ?? 0;
    return storedOffsetMs(task, definition?.terms?.text) ?? here;
  }

  private async changed(
    task: string,
    change: (record: TaskRecord, nowMs: number) => TaskRecord | Promise<TaskRecord>,
  ): Promise<TaskView> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const stored = await this.read(task);
      if (stored === null && this.host.tasks.get(task) === undefined) {
        throw invalidArgument(
          'task',
          task,
          'must be known: it is not registered here, and was never started',
        );
      }
      // What was passed over before has to have its record before the place is used again.
      if (stored?.record.summary !== undefined) await passOver(this.host, task, stored.record.summary);
      const before = stored?.record ?? { task };
      const next = await change(before, await this.host.time.now());
      if (next === before) return viewOf(before);
      if (!(await writeTask(this.host, stored, next))) continue;
      if (next.summary !== undefined) await passOver(this.host, task, next.summary);
      return viewOf(next);
    }
    throw new GuardError('unavailable', `the record of task ${task} changes all the time: try again`);
  }

  private read(task: string): Promise<StoredTask | null> {
    this.checkOpen();
    return this.host.book.repeated(`reading task ${task}`, {}, () => readTask(this.host, task));
  }

  private checkOpen(): void {
    if (this.host.shutdown.over) throw closedError();
  }
}

function viewOf({ task, definition, lowWaterMarkMs, paused, resumed: ended }: TaskRecord): TaskView {
  return {
    task,
    schedule: definition && { text: definition.text, since: new Date(definition.sinceMs) },
    settledUpTo: lowWaterMarkMs === undefined ? undefined : new Date(lowWaterMarkMs),
    paused: paused && { note: paused.note, since: new Date(paused.sinceMs) },
    resumed: ended?.note === undefined ? undefined : { note: ended.note, at: new Date(ended.atMs) },
  };
}

function timeOf(argument: string, value: unknown): number {
  if (!(value instanceof Date)) throw invalidArgument(argument, value, 'must be a Date');
  const ms = value.getTime();
  if (Number.isNaN(ms))
    throw new GuardError('invalid-argument', `${argument} must be a valid Date, got one that is no time`);
  if (ms >= FIRST_MS && ms <= LAST_MS) return ms;
  throw invalidArgument(argument, value.toISOString(), 'must lie between the years 1970 and 3000');
}

function whole(argument: string, value: number, max: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw invalidArgument(argument, value, `must be a whole number from 1 to ${max}`);
}
