/** Options of schedules: refused before anything is sent, with the argument's name and its value. */
import { GuardError, type TaskOptions } from '@guard/core';
import { range, ScheduleStage, START_MS } from './stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

test.each<[string, unknown, RegExp]>([
  ['both series', { cron: '* * * * *', every: '1m' }, /cron and every contradict/],
  ['a key beside a schedule', { cron: '* * * * *', key: () => 1 }, /cron and key contradict/],
  ['a window beside a schedule', { every: '1m', window: '1h' }, /every and window contradict/],
  ['a zone of an interval', { every: '1m', timeZone: 'Europe/Berlin' }, /every and timeZone/],
  ['a zone of nothing', { timeZone: 'Europe/Berlin' }, /timeZone needs a cron/],
  ['catchUp of nothing', { catchUp: 'none' }, /catchUp needs a schedule/],
  ['alarmAfter of nothing', { alarmAfter: '1h' }, /alarmAfter needs a schedule/],
  ['an interval that is too short', { every: 99 }, /every must be at least 100 ms/],
  ['an expression that is none', { cron: '61 * * * *' }, /cron must have a minute.*"61 \* \* \* \*"/],
  ['too few fields', { cron: '* * * *' }, /five fields.*not 4/],
  ['a day that no month has', { cron: '0 0 32 * *' }, /day of the month from 1 to 31.*not "32"/],
  ['a null for the expression', { cron: null }, /cron must not be null/],
  ['a null for the zone', { cron: '* * * * *', timeZone: null }, /timeZone must not be null/],
  [
    'a deadline of no time',
    { cron: '* * * * *', startingDeadline: 0 },
    /startingDeadline must be at least 1 ms, got 0/,
  ],
  ['a wait that is none', { every: '1m', wait: -1 }, /wait must be at least 0 ms/],
  ['a ttl that is none', { every: '1m', ttl: 'long' }, /ttl must be milliseconds/],
  ['an option that does not exist', { chron: '* * * * *' }, /no option 'chron'/],
  ['options that are none', null, /task options must be an object/],
  ['a zone that is none', { cron: '* * * * *', timeZone: 'Europe/Berln' }, /timeZone.*"Europe\/Berln"/],
  ['a catchUp that is none', { every: '1m', catchUp: 'some' }, /catchUp must be 'none'/],
  ['a catchUp without max', { every: '1m', catchUp: { all: {} } }, /catchUp.all.max/],
  ['a catchUp of too many', { every: '1m', catchUp: { all: { max: 101 } } }, /catchUp.all.max.*100/],
  [
    'an unknown part of catchUp',
    { every: '1m', catchUp: { all: { max: 1, since: 1 } } },
    /has no option 'since'/,
  ],
  ['a jitter that is none', { every: '1m', jitter: -1 }, /jitter/],
])('[B158] %s', (_what, options, message) => {
  const { guard, trips } = stage.process();
  const register = (): unknown => guard.task('t', options as TaskOptions<void>, () => 1);
  expect(register).toThrow(message);
  expect(register).toThrow(/ \(task "t"\)$/);
  expect(register).toThrow(GuardError);
  expect([...trips.locks, ...trips.runs]).toEqual([]);
});

test('[B158] a call with a wrong series is refused before anything is sent, and the message names the task', async () => {
  const { guard, trips } = stage.process();
  for (const [options, words] of [
    [{ cron: '0 24 * * *' }, 'must have an hour from 0 to 23, not "24"'],
    [{ cron: null }, 'cron must not be null'],
    [{ cron: '* * * * *', startingDeadline: 0 }, 'startingDeadline must be at least 1 ms'],
  ] as const) {
    const refusal = guard.run('t', options as unknown as { cron: string }, () => 1);
    await expect(refusal).rejects.toThrow(words);
    await expect(refusal).rejects.toThrow(/ \(task "t"\)$/);
  }
  expect([...trips.locks, ...trips.runs]).toEqual([]);
});

test('jitter moves all starts of a task by the same time on every node, and keeps the names', async () => {
  const options = { every: '10s', jitter: '4s' } as const;
  await stage.node(options);
  await stage.node(options);
  await stage.clock.advance(45_000);
  expect(stage.instants()).toEqual(range(10, 40, 10));
  const late = stage.log.map(({ key, atS }) => atS - (Date.parse(key) - START_MS) / 1_000);
  expect(Math.min(...late)).toBeGreaterThan(0);
  expect(Math.max(...late)).toBeLessThan(4);
  expect(Math.max(...late) - Math.min(...late)).toBeLessThan(0.01);
});

describe('an occurrence by the timer of somebody else', () => {
  test('[V1] is named by the nearest instant: the second node finds it done', async () => {
    const [a, b] = [stage.process(), stage.process()];
    await stage.clock.advance(60_050);
    const options = { cron: '* * * * *' };
    const first = await stage.clock.runUntil(a.guard.run('t', options, () => 'once'));
    await stage.clock.advance(800);
    const second = await stage.clock.runUntil(b.guard.run('t', options, () => 'twice'));
    expect(first).toMatchObject({
      status: 'completed',
      run: { key: '2026-01-01T00:01:00.000Z', trigger: 'cron' },
    });
    expect(second).toMatchObject({ status: 'skipped', reason: 'completed' });
  });

  test('[B150] that comes early waits for its instant', async () => {
    const { guard } = stage.process();
    await stage.clock.advance(59_700);
    let startedMs = 0;
    const run = guard.run('t', { cron: '* * * * *' }, () => (startedMs = stage.clock.now().wallMs));
    await expect(stage.clock.runUntil(run)).resolves.toMatchObject({
      run: { scheduledForMs: START_MS + 60_000 },
    });
    expect(startedMs).toBeGreaterThanOrEqual(START_MS + 60_000);
  });

  test('that has failed is kept as failed', async () => {
    const { guard } = stage.process();
    await stage.clock.advance(60_000);
    const fail = guard.run('t', { every: '1m' }, () => Promise.reject(new Error('boom')));
    await expect(stage.clock.runUntil(fail)).rejects.toThrow('boom');
    const again = guard.run('t', { every: '1m' }, () => 1);
    await expect(stage.clock.runUntil(again)).resolves.toMatchObject({ status: 'skipped', reason: 'failed' });
  });
});
