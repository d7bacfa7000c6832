/** Callers' keys beside the keys that Guard gives: instants, windows, and what was passed over. None hides another. */
import { GuardError } from '@guard/core';
import { range, ScheduleStage, START_MS } from './stage.js';
import { Gate, watch } from '../runs/stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const TEN = { every: '10s' } as const;
const AT_TEN = '2026-01-01T00:00:10.000Z';
const nothing = (): void => undefined;

describe('[S7] [S8] a key that looks like one of Guard', () => {
  const refused = {
    code: 'invalid-argument',
    message: expect.stringMatching(/^\[invalid-argument\] key must not be/),
  };

  test.each([`${AT_TEN}/passed`, `${AT_TEN}/60000ms`])(
    '%s is refused before anything is asked',
    async (key) => {
      const { guard, trips } = stage.process();
      const task = guard.task('plain', { window: '1m' }, nothing);
      await expect(guard.run('plain', { key }, nothing)).rejects.toMatchObject(refused);
      await expect(task.run(undefined, { key })).rejects.toMatchObject(refused);
      await expect(guard.runs.create('plain', { key })).rejects.toMatchObject(refused);
      expect(trips).toEqual({ locks: [], runs: [] });
    },
  );

  test('an instant is refused where the task is known to have a schedule', async () => {
    const { guard, trips } = stage.process();
    const task = guard.task<string>('t', TEN, nothing);
    for (const call of [
      () => guard.run('t', { key: AT_TEN }, nothing),
      () => task.run('', { key: AT_TEN }),
      () => guard.runs.create('t', { key: AT_TEN }),
    ])
      await expect(call()).rejects.toMatchObject(refused);
    expect(trips).toEqual({ locks: [], runs: [] });
  });

  test('an instant is a good key of a task without one, and so is whatever only looks like it', async () => {
    const { guard } = stage.process();
    guard.task('t', TEN, nothing);
    const first = await stage.clock.runUntil(guard.run('plain', { key: AT_TEN }, nothing));
    const again = await stage.clock.runUntil(guard.run('plain', { key: AT_TEN }, nothing));
    expect([first.status, again.status]).toEqual(['completed', 'skipped']);
    for (const key of [
      '2026-01-01',
      '2026-13-01T00:00:00.000Z',
      '2026-01-01T00:00:10Z',
      `x/${AT_TEN}/passed`,
    ]) {
      const outcome = await stage.clock.runUntil(guard.run('t', { key }, nothing));
      expect(outcome.status).toBe('completed');
    }
  });
});

describe('[S7] [S8] an instant that somebody took as a key without knowing the schedule', () => {
  test('is told of, and its run is never taken over by the occurrence while it goes on', async () => {
    const gate = new Gate();
    const stranger = stage.process();
    const call = watch(stranger.guard.run('t', { key: AT_TEN, ttl: '6s' }, () => gate.promise));
    await stage.clock.advance(1_000);
    await stage.node(TEN);
    await stage.clock.advance(44_000);
    expect(stage.instants()).toEqual([20, 30, 40]);
    const [told, ...more] = stage.told('error');
    expect(more).toEqual([]);
    const { error } = told!.payload as { readonly error: unknown };
    expect(GuardError.is(error, 'run-skipped') && error.key).toBe(AT_TEN);
    gate.open();
    await stage.clock.advance(1_000);
    expect(call.value).toMatchObject({ status: 'completed' });
    expect(await stage.history('t', AT_TEN)).toEqual(['started', 'completed']);
  });

  test('nor does such a call take over the occurrence', async () => {
    const gate = new Gate();
    await stage.node(TEN, { work: () => gate.promise });
    await stage.clock.advance(10_500);
    const stranger = stage.process();
    let ran = 0;
    const call = stranger.guard.run('t', { key: AT_TEN }, () => (ran += 1));
    const outcome = await stage.clock.runUntil(call);
    expect(outcome).toMatchObject({ status: 'skipped', reason: 'running' });
    gate.open();
    await stage.clock.advance(100);
    expect(await stage.history('t', AT_TEN)).toEqual(['started', 'completed']);
    expect(ran).toBe(0);
  });
});

test('instants, a window and plain keys of one task lie side by side', async () => {
  const { guard } = stage.process();
  await stage.node(TEN);
  await stage.clock.advance(30_500);
  const windowed = await stage.clock.runUntil(guard.run('t', { window: '1m' }, nothing));
  const keyed = await stage.clock.runUntil(guard.run('t', { key: '10' }, nothing));
  expect([windowed.status, keyed.status]).toEqual(['completed', 'completed']);
  expect(stage.instants()).toEqual(range(10, 30, 10));
  const { verdict } = await guard.tasks.explain('t', new Date(START_MS + 20_000));
  expect(verdict).toBe('completed');
});
