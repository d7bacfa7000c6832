/**
 * `explain` where it is easy to be wrong: each answer in the situation next to the one it belongs to. What did not run
 * is told with its true cause, by the schedule of its time, and as of when its start is due.
 */
import type { Process } from '../runs/stage.js';
import { MINUTES, saying, ScheduleStage, shifted, START_MS } from './stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

/** Records that are gone soon. */
/** Hours of sweeps every two seconds would show no more. */
const RARELY = { guard: { sweepInterval: '10s' } } as const;
const guard = { ...RARELY.guard, retain: { runs: '1m', keys: '2m' } } as const;

const pause = (node: Process): Promise<unknown> =>
  stage.clock.runUntil(node.guard.tasks.pause('t', { note: 'Ada' }));
const resume = (node: Process): Promise<unknown> => stage.clock.runUntil(node.guard.tasks.resume('t'));

test('[S8] what a shorter jitter makes due at once is told as that, and what was due before it by its own cause', async () => {
  const node = await stage.node({ ...MINUTES, jitter: '20m' }, RARELY);
  await stage.clock.advance(3_600_000);
  const offsetS = Math.floor(stage.log[0]!.atS - 60);
  expect(offsetS).toBeGreaterThan(180);
  await stage.clock.runUntil(node.guard.close());
  // Clearly behind the instant: a node knows the time of the store to a millisecond only.
  await stage.clock.advance(181_000);
  const other = await stage.node(MINUTES);
  const nowS = 3_780;
  const firstS = 60 * Math.ceil((nowS - offsetS) / 60);
  expect(await stage.why(other, firstS)).toEqual(['missed', saying('a longer jitter had moved its start')]);
  expect(await stage.why(other, 3_660)).toEqual(['missed', saying('a longer jitter had moved its start')]);
  expect(await stage.why(other, firstS - 60)).toEqual([
    'missed',
    saying('no node that knows the task was up'),
  ]);
  expect((await stage.explained(other, nowS)).verdict).toBe('completed');
});

describe('[S8] a pause takes what is due in it, which jitter moves', () => {
  /** All starts of `t` are moved by so much. */
  async function moved(): Promise<{ readonly node: Process; readonly offsetS: number }> {
    const node = await stage.node({ every: '10m', jitter: '10m' }, RARELY);
    await stage.clock.advance(1_200_000);
    const { key, atS } = stage.log[0]!;
    return { node, offsetS: Math.floor(atS - (Date.parse(key) - START_MS) / 1_000) };
  }

  test('an instant from before it whose start falls into it is not run', async () => {
    const { node, offsetS } = await moved();
    await stage.clock.advance((offsetS + 30) * 1_000 - 600_000 + 600_000 - 60_000);
    const runs = stage.log.length;
    await pause(node);
    expect(await stage.why(node, 1_800)).toEqual([
      'upcoming',
      saying('has not come yet, and does not run while'),
    ]);
    // The next instant comes, and its start, both in the pause.
    await stage.clock.advance(1_200_000);
    expect(await stage.why(node, 1_800)).toEqual(['paused', saying('is not run: paused since')]);
    expect(stage.log).toHaveLength(runs);
    await resume(node);
    expect(await stage.why(node, 1_800)).toEqual(['was-paused', saying('the task was paused')]);
  });

  test.each([
    ['that ends before the start is due', 1, 'completed'],
    ['that ends after it', 2, 'was-paused'],
  ] as const)('a pause between an instant and its start %s', async (_what, ends, verdict) => {
    const { node, offsetS } = await moved();
    const instantS = 600 * (Math.floor((stage.clock.now().wallMs - START_MS) / 600_000) + 1);
    const until = (seconds: number): Promise<void> =>
      stage.clock.advance(START_MS + seconds * 1_000 - stage.clock.now().wallMs);
    await until(instantS + offsetS / 4);
    await pause(node);
    expect(await stage.why(node, instantS)).toEqual([
      'upcoming',
      saying('moved by jitter, and does not run while'),
    ]);
    await until(instantS + offsetS / 2);
    if (ends === 1) await resume(node);
    expect((await stage.explained(node, instantS)).verdict).toBe('upcoming');
    await until(instantS + offsetS + 2);
    if (ends === 2) {
      expect(await stage.why(node, instantS)).toEqual(['paused', saying('(Ada)')]);
      await resume(node);
    }
    await until(instantS + offsetS + 5);
    expect((await stage.explained(node, instantS)).verdict).toBe(verdict);
    await until(instantS + 600 + offsetS + 5);
    expect((await stage.explained(node, instantS + 600)).verdict).toBe('completed');
  });

  test('one who does not know the task is told the same', async () => {
    const { node, offsetS } = await moved();
    const stranger = stage.process();
    const instantS = 600 * (Math.floor((stage.clock.now().wallMs - START_MS) / 600_000) + 1);
    await stage.clock.advance(START_MS + instantS * 1_000 + 1_000 - stage.clock.now().wallMs);
    await pause(stranger);
    for (const who of [node, stranger])
      expect(await stage.why(who, instantS)).toEqual(['upcoming', saying('moved by jitter')]);
    await stage.clock.advance(offsetS * 1_000);
    await resume(stranger);
    for (const who of [node, stranger])
      expect(await stage.why(who, instantS)).toEqual(['was-paused', saying('the task was paused')]);
  });
});

describe('a task that was never started', () => {
  test('has no instant that is due, and none that was', async () => {
    const node = await stage.node(MINUTES, { start: false });
    await stage.clock.advance(90_000);
    expect(await stage.clock.runUntil(node.guard.tasks.get('t'))).toBeNull();
    expect(await stage.why(node, 60)).toEqual(['before-first-sight', saying('and none has so far')]);
    expect(await stage.why(node, (Date.UTC(1999, 0, 1) - START_MS) / 1_000)).toEqual([
      'before-first-sight',
      saying('1999-01-01T00:00:00.000Z came before any node followed this schedule'),
    ]);
    expect(await stage.why(node, 120)).toEqual(['upcoming', saying('no node follows the schedule so far')]);
    expect(await stage.why(node, 61)).toEqual(['not-scheduled', saying('is not in the schedule')]);
  });

  test('also not while it is paused, nor for the time before it was started', async () => {
    const node = await stage.node(MINUTES, { start: false });
    await pause(node);
    await stage.clock.advance(90_000);
    expect((await stage.explained(node, 60)).verdict).toBe('before-first-sight');
    await resume(node);
    expect((await stage.explained(node, 60)).verdict).toBe('before-first-sight');
    await stage.start(node);
    await stage.clock.advance(60_000);
    expect((await stage.explained(node, 60)).verdict).toBe('before-first-sight');
    expect((await stage.explained(node, 120)).verdict).toBe('completed');
  });
});

describe('an instant is told by the schedule that was in force when it came', () => {
  test('after a deployment and its rollback', async () => {
    const old = await stage.node(MINUTES);
    await stage.clock.advance(150_000);
    const deployed = await stage.node({ cron: '*/2 * * * *' });
    await stage.clock.advance(200_000);
    expect(stage.instants()).toEqual([60, 120, 240]);
    // In the deployment: what ran before, what did not run, and what the new one has.
    expect((await stage.explained(old, 60)).verdict).toBe('completed');
    expect(await stage.why(old, 300)).toEqual(['not-scheduled', saying('is not in the schedule')]);
    await stage.clock.runUntil(deployed.guard.close());
    await stage.clock.advance(200_000);
    expect((await stage.explained(old, 480)).verdict).toBe('completed');
    expect(await stage.why(old, 300)).toEqual([
      'definition-changed',
      saying('another schedule was in force then (cron */2 * * * * in UTC)'),
    ]);
    expect((await stage.explained(old, 240)).verdict).toBe('completed');
    expect((await stage.explained(old, 301)).verdict).toBe('not-scheduled');
    expect((await stage.explained(old, 0)).verdict).toBe('before-first-sight');
  });

  test('with a record that is pruned it was settled, although the new schedule does not have it', async () => {
    const old = await stage.node({ every: '1m' }, { guard });
    await stage.clock.advance(150_000);
    await stage.clock.runUntil(old.guard.close());
    const node = await stage.node({ every: '7m' }, { guard });
    await stage.clock.advance(30 * 60_000);
    expect(await stage.why(node, 120)).toEqual(['forgotten', saying('its record is gone')]);
    // Of the new schedule alone, and of a time when the old one was in force.
    expect((await stage.explained(node, 420)).verdict).not.toBe('not-scheduled');
    expect((await stage.explained(node, 150)).verdict).toBe('not-scheduled');
    expect((await stage.explained(node, 0)).verdict).toBe('before-first-sight');
  });

  test('more changes than are remembered: of the oldest it is said that their schedule is not known', async () => {
    let node = await stage.node({ every: '1m' }, { guard });
    await stage.clock.advance(70_000);
    for (let minutes = 2; minutes < 14; minutes += 1) {
      await stage.clock.runUntil(node.guard.close());
      node = await stage.node({ every: `${minutes}m` }, { guard });
      await stage.clock.advance(30_000);
    }
    await stage.clock.advance(30 * 60_000);
    expect(await stage.why(node, 60)).toEqual([
      'forgotten',
      saying('an earlier schedule, which is not known'),
    ]);
    expect((await stage.explained(node, 0)).verdict).toBe('not-scheduled');
  });

  test('within a range that was missed, what is no instant is none', async () => {
    const first = await stage.node(MINUTES);
    await stage.clock.advance(61_000);
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(300_000);
    const node = await stage.node(MINUTES);
    expect((await stage.explained(node, 180)).verdict).toBe('missed');
    expect((await stage.explained(node, 181)).verdict).toBe('not-scheduled');
  });
});

describe('[S8] what was missed is told with its true cause', () => {
  const NONE = { ...MINUTES, catchUp: 'none' } as const;

  test('no node was up, and the run that says so is handed out', async () => {
    const first = await stage.node(NONE);
    await stage.clock.advance(61_000);
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(200_000);
    const node = await stage.node(NONE);
    await stage.clock.advance(1_000);
    const { verdict, text, run } = await stage.explained(node, 180);
    expect([verdict, text]).toEqual(['missed', saying('no node that knows the task was up and able')]);
    expect(run).toMatchObject({ state: 'expired', reason: 'missed', summary: { count: 3 } });
  });

  test('the lock backend was away', async () => {
    const node = await stage.node(MINUTES, RARELY);
    await stage.clock.advance(60_500);
    node.locks.down();
    await stage.clock.advance(300_000);
    node.locks.heal();
    await stage.clock.advance(60_000);
    expect(await stage.why(node, 240)).toEqual(['missed', saying('because the lock backend was away')]);
  });

  test.each(['down', 'cut'] as const)('the run store was away (%s)', async (how) => {
    const node = await stage.node(NONE);
    await stage.clock.advance(60_500);
    node.state[how]();
    await stage.clock.advance(400_000);
    node.state.heal();
    await stage.clock.advance(60_000);
    for (const seconds of [120, 240, 420])
      expect(await stage.why(node, seconds)).toEqual(['missed', saying('could not reach the run store')]);
  });

  test('the node had stopped itself because of its clock', async () => {
    const wrong = shifted(stage.clock, 0);
    const node = await stage.node(NONE, { guard: { clock: wrong } });
    await stage.clock.advance(60_500);
    wrong.offMs = 400_000;
    await stage.clock.advance(200_000);
    wrong.offMs = 0;
    await stage.clock.advance(70_000);
    for (const seconds of [120, 240])
      expect(await stage.why(node, seconds)).toEqual(['missed', saying('because its clock was too far')]);
  });

  test('the node was blocked, or asleep', async () => {
    const node = await stage.node(NONE);
    await stage.clock.advance(60_500);
    stage.clock.block(200_000);
    await stage.clock.advance(10_000);
    expect(await stage.why(node, 180)).toEqual(['missed', saying('came too late: it was blocked, asleep')]);
    stage.clock.suspend(300_000);
    await stage.clock.advance(60_000);
    expect(await stage.why(node, 420)).toEqual(['missed', saying('came too late: it was blocked, asleep')]);
  });

  test('of several in a row each instant has its own', async () => {
    const wrong = shifted(stage.clock, 0);
    const node = await stage.node(NONE, { guard: { clock: wrong } });
    await stage.clock.advance(60_500);
    wrong.offMs = 400_000;
    await stage.clock.advance(130_000);
    node.state.down();
    wrong.offMs = 0;
    await stage.clock.advance(120_000);
    await stage.clock.runUntil(node.guard.close());
    node.state.heal();
    await stage.clock.advance(120_000);
    const next = await stage.node(NONE);
    await stage.clock.advance(1_000);
    // The node that was up is gone, and what it knew with it.
    for (const seconds of [120, 240, 360])
      expect(await stage.why(next, seconds)).toEqual([
        'missed',
        saying('no node that knows the task was up and able'),
      ]);
  });

  test('of several in a row on one node each instant has its own', async () => {
    const wrong = shifted(stage.clock, 0);
    const node = await stage.node(NONE, { guard: { clock: wrong } });
    await stage.clock.advance(60_500);
    wrong.offMs = 400_000;
    await stage.clock.advance(130_000);
    node.state.down();
    await stage.clock.advance(120_000);
    wrong.offMs = 0;
    node.state.heal();
    await stage.clock.advance(70_000);
    expect(await stage.why(node, 120)).toEqual(['missed', saying('because its clock')]);
    expect(await stage.why(node, 180)).toEqual(['missed', saying('because its clock')]);
    expect(await stage.why(node, 240)).toEqual(['missed', saying('could not reach the run store')]);
    expect(await stage.why(node, 300)).toEqual(['missed', saying('could not reach the run store')]);
  });

  test('it is known before it has a record: a node that died between the two has said it', async () => {
    const first = await stage.node(NONE);
    await stage.clock.advance(61_000);
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(200_000);
    const { record, version } = (await stage.store.task('default', 't'))!;
    const toMs = START_MS + 240_000;
    const causes = [{ cause: 'no-node', sinceMs: 0 }] as const;
    const summary = { fromMs: record.lowWaterMarkMs!, toMs, count: 3, reason: 'missed', causes } as const;
    const next = { ...record, lowWaterMarkMs: toMs, summary, writeId: 'dying' };
    expect(await stage.store.putTask('default', version, next)).not.toBeNull();
    const { verdict, text, run } = await stage.explained(stage.process(), 120);
    expect([verdict, text]).toEqual(['missed', saying('no node that knows the task was up and able')]);
    expect(run).toBeUndefined();
  });
});
