/**
 * Nodes that mean different things by one task. Which instants there are is one thing, and one definition of it is in
 * force; what becomes of an instant before it begins is another: each node goes by its own, and they tell.
 */
import type { TaskOptions } from '@guard/core';
import { range, ScheduleStage } from './stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const TEN = { every: '10s' } as const;

/** Two nodes, the second one later and with other options; then a minute. */
async function older(first: TaskOptions<void>, second: TaskOptions<void>): Promise<void> {
  await stage.node(first);
  await stage.clock.advance(5_000);
  await stage.node(second);
  await stage.clock.advance(60_000);
}

describe('[V30] settings that decide about an instant before it begins', () => {
  test.each<[string, TaskOptions<void>, string, string]>([
    ['catchUp', { catchUp: 'none' }, 'catchUp: latest', 'catchUp: none'],
    [
      'catchUp.all',
      { catchUp: { all: { max: 3, within: '1h' } } },
      'catchUp: latest',
      'catchUp: all, max 3, within 3600000ms',
    ],
    ['jitter', { jitter: '5s' }, 'jitter: 0ms', 'jitter: 5000ms'],
    ['startingDeadline', { startingDeadline: '1m' }, 'startingDeadline: none', 'startingDeadline: 60000ms'],
    ['wait', { wait: '2s' }, 'wait: 0ms', 'wait: 2000ms'],
    ['alarmAfter', { alarmAfter: '1h' }, 'alarmAfter: none', 'alarmAfter: 3600000ms'],
  ])('%s: the node that started first tells the difference, once', async (_, other, own, inForce) => {
    await older(TEN, { ...TEN, ...other });
    expect(stage.told('schedule-conflict')).toEqual([{ node: 1, payload: { task: 't', own, inForce } }]);
    // The instants are the same, so both go on, and nothing is settled as if the schedule had changed.
    expect(stage.instants()).toEqual(range(10, 60, 10));
    expect((await stage.states())['expired']).toBeUndefined();
  });

  test('several differences are one report', async () => {
    await older({ ...TEN, wait: '1s' }, { ...TEN, catchUp: 'none', wait: '1s', alarmAfter: '1h' });
    const payload = {
      task: 't',
      own: 'catchUp: latest; alarmAfter: none',
      inForce: 'catchUp: none; alarmAfter: 3600000ms',
    };
    expect(stage.told('schedule-conflict')).toEqual([{ node: 1, payload }]);
  });

  test('what belongs to the run, and a setting that says the default, are no difference', async () => {
    const run = { timeout: '1m', ttl: '7s', onCrash: 'hold', retry: { attempts: 3 } } as const;
    await older(TEN, { ...TEN, ...run, catchUp: 'latest', wait: 0, every: 10_000 });
    expect(stage.told('schedule-conflict')).toEqual([]);
  });

  test('a program that went back to the settings before tells nothing of those that are gone', async () => {
    const first = await stage.node(TEN);
    await stage.clock.advance(5_000);
    const second = await stage.node({ ...TEN, catchUp: 'none' });
    await stage.clock.advance(5_000);
    for (const { guard } of [first, second]) await stage.clock.runUntil(guard.close());
    const before = stage.told('schedule-conflict').length;
    await stage.node(TEN);
    await stage.node(TEN);
    await stage.clock.advance(60_000);
    expect(stage.told('schedule-conflict').length).toBe(before);
  });
});

describe('[V9] what names the instants', () => {
  test.each<[string, TaskOptions<void>, TaskOptions<void>, string, string]>([
    ['every', TEN, { every: '7s' }, 'every 10000ms', 'every 7000ms'],
    ['cron', { cron: '0 * * * *' }, { cron: '1 * * * *' }, 'cron 0 * * * * in UTC', 'cron 1 * * * * in UTC'],
    [
      'timeZone',
      { cron: '0 3 * * *', timeZone: 'Europe/Berlin' },
      { cron: '0 3 * * *', timeZone: 'Asia/Tokyo' },
      'cron 0 3 * * * in Europe/Berlin',
      'cron 0 3 * * * in Asia/Tokyo',
    ],
  ])('%s: the one that started later schedules, the other tells', async (_, first, second, own, inForce) => {
    await older(first, second);
    expect(stage.told('schedule-conflict')).toEqual([{ node: 1, payload: { task: 't', own, inForce } }]);
    const view = await stage.processes[0]!.guard.tasks.get('t');
    expect(view!.schedule!.text).toBe(inForce);
  });
});
