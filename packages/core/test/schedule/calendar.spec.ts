/** Cron expressions and intervals as series of instants: clock changes, month ends, leap days, bad expressions. */
import { GuardError } from '@guard/core';
import { SeededRandom } from '@guard/testing';
import {
  type Calendar,
  countUpTo,
  everyCalendar,
  isInstant,
  latestUpTo,
  listUpTo,
  nearest,
} from '../../src/machine/calendar.js';
import { cronCalendar } from '../../src/runtime/schedule/cron.js';

const iso = (ms: number | undefined): string =>
  ms === undefined ? 'none' : new Date(ms).toISOString().replace(':00.000Z', 'Z');

/** The next `count` instants of an expression, as a person reads them. */
function nextRuns(cron: string, zone: string, from: string, count: number): string[] {
  return listUpTo(cronCalendar(cron, zone), Date.parse(from), Infinity, count).map(iso);
}

describe('[V24] daylight saving: each instant at most once, and none lost in silence', () => {
  test('[B142] an hour that does not exist runs when the clock has jumped', () => {
    expect(nextRuns('30 2 * * *', 'Europe/Berlin', '2026-03-28T02:00:00Z', 3)).toEqual([
      '2026-03-29T01:00Z',
      '2026-03-30T00:30Z',
      '2026-03-31T00:30Z',
    ]);
    expect(nextRuns('30 2 * * *', 'America/New_York', '2026-03-08T06:30:00Z', 2)).toEqual([
      '2026-03-08T07:00Z',
      '2026-03-09T06:30Z',
    ]);
    expect(nextRuns('0 1 30 3 *', 'Europe/Lisbon', '2025-03-01T00:00:00Z', 2)).toEqual([
      '2025-03-30T01:00Z',
      '2026-03-30T00:00Z',
    ]);
  });

  test('two times in the hour that does not exist are one instant', () => {
    expect(nextRuns('0,30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 2)).toEqual([
      '2026-03-29T01:00Z',
      '2026-03-30T00:00Z',
    ]);
  });

  test('an hour that comes twice counts once for an expression that names it', () => {
    expect(nextRuns('30 2,14 * * *', 'Europe/Berlin', '2026-10-24T14:00:00Z', 3)).toEqual([
      '2026-10-25T00:30Z',
      '2026-10-25T13:30Z',
      '2026-10-26T01:30Z',
    ]);
  });

  test('[B144] an expression that follows real time loses no hour and repeats none', () => {
    expect(nextRuns('0,30 * * * *', 'Europe/Berlin', '2026-10-24T23:50:00Z', 5)).toEqual([
      '2026-10-25T00:00Z',
      '2026-10-25T00:30Z',
      '2026-10-25T01:00Z',
      '2026-10-25T01:30Z',
      '2026-10-25T02:00Z',
    ]);
    const minutes = cronCalendar('* * * * *', 'Europe/London');
    const from = Date.parse('2026-10-25T00:49:30Z');
    expect(countUpTo(minutes, from, Date.parse('2026-10-25T02:09:30Z'))).toEqual({
      count: 80,
      atLeast: false,
    });
  });

  test('a step within one hour is left out where that hour does not exist, and follows it where it comes twice', () => {
    expect(nextRuns('*/30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 1)).toEqual([
      '2026-03-30T00:00Z',
    ]);
    expect(nextRuns('*/30 2 * * *', 'Europe/Berlin', '2026-10-24T14:00:00Z', 4)).toEqual([
      '2026-10-25T00:00Z',
      '2026-10-25T00:30Z',
      '2026-10-25T01:00Z',
      '2026-10-25T01:30Z',
    ]);
  });

  test('a zone that changes by half an hour', () => {
    expect(nextRuns('15 2 * * *', 'Australia/Lord_Howe', '2026-10-02T12:00:00Z', 3)).toEqual([
      '2026-10-02T15:45Z',
      '2026-10-03T15:30Z',
      '2026-10-04T15:15Z',
    ]);
    expect(nextRuns('45 1 * * *', 'Australia/Lord_Howe', '2026-04-03T16:00:00Z', 2)).toEqual([
      '2026-04-04T14:45Z',
      '2026-04-05T15:15Z',
    ]);
  });

  test('[B145] a midnight that does not exist', () => {
    expect(nextRuns('0 0 * * *', 'Africa/Cairo', '2026-04-23T12:00:00Z', 2)).toEqual([
      '2026-04-23T22:00Z',
      '2026-04-24T21:00Z',
    ]);
    const even = nextRuns('0 */2 * * *', 'Africa/Cairo', '2026-04-23T20:30:00Z', 3);
    expect(even).toEqual(['2026-04-23T23:00Z', '2026-04-24T01:00Z', '2026-04-24T03:00Z']);
  });

  test('[B147] only the zone of the schedule counts, and without one it is UTC', () => {
    expect(nextRuns('30 1 * * *', 'Asia/Tokyo', '2026-03-28T12:00:00Z', 2)).toEqual([
      '2026-03-28T16:30Z',
      '2026-03-29T16:30Z',
    ]);
    expect(cronCalendar('0 2 * * *').next(Date.UTC(2026, 0, 1))).toBe(Date.UTC(2026, 0, 1, 2));
  });
});

describe('[B142] [B144] the rows of the guide on clock changes, in Berlin: 02:00 to 03:00 is missing, or comes twice', () => {
  // Winter time is UTC + 1, summer time UTC + 2: 01:00 UTC is the moment of both changes.
  const SPRING = ['2026-03-28T23:30:00Z', '2026-03-29T02:30:00Z'] as const;
  const AUTUMN = ['2026-10-24T23:30:00Z', '2026-10-25T02:30:00Z'] as const;

  test.each([
    // Times that are named: the missing ones when the clock has jumped, a repeated one at its first time.
    ['30 2 * * *', ['01:00'], ['00:30']],
    ['0 30 2 * * *', ['01:00'], ['00:30']],
    ['0,30 2 * * *', ['01:00'], ['00:00', '00:30']],
    ['0 2,3 * * *', ['01:00'], ['00:00', '02:00']],
    ['0 0-23 * * *', ['00:00', '01:00', '02:00'], ['00:00', '02:00']],
    ['30 0-23 * * *', ['23:30', '00:30', '01:00', '01:30', '02:30'], ['23:30', '00:30', '02:30']],
    // A * or a step, in every hour: real time.
    ['0,30 * * * *', ['23:30', '00:00', '00:30', '01:00', '01:30', '02:00', '02:30'], undefined],
    ['*/30 * * * *', ['23:30', '00:00', '00:30', '01:00', '01:30', '02:00', '02:30'], undefined],
    ['0 * * * *', ['00:00', '01:00', '02:00'], ['00:00', '01:00', '02:00']],
    // A * or a step, in some hours: what a clock on the wall shows.
    ['*/30 2 * * *', [], ['00:00', '00:30', '01:00', '01:30']],
    ['30 0-4/2 * * *', ['23:30', '02:30'], ['00:30', '01:30']],
    ['0 */2 * * *', ['02:00'], ['00:00', '01:00']],
    ['*/30 0-4 * * *', ['23:30', '00:00', '00:30', '01:00', '01:30', '02:00', '02:30'], undefined],
  ])('%s', (cron, spring, autumn) => {
    const within = ([from, to]: readonly [string, string]): string[] =>
      listUpTo(cronCalendar(cron, 'Europe/Berlin'), Date.parse(from) - 1, Date.parse(to), 100).map((ms) =>
        iso(ms).slice(11, 16),
      );
    expect(within(SPRING)).toEqual(spring);
    expect(within(AUTUMN)).toEqual(autumn ?? spring);
  });
});

describe('month ends and leap days', () => {
  test('a day that a month does not have is left out, and the last day is L', () => {
    expect(nextRuns('0 0 31 * *', 'UTC', '2026-01-01T00:00:00Z', 3).map((at) => at.slice(0, 10))).toEqual([
      '2026-01-31',
      '2026-03-31',
      '2026-05-31',
    ]);
    expect(nextRuns('0 0 L * *', 'UTC', '2026-01-31T00:00:00Z', 1)).toEqual(['2026-02-28T00:00Z']);
    expect(nextRuns('0 0 29 2 *', 'UTC', '2026-01-01T00:00:00Z', 2).map((at) => at.slice(0, 10))).toEqual([
      '2028-02-29',
      '2032-02-29',
    ]);
  });

  test('the nearest weekday, and the second Friday of a month', () => {
    expect(nextRuns('0 0 15W * *', 'UTC', '2026-02-01T00:00:00Z', 1)).toEqual(['2026-02-16T00:00Z']);
    expect(nextRuns('0 0 * * 5#2', 'UTC', '2026-02-01T00:00:00Z', 1)).toEqual(['2026-02-13T00:00Z']);
  });

  test('where a day of the month and a day of the week are given, either does', () => {
    expect(nextRuns('0 0 13 * 5', 'UTC', '2026-01-08T00:00:00Z', 2).map((at) => at.slice(0, 10))).toEqual([
      '2026-01-09',
      '2026-01-13',
    ]);
  });
});

describe('[B158] a wrong expression or zone is refused before anything else happens', () => {
  test.each(['', ' ', '61 * * * *', '* * * *', '* * * * * * *', '*/0 * * * *', '5-1 * * * *', 'a * * * *'])(
    'expression %j',
    (cron) => expect(() => cronCalendar(cron)).toThrow(GuardError),
  );

  test.each(['0 0 30 2 *', '@reboot', '2026-01-01T00:00:00', 42, null])('what is no series: %j', (cron) =>
    expect(() => cronCalendar(cron)).toThrow(GuardError),
  );

  test.each(['Europe/Berln', '', null, 'GMT+25', '+02:00'])('zone %j', (zone) => {
    expect(() => cronCalendar('0 2 * * *', zone)).toThrow(/timeZone/);
  });

  test('an expression without end', () => {
    expect(() => cronCalendar('* '.repeat(200))).toThrow(GuardError);
  });

  test.each([
    ['* * * *', 'must have five fields (minute, hour, day of the month, month, day of the week)'],
    ['* * * *', 'not 4'],
    ['* * * * * * *', 'or six with the second before them, not 7'],
    ['', 'not 0'],
    ['2026-01-01T00:00:00', 'not 1'],
    ['@reboot', 'there are @yearly'],
    ['61 * * * *', 'must have a minute from 0 to 59, not "61"'],
    ['60 0 0 1 1 *', 'must have a second from 0 to 59, not "60"'],
    ['0 24 * * *', 'must have an hour from 0 to 23, not "24"'],
    ['0 0 32 * *', 'must have a day of the month from 1 to 31'],
    ['0 0 0 * *', 'not "0"'],
    ['0 0 L5 * *', 'must have values of the day of the month from 1 to 31, L, LW'],
    ['0 0 32W * *', 'not "32W"'],
    ['0 0 1,LW * *', 'must have LW alone as its day of the month'],
    ['0 0 1 13 *', 'must have a month from 1 to 12 and JAN to DEC, not "13"'],
    ['0 0 1 JUNE *', 'must have values of the month from 1 to 12 and JAN to DEC, not "JUNE"'],
    ['0 0 * * 8', 'must have a day of the week from 0 to 7, SUN to SAT'],
    ['0 0 * * MONDAY', 'not "MONDAY"'],
    ['0 0 * * 5#6', 'one with # and 1 to 5 (5#2)'],
    ['5-1 * * * *', 'must have ranges of the minute that go up, not "5-1"'],
    ['1-99 * * * *', 'must have values of the minute from 0 to 59, not "1-99"'],
    ['*/0 * * * *', 'must have a step from 1 to 60 in its minute, not "*/0"'],
    ['* */25 * * *', 'must have a step from 1 to 24 in its hour, not "*/25"'],
    ['5/10 * * * *', 'must have * or a range before the step of its minute'],
    ['1,,2 * * * *', 'must have values of the minute from 0 to 59, not ""'],
    ['a * * * *', 'must have values of the minute from 0 to 59, not "a"'],
    ['0 0 30 2 *', 'must fit some date'],
  ])('the message for %j names the field, its value and what is allowed: %s', (cron, words) => {
    expect(() => cronCalendar(cron)).toThrow(words);
    expect(() => cronCalendar(cron)).toThrow(`got ${JSON.stringify(cron)}`);
  });

  test('[B158] whatever is refused, the message names a field or the number of fields', () => {
    const random = new SeededRandom();
    const bits = [
      '*',
      '0',
      '7',
      '31',
      '60',
      '1-5',
      '5-1',
      '*/5',
      '/',
      '5/2',
      'L',
      '15W',
      'MON',
      'FEB',
      '5#2',
      '1,2',
      '+1',
      'x',
    ];
    for (let round = 0; round < 400; round += 1) {
      const count = random.integer(4, 7);
      const cron = Array.from({ length: count }, () => bits[random.integer(0, bits.length - 1)]!).join(' ');
      try {
        expect(cronCalendar(cron).next(0)).toBeGreaterThan(0);
      } catch (error) {
        const { message } = error as Error;
        if (!/^\[invalid-argument\] cron must (have|fit some date)/.test(message))
          throw new Error(`seed ${random.seed}: ${message}`, { cause: error });
      }
    }
    expect(random.seed).toBeGreaterThanOrEqual(0);
  });

  test.each(['0 0 * * 7', '0 0 13 * 5', '@hourly', '*/5 * * * * *', '0 0 29 2 *'])(
    '%j is accepted',
    (cron) => {
      expect(cronCalendar(cron).next(Date.UTC(2026, 2, 28))).toBeGreaterThan(0);
    },
  );

  test('0 and 7 are both Sunday', () => {
    const from = '2026-01-01T00:00:00Z';
    expect(nextRuns('0 0 * * 7', 'UTC', from, 3)).toEqual(nextRuns('0 0 * * 0', 'UTC', from, 3));
  });
});

describe('questions to a calendar', () => {
  test('[B141] an interval has the same instants on every node, counted from the epoch', () => {
    const every = everyCalendar(2_000);
    expect(every.next(0)).toBe(2_000);
    expect(every.next(1_999)).toBe(2_000);
    expect(every.next(2_000)).toBe(4_000);
  });

  test('the last instant is found wherever it lies', () => {
    const yearly = cronCalendar('0 0 29 2 *');
    expect(iso(latestUpTo(yearly, Date.UTC(2027, 5, 1)))).toBe('2024-02-29T00:00Z');
    expect(latestUpTo(yearly, Date.UTC(2027, 5, 1), Date.UTC(2024, 1, 29))).toBeUndefined();
    expect(latestUpTo(everyCalendar(10), 1_005)).toBe(1_000);
    expect(latestUpTo(everyCalendar(1), 1_000_000, 0)).toBe(1_000_000);
  });

  test('the last instant agrees with the next ones, at random moments', () => {
    const random = new SeededRandom();
    const calendars: Calendar[] = [
      cronCalendar('*/7 9-17 * * 1-5', 'America/New_York'),
      cronCalendar('30 2 * * *', 'Europe/Berlin'),
      everyCalendar(90_000),
    ];
    for (let round = 0; round < 30; round += 1) {
      const calendar = calendars[round % calendars.length]!;
      const at = Date.UTC(2026, 0, 1) + random.integer(0, 366 * 86_400_000);
      const last = latestUpTo(calendar, at);
      if (
        last === undefined ||
        last > at ||
        (calendar.next(last) ?? Infinity) <= at ||
        !isInstant(calendar, last)
      )
        throw new Error(`seed ${random.seed}: ${iso(last)} is not the last instant up to ${iso(at)}`);
    }
    expect(random.seed).toBeGreaterThanOrEqual(0);
  });

  test('counting stops at a limit and says so', () => {
    expect(countUpTo(everyCalendar(1), 0, 1_000)).toEqual({ count: 1_000, atLeast: false });
    expect(countUpTo(everyCalendar(1), 0, 1_001)).toEqual({ count: 1_000, atLeast: true });
  });

  test.each([
    ['late by a little', 10_040, 10_000],
    ['late by a lot', 10_740, 10_000],
    ['early by less than a quarter of the period', 9_760, 10_000],
    ['early by more than that', 9_740, 9_000],
  ])('a timer that is %s stands for the right second', (_what, nowMs, instant) => {
    expect(nearest(everyCalendar(1_000), nowMs)).toBe(instant);
  });

  test('a daily timer is at most half a second early', () => {
    const daily = cronCalendar('0 3 * * *');
    const three = Date.UTC(2026, 0, 2, 3);
    expect(nearest(daily, three - 500)).toBe(three);
    expect(nearest(daily, three - 501)).toBe(three - 86_400_000);
  });
});
