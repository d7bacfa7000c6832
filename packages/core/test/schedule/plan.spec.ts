/** Which occurrences are due, and what becomes of those that nobody ran in time: record in, plan out. */
import { everyCalendar } from '../../src/machine/calendar.js';
import { type Look, nextDueMs, plan, resumed, type Plan, type Schedule } from '../../src/machine/schedule.js';
import { occurrenceKey, summaryKey, type TaskRecord } from '../../src/machine/task-record.js';

const schedule: Schedule = {
  definition: { hash: 'h', text: 'every 60000ms' },
  calendar: everyCalendar(60_000),
  offsetMs: 0,
  catchUp: { mode: 'latest' },
};
const MINUTE = 60_000;
const NOON = Date.UTC(2026, 0, 1, 12);
const known = (mark = NOON): TaskRecord => ({
  task: 't',
  definition: { ...schedule.definition, sinceMs: 1 },
  lowWaterMarkMs: mark,
});
const look = (nowMs: number, rest: Partial<Look> = {}): Look => ({
  task: 't',
  record: known(),
  nowMs,
  replaces: false,
  recorded: () => false,
  ...rest,
});

/** The next record and the instants that are run, in minutes after noon. */
function written(answer: Plan): { next: TaskRecord; runs: string[] } {
  if (answer.act !== 'write') throw new Error(`it says ${answer.act}`);
  const runs = answer.runs.map(({ instantMs, trigger }) => `${(instantMs - NOON) / MINUTE} ${trigger}`);
  return { next: answer.next, runs };
}

test('first sight: the mark is now, and nothing before it is due', () => {
  const { next, runs } = written(plan(schedule, look(NOON + 30_000, { record: undefined })));
  expect(next).toEqual({
    task: 't',
    definition: { ...schedule.definition, sinceMs: NOON + 30_000 },
    lowWaterMarkMs: NOON + 30_000,
  });
  expect(runs).toEqual([]);
});

test('[B150] before the instant nothing is due, however near it is', () => {
  expect(plan(schedule, look(NOON + MINUTE - 1))).toEqual({ act: 'wait' });
  expect(written(plan(schedule, look(NOON + MINUTE))).runs).toEqual(['1 cron']);
});

test('an instant that was planned is at the mark, and is not due again', () => {
  const { next } = written(plan(schedule, look(NOON + MINUTE)));
  expect(next.lowWaterMarkMs).toBe(NOON + MINUTE);
  expect(next.planned).toEqual([{ instantMs: NOON + MINUTE, trigger: 'cron', plannedAtMs: NOON + MINUTE }]);
  expect(plan(schedule, look(NOON + MINUTE + 40, { record: next }))).toEqual({ act: 'wait' });
});

test('a store whose clock went back plans nothing before its clock passes the mark', () => {
  expect(plan(schedule, look(NOON - 3_600_000))).toEqual({ act: 'wait' });
});

describe('[V5] instants that passed while nobody ran them', () => {
  const late = look(NOON + 5 * MINUTE + 20_000);

  test('latest: the newest one runs, the others are one summary', () => {
    const { next, runs } = written(plan(schedule, late));
    expect(runs).toEqual(['5 catch-up']);
    expect(next.summary).toEqual({ fromMs: NOON, toMs: NOON + 4 * MINUTE, count: 4, reason: 'missed' });
  });

  test('none: nothing runs, and all of them are one summary', () => {
    const { next, runs } = written(plan({ ...schedule, catchUp: { mode: 'none' } }, late));
    expect(runs).toEqual([]);
    expect(next.summary).toMatchObject({ fromMs: NOON, toMs: NOON + 5 * MINUTE, count: 5 });
    expect(next.lowWaterMarkMs).toBe(NOON + 5 * MINUTE);
  });

  test('none: one that is on time runs all the same', () => {
    const onTime = look(NOON + 5 * MINUTE + 4_000);
    const { next, runs } = written(plan({ ...schedule, catchUp: { mode: 'none' } }, onTime));
    expect(runs).toEqual(['5 cron']);
    expect(next.summary).toMatchObject({ toMs: NOON + 4 * MINUTE, count: 4 });
  });

  test('[V6] all: the newest ones up to the limit, and one summary', () => {
    const catchUp = { mode: 'all', max: 10, withinMs: Infinity } as const;
    const { next, runs } = written(plan({ ...schedule, catchUp }, look(NOON + 200 * MINUTE + 30_000)));
    expect(runs).toHaveLength(10);
    expect(runs[0]).toBe('191 catch-up');
    expect(next.summary).toMatchObject({ fromMs: NOON, toMs: NOON + 190 * MINUTE, count: 190 });
  });

  test('all: only those that are not too old', () => {
    const catchUp = { mode: 'all', max: 10, withinMs: 2 * MINUTE } as const;
    expect(written(plan({ ...schedule, catchUp }, late)).runs).toEqual(['4 catch-up', '5 catch-up']);
  });

  test('[V6] all: what it chose is remembered where the locks answer, until something is missed again', () => {
    const all = { ...schedule, catchUp: { mode: 'all', max: 2, withinMs: Infinity } as const };
    const step = (minute: number, record: TaskRecord, locksAnswer = true): TaskRecord =>
      written(plan(all, look(NOON + minute * MINUTE, { record, locksAnswer }))).next;
    const after = (minute: number, record: TaskRecord, locksAnswer = true): unknown => {
      const { fromMs, toMs } = step(minute, record, locksAnswer).chosen ?? {};
      return fromMs === undefined ? undefined : [(fromMs - NOON) / MINUTE, (toMs! - NOON) / MINUTE];
    };
    const record = step(5.5, known());
    expect(after(5.5, known())).toEqual([4, 5]);
    expect(after(5.5, known(), false)).toBeUndefined();
    // What is on time, or chosen while the locks are away, is none of these.
    expect([after(6, record), after(6.05, record, false)]).toEqual([
      [4, 5],
      [4, 5],
    ]);
    expect([after(6.5, record), after(9.5, record)]).toEqual([
      [6, 6],
      [8, 9],
    ]);
    expect(after(9.5, record, false)).toBeUndefined();
  });

  test('[S8] what has a record already is not counted, and where all have one nothing is passed over', () => {
    const catchUp = { mode: 'all', max: 2, withinMs: Infinity } as const;
    const asked = (...minutes: number[]): ReturnType<typeof written> => {
      const recorded = (at: number): boolean => minutes.includes((at - NOON) / MINUTE);
      return written(plan({ ...schedule, catchUp }, { ...late, recorded }));
    };
    expect(asked(4, 5)).toMatchObject({
      runs: ['2 catch-up', '3 catch-up'],
      next: { summary: { count: 1 } },
    });
    const { runs, next } = asked(1, 2, 4);
    expect([runs, next.summary, next.caughtUpFromMs]).toEqual([
      ['3 catch-up', '5 catch-up'],
      undefined,
      undefined,
    ]);
    expect(next.lowWaterMarkMs).toBe(NOON + 5 * MINUTE);
  });

  test('[S8] of a longer series only what is looked at is known to have no record', () => {
    const recorded = (at: number): boolean => at <= NOON + 300 * MINUTE;
    const { next } = written(plan(schedule, look(NOON + 10_000 * MINUTE, { recorded })));
    expect(next.summary).toMatchObject({ count: 700, atLeast: true });
  });

  test('a series that was down for years is not counted to its end', () => {
    const { next } = written(plan(schedule, look(NOON + 10_000 * MINUTE)));
    expect(next.summary).toMatchObject({ count: 1_000, atLeast: true });
  });
});

test('starts that are moved keep the names of their instants', () => {
  const moved = { ...schedule, offsetMs: 7_000 };
  expect(plan(moved, look(NOON + MINUTE + 6_999))).toEqual({ act: 'wait' });
  expect(written(plan(moved, look(NOON + MINUTE + 7_000))).runs).toEqual(['1 cron']);
  expect(nextDueMs(moved, NOON, NOON + 10_000)).toBe(NOON + MINUTE + 7_000);
});

describe('paused', () => {
  const paused = { ...known(), paused: { note: 'why', sinceMs: NOON + 90_000 } };

  test('what is due in a pause is not planned, what was due before it is', () => {
    const { next, runs } = written(plan(schedule, look(NOON + 5 * MINUTE, { record: paused })));
    expect(runs).toEqual(['1 catch-up']);
    expect(next.lowWaterMarkMs).toBe(NOON + MINUTE);
    expect(plan(schedule, look(NOON + 5 * MINUTE, { record: next }))).toEqual({ act: 'wait' });
  });

  test('when it ends, what fell into it is one summary and is not run', () => {
    const after = resumed(
      { ...paused, lowWaterMarkMs: NOON + MINUTE },
      schedule.calendar,
      NOON + 5 * MINUTE + 1,
    );
    expect(after.paused).toBeUndefined();
    expect(after.summary).toMatchObject({ fromMs: NOON + MINUTE, count: 4, reason: 'paused' });
    expect(plan(schedule, look(NOON + 5 * MINUTE + 2, { record: after }))).toEqual({ act: 'wait' });
  });

  test('[S8] what was missed before it is settled by catchUp when somebody plans again, then the pause', () => {
    const sinceMs = NOON + 2.5 * MINUTE;
    const over = resumed(
      { ...known(), paused: { note: 'why', sinceMs } },
      schedule.calendar,
      NOON + 4.5 * MINUTE,
    );
    expect(over).toEqual({ ...known(), gaps: [{ fromMs: sinceMs, toMs: NOON + 4.5 * MINUTE }] });
    const before = written(plan(schedule, look(NOON + 6.5 * MINUTE, { record: over })));
    expect(before.runs).toEqual(['2 catch-up']);
    expect(before.next.summary).toMatchObject({ count: 1, reason: 'missed' });
    const inside = written(plan(schedule, look(NOON + 6.5 * MINUTE, { record: before.next })));
    expect(inside.runs).toEqual([]);
    expect(inside.next.summary).toMatchObject({ fromMs: NOON + 2 * MINUTE, count: 2, reason: 'paused' });
    expect(inside.next.gaps).toBeUndefined();
    const after = written(plan(schedule, look(NOON + 6.5 * MINUTE, { record: inside.next })));
    expect(after.runs).toEqual(['6 catch-up']);
    expect(after.next.summary).toMatchObject({ count: 1, reason: 'missed' });
  });

  test('a pause in which nothing was due leaves no summary', () => {
    expect(resumed(paused, schedule.calendar, NOON + 1_000).summary).toBeUndefined();
  });
});

describe('[V9] a changed expression', () => {
  const other: TaskRecord = { ...known(), definition: { hash: 'old', text: 'every 120000ms', sinceMs: 1 } };
  const now = NOON + 5 * MINUTE;

  test('settles the old one up to now and starts from now: nothing runs in retrospect', () => {
    const storedCalendar = everyCalendar(120_000);
    const answer = plan(schedule, look(now, { record: other, replaces: true, storedCalendar }));
    const { next, runs } = written(answer);
    expect(runs).toEqual([]);
    expect(next.definition).toEqual({ ...schedule.definition, sinceMs: now });
    expect(next.summary).toMatchObject({ fromMs: NOON, toMs: now, count: 2, reason: 'definition-changed' });
    expect(next.lowWaterMarkMs).toBe(now);
  });

  test('stays out of the way where another definition is in force', () => {
    expect(plan(schedule, look(now, { record: other }))).toEqual({ act: 'yield' });
  });

  test('replaces one that nobody can read any more, without a count', () => {
    const { next } = written(plan(schedule, look(now, { record: other, replaces: true })));
    expect(next.summary).toBeUndefined();
    expect(next.lowWaterMarkMs).toBe(now);
  });
});

describe('instants whose records may be missing', () => {
  const planned = { instantMs: NOON, trigger: 'cron' as const, plannedAtMs: NOON };

  test('stay in the record until somebody knows that they have one', () => {
    const record = { ...known(), planned: [planned] };
    const kept = written(plan(schedule, look(NOON + MINUTE, { record })));
    expect(kept.next.planned?.map(({ instantMs }) => instantMs)).toEqual([NOON, NOON + MINUTE]);
    const settled = written(plan(schedule, look(NOON + MINUTE, { record, recorded: (at) => at === NOON })));
    expect(settled.next.planned?.map(({ instantMs }) => instantMs)).toEqual([NOON + MINUTE]);
  });

  test('[V15] leave it after a while where nothing is due: their records may be pruned before the next instant comes', () => {
    const record = { ...known(), planned: [planned] };
    const recorded = (at: number): boolean => at === NOON;
    const rest = { record, recorded, settledUpToMs: NOON };
    const { next, runs } = written(plan(schedule, look(NOON + 1, rest)));
    expect([next, runs]).toEqual([known(), []]);
    expect(plan(schedule, look(NOON + 1, { ...rest, settledUpToMs: NOON - 1 }))).toEqual({ act: 'wait' });
    expect(plan(schedule, look(NOON + 1, { ...rest, recorded: () => false }))).toEqual({ act: 'wait' });
  });

  test('are never more than 500: then no more are planned, and the mark stays', () => {
    const many = Array.from({ length: 500 }, () => planned);
    expect(plan(schedule, look(NOON + MINUTE, { record: { ...known(), planned: many } }))).toEqual({
      act: 'full',
    });
  });
});

test('an occurrence is named by its instant in UTC, a summary by the mark it started from', () => {
  expect(occurrenceKey(NOON)).toBe('2026-01-01T12:00:00.000Z');
  expect(summaryKey(NOON)).toBe('2026-01-01T12:00:00.000Z/passed');
});
