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
  ['an expression that is none', { cron: '61 * * * *' }, /'61 \* \* \* \*'/],
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
