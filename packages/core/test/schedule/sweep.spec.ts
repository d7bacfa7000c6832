/** Occurrences and the sweep of other nodes: who declares whom dead, and what becomes of a result that comes too late. */
import type { Clock, Run } from '@guard/core';
import type { VirtualClock } from '@guard/testing';
import { range, ScheduleStage } from './stage.js';
import { Gate, type Process, sleep } from '../runs/stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const MINUTES = { cron: '* * * * *' };
const FIRST = '2026-01-01T00:01:00.000Z';

/** The process in which the first run of all began. */
const beginner = (): Process => stage.processes[stage.log[0]!.node === 'node-1' ? 0 : 1]!;

describe('[V4] a sweep that takes a run for dead at the very moment at which it succeeds', () => {
  // The lease of six seconds ends while the first node cannot reach the locks; the sweep comes every two seconds.
  test.each(range(4_000, 10_000, 500))('has one outcome when its work ends after %d ms', async (workMs) => {
    const settled: string[] = [];
    const work = async (run: Run): Promise<string> => {
      const node = stage.log.at(-1)!.node;
      await sleep(stage.clock, run.trigger === 'cron' ? workMs : 100);
      settled.push(node);
      return node;
    };
    for (let node = 0; node < 2; node += 1) await stage.node(MINUTES, { work });
    await stage.clock.advance(60_100);
    beginner().locks.cut();
    await stage.clock.advance(15_000);
    beginner().locks.heal();
    await stage.clock.advance(5_000);
    const record = await stage.record('t', FIRST);
    expect(record).toMatchObject({ state: 'completed' });
    expect(settled).toContain(JSON.parse((record as { value: string }).value));
    const history = await stage.history('t', FIRST);
    expect(history.filter((what) => what === 'completed')).toHaveLength(1);
    expect(stage.told('run-completed')).toHaveLength(1);
    // The node that lost goes on: it takes part in the next occurrence like everybody else.
    stage.processes.filter((one) => one !== beginner()).forEach((one) => one.kill());
    await stage.clock.advance(70_000);
    expect(await stage.record('t', '2026-01-01T00:02:00.000Z')).toMatchObject({ state: 'completed' });
  });
});

describe('[V12] a node that stood still and wakes first', () => {
  test('makes contact before it sweeps, and takes nothing from nodes that are well', async () => {
    const clock = stoppable();
    const gate = new Gate();
    const busy = await stage.node(MINUTES, { work: () => gate.promise });
    await stage.clock.advance(60_100);
    const sleeper = await stage.node(MINUTES, { guard: { clock } });
    await stage.clock.advance(5_000);
    clock.stop();
    await stage.clock.advance(18_500);
    const before = sleeper.trips.runs.length;
    clock.goOn();
    await stage.clock.advance(100);
    const first = sleeper.trips.runs.slice(before).filter((trip) => trip === 'now' || trip === 'due');
    expect(first[0]).toBe('now');
    await stage.clock.advance(15_000);
    expect(await stage.record('t', FIRST)).toMatchObject({ state: 'running', takeovers: 0 });
    gate.open();
    await stage.clock.advance(1_000);
    expect(stage.instants()).toEqual([60]);
    expect(await stage.states()).toEqual({ completed: [60] });
    expect(busy.names()).not.toContain('run-refused');
  });
});

test('[V27] [S7] a result that comes after the sweep has failed the run: it stays failed, the late node is told, and the alarm is one', async () => {
  const gate = new Gate<string>();
  const options = { ...MINUTES, onCrash: 'fail' } as const;
  for (let node = 0; node < 2; node += 1) await stage.node(options, { work: () => gate.promise });
  await stage.clock.advance(60_100);
  const late = beginner();
  late.locks.cut();
  late.state.cut();
  await stage.clock.advance(12_000);
  const failed = await stage.record('t', FIRST);
  expect(failed).toMatchObject({ state: 'failed' });
  late.locks.heal();
  late.state.heal();
  gate.open('too late');
  await stage.clock.advance(10_000);
  expect(await stage.record('t', FIRST)).toEqual(failed);
  expect(late.names()).toContain('run-refused');
  expect(stage.told('run-completed')).toEqual([]);
  expect(stage.told('alarm')).toHaveLength(1);
});

/** The stage's clock for one process, whose timers stand still while it does. */
function stoppable(): Clock & { stop(): void; goOn(): void } {
  const base: VirtualClock = stage.clock;
  const waiting: (() => void)[] = [];
  let stopped = false;
  const gated = (run: () => void) => (): void => {
    if (stopped) waiting.push(run);
    else run();
  };
  return {
    now: () => base.now(),
    setTimer: (run, delayMs, options) => base.setTimer(gated(run), delayMs, options),
    yield: (run) => base.yield(gated(run)),
    stop: () => (stopped = true),
    goOn: () => {
      stopped = false;
      for (const run of waiting.splice(0)) run();
    },
  };
}

test('[S8] a node that goes on with as many runs as it may tells of what waits all the same, and goes on with it later', async () => {
  const node = await stage.node(MINUTES, { start: false });
  const gate = new Gate();
  node.guard.task('long', { key: (key: number) => key }, () => gate.promise);
  node.guard.task('asked', () => undefined);
  await stage.start(node);
  await stage.clock.advance(61_000);
  const { runs, tasks } = node.guard;
  for (const key of range(1, 66)) await stage.clock.runUntil(runs.create('long', { key }));
  await stage.clock.advance(10_000);
  await stage.clock.runUntil(runs.create('asked', { key: 'Ada' }));
  const first = new Date('2026-01-01T00:00:00.000Z');
  await stage.clock.runUntil(tasks.backfill('t', { from: first, to: first }));
  await stage.clock.advance(20_000);
  const overdue = stage.told('alarm').map(({ payload }) => (payload as { run: { task: string } }).run.task);
  expect(overdue.sort()).toEqual(['asked', 'long', 'long', 't']);
  expect(await stage.record('asked', 'Ada')).toMatchObject({ state: 'pending' });
  gate.open();
  await stage.clock.advance(10_000);
  expect(await stage.record('asked', 'Ada')).toMatchObject({ state: 'completed' });
  expect(await stage.record('t', first.toISOString())).toMatchObject({ state: 'completed' });
});
