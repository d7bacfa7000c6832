/** What a newcomer hands to `guard.tasks`, to the options of a schedule and to `start`: refused by name, before any traffic. */
import type { Guard, TaskOptions } from '@guard/core';
import { type Process, Stage } from '../runs/stage.js';

let stage: Stage;
let node: Process;
beforeEach(() => {
  stage = new Stage();
  node = stage.process();
  node.guard.task('t', { every: '1h' }, () => undefined);
});
afterEach(() => stage.close());

const NOW = new Date(Date.UTC(2026, 0, 1));
const EMPTY = {};
const nothing: readonly unknown[] = [null, NaN, -1, '', EMPTY, [], () => 1, 5n, Symbol('s'), true, NOW];

type Call = (guard: Guard, value: never) => unknown;
const CALLS: Readonly<Record<string, readonly [Call, readonly unknown[]]>> = {
  'the note of a pause': [({ tasks }, note) => tasks.pause('t', { note }), nothing],
  'the options of a pause': [({ tasks }, options) => tasks.pause('t', options), nothing],
  'the options of a resume': [({ tasks }, options) => tasks.resume('t', options), nothing],
  'the task of runNow': [({ tasks }, task) => tasks.runNow(task), nothing],
  'the options of a backfill': [({ tasks }, options) => tasks.backfill('t', options), nothing],
  'the beginning of a backfill': [
    ({ tasks }, from) => tasks.backfill('t', { from, to: NOW }),
    [...nothing.slice(0, -1), new Date(NaN), new Date(8.64e15), '2026-01-01'],
  ],
  'the limit of a backfill': [
    ({ tasks }, limit) => tasks.backfill('t', { from: NOW, to: NOW, limit }),
    [...nothing, 0, 1.5, 1_001],
  ],
  'whether a backfill only tells': [
    ({ tasks }, preview) => tasks.backfill('t', { from: NOW, to: NOW, preview }),
    nothing.filter((value) => value !== true),
  ],
  'the options of next': [
    ({ tasks }, options) => tasks.next('t', options),
    [...nothing.filter((value) => value !== EMPTY), new Map(), Promise.resolve()],
  ],
  'the count of next': [({ tasks }, count) => tasks.next('t', { count }), [...nothing, 0, 1.5, 101]],
  'the instant to explain': [({ tasks }, at) => tasks.explain('t', at), [...nothing.slice(0, -1), 0, '2026']],
  'the tasks of start': [
    (guard, tasks) => guard.start({ tasks }),
    [...nothing.filter((value) => !Array.isArray(value)), 't', ['t', 7], ['nobody'], new Set(['t'])],
  ],
  'whether schedules keep the process alive': [
    (guard, ref) => guard.start({ ref }),
    nothing.filter((value) => value !== true),
  ],
};

test.each(Object.entries(CALLS))('[B158] %s', async (_what, [call, values]) => {
  for (const value of values) {
    const refusal = Promise.resolve().then(() => call(node.guard, value as never));
    await expect(refusal).rejects.toMatchObject({ code: 'invalid-argument' });
  }
  expect(node.trips).toEqual({ locks: [], runs: [] });
});

test.each([
  ...(['cron', 'every', 'timeZone', 'catchUp', 'jitter', 'alarmAfter'] as const),
  'startingDeadline',
])('[B158] the option %s of a task: the message names it, or the cron that it needs', (option) => {
  const beside = option === 'cron' || option === 'every' ? {} : { cron: '0 0 * * *' };
  for (const value of nothing) {
    const options = { ...beside, [option]: value } as TaskOptions<void>;
    const register = (): unknown => node.guard.task('wrong', options, () => undefined);
    expect(register).toThrow(expect.objectContaining({ code: 'invalid-argument' }) as Error);
    expect(register).toThrow(option);
  }
  expect(node.trips).toEqual({ locks: [], runs: [] });
});
