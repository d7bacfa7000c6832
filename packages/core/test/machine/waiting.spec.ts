/** What waits with a record is judged together with what is due and has none: pure, case by case. */
import { everyCalendar } from '../../src/machine/calendar.js';
import type { RunRecord, StoredRun } from '../../src/machine/run-record.js';
import type { CatchUpPolicy, Schedule } from '../../src/machine/schedule.js';
import { causeOf, foreseen, passedInLine, type Waited } from '../../src/machine/waiting.js';

const MINUTE = 60_000;
const ALL: CatchUpPolicy = { mode: 'all', max: 2, withinMs: Infinity };

function waiting(minute: number, change: Partial<RunRecord> = {}): StoredRun {
  const atMs = minute * MINUTE;
  const times = { createdAtMs: atMs, updatedAtMs: atMs, availableAtMs: atMs, scheduledForMs: atMs };
  const base = {
    task: 't',
    key: String(minute),
    id: 'x',
    attempt: 0,
    takeovers: 0,
    trigger: 'cron',
  } as const;
  return { run: { ...base, ...times, state: 'pending', ...change } as RunRecord, version: '1' };
}

function scheduleOf(catchUp: CatchUpPolicy): Schedule {
  return { definition: { hash: 'h', text: 'every' }, calendar: everyCalendar(MINUTE), offsetMs: 0, catchUp };
}

/** Minutes of a line that are passed over when the mark is at `mark`, at minute `now`. */
function passed(catchUp: CatchUpPolicy, line: readonly StoredRun[], mark: number, now: number): string[] {
  const record = {
    task: 't',
    definition: { hash: 'h', text: 'every', sinceMs: 0 },
    lowWaterMarkMs: mark * MINUTE,
  };
  const nowMs = now * MINUTE;
  const { caughtUpFromMs, runs } = foreseen(scheduleOf(catchUp), record, nowMs);
  const ahead = runs.map(({ instantMs }) => instantMs);
  return passedInLine(line, { catchUp, nowMs, caughtUpFromMs, ahead }).map(({ run }) => run.key);
}

test.each<[CatchUpPolicy['mode'], CatchUpPolicy, number, string[]]>([
  ['latest', { mode: 'latest' }, 2.5, []],
  ['latest', { mode: 'latest' }, 3, ['2']],
  ['latest', { mode: 'latest' }, 60, ['2']],
  ['all', ALL, 3, []],
  ['all', ALL, 4, ['2']],
  ['none', { mode: 'none' }, 2.05, []],
  ['none', { mode: 'none' }, 2.5, ['2']],
])('[V5] %s (%j), at minute %d: one that waits since minute 2', (_, catchUp, now, expected) => {
  expect(passed(catchUp, [waiting(2)], 2, now)).toEqual(expected);
});

test('[V5] all: the newest of what waits and of what is due, whichever of them were planned', () => {
  const lines = [[waiting(1)], [waiting(1), waiting(2)], [waiting(1), waiting(2), waiting(3)]];
  const left = lines.map(
    (line) => line.length - passed(ALL, line, line.length, 3.5).length + (3 - line.length),
  );
  expect(left).toEqual([2, 2, 2]);
});

test('[V5] all: what has a record of its own before it is planned takes no place of what waits', () => {
  const schedule = scheduleOf(ALL);
  const record = {
    task: 't',
    definition: { ...schedule.definition, sinceMs: 0 },
    lowWaterMarkMs: 2 * MINUTE,
  };
  const instants = (recorded: readonly number[]): number[] =>
    foreseen(schedule, record, 5.5 * MINUTE, (at) => recorded.includes(at / MINUTE)).runs.map(
      ({ instantMs }) => instantMs / MINUTE,
    );
  expect([instants([]), instants([5]), instants([3, 4, 5])]).toEqual([[4, 5], [3, 4], []]);
});

test('[V6] all: newer ones take no turn of what was chosen, but of each other', () => {
  const line = [1, 2, 3, 4, 5, 6].map((minute) => waiting(minute));
  const waited = { catchUp: ALL, nowMs: 6.5 * MINUTE };
  const chosen = { fromMs: 2 * MINUTE, toMs: 3 * MINUTE, atMs: 3.5 * MINUTE };
  const keys = (more: Partial<Waited>): string[] =>
    passedInLine(line, { ...waited, ...more }).map(({ run }) => run.key);
  expect(keys({})).toEqual(['1', '2', '3', '4']);
  expect(keys({ chosen })).toEqual(['1', '4']);
  expect(keys({ chosen, catchUp: { mode: 'latest' } })).toEqual(['1', '2', '3', '4', '5']);
  expect(keys({ chosen, caughtUpFromMs: 3 * MINUTE })).toEqual(['1', '2', '4']);
});

test('what once began, and what a person asked for, is never passed over', () => {
  const line = [waiting(1, { attempt: 1 }), waiting(2, { trigger: 'backfill' }), waiting(3)];
  expect(passed({ mode: 'latest' }, line, 3, 60)).toEqual(['3']);
});

test('an occurrence that begins late is a catch-up, whoever planned it in time', () => {
  const causes = [2, 2.05, 2.2].map((now) => causeOf(waiting(2).run, now * MINUTE));
  expect(causes).toEqual(['cron', 'cron', 'catch-up']);
  expect(causeOf(waiting(2, { attempt: 1 }).run, 60 * MINUTE)).toBe('retry');
  expect(causeOf(waiting(2, { trigger: 'backfill' }).run, 60 * MINUTE)).toBe('backfill');
});
