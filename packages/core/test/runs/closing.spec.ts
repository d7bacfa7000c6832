/** The end of a guard with runs in it, and what keeps a process alive. */
import type { GuardOptions, Run } from '@guard/core';
import { Gate, Stage, sleep, watch } from './stage.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

const SHORT = { sweepInterval: '1s', defaults: { ttl: '2s' }, grace: '10s' } satisfies Partial<GuardOptions>;

describe('[B110] closing while a run works', () => {
  test('a start that is still on its way ends as closed', async () => {
    const { guard, locks } = stage.process(SHORT);
    locks.plan.play({ type: 'delay', requestMs: 500 }, { verbs: ['acquire'], times: 1 });
    const starting = watch(guard.start());
    await stage.clock.advance(100);
    const closing = watch(guard.close());
    await stage.clock.advance(2_000);
    expect([starting.error, closing.settled]).toEqual([expect.objectContaining({ code: 'closed' }), true]);
  });

  test('nothing is registered after it began, and nobody looks at records once it is over', async () => {
    const { guard } = stage.process(SHORT);
    const look = (): Promise<unknown> => guard.runs.list();
    const body = watch(guard.run('t', { key: 1 }, () => sleep(stage.clock, 1_000).then(look)));
    await stage.clock.advance(500);
    const closing = watch(guard.close());
    expect(() => guard.task('late', () => undefined)).toThrow(expect.objectContaining({ code: 'closed' }));
    await stage.clock.advance(1_000);
    expect([body.value, closing.settled]).toEqual([expect.objectContaining({ status: 'completed' }), true]);
    const closed = expect.objectContaining({ code: 'closed' });
    const note = { note: 'too late' };
    for (const late of [
      look(),
      guard.runs.get('t', 1),
      guard.runs.history('t', 1),
      guard.runs.create('t'),
      guard.runs.retry('t', 1, note),
      guard.runs.waive('t', 1, note),
    ]) {
      await expect(late).rejects.toEqual(closed);
    }
  });

  test('it is asked to finish, renewed until it ends, and released at once; nothing new begins', async () => {
    const [a, b] = [stage.process(SHORT), stage.process(SHORT)];
    let asked = false;
    const body = watch(
      a.guard.run('t', { key: 1 }, async (run) => {
        run.stopSignal.addEventListener('abort', () => (asked = true));
        await sleep(stage.clock, 5_000);
        return run.signal.aborted;
      }),
    );
    await stage.clock.advance(1_000);
    const closing = watch(a.guard.close());
    await stage.clock.settle();
    expect(asked).toBe(true);
    await expect(a.guard.run('t', { key: 2 }, () => 'no')).rejects.toMatchObject({ code: 'closed' });
    const next = watch(b.guard.run('t', { key: 1, onDuplicate: 'result', wait: '20s' }, () => 'no'));
    await stage.clock.advance(3_900);
    expect([body.settled, closing.settled, next.settled]).toEqual([false, false, false]);
    await stage.clock.advance(200);
    expect(body.value).toMatchObject({ status: 'completed', value: false });
    expect(closing.settled).toBe(true);
    // Given back, not left to its ttl.
    expect(next.value).toMatchObject({ value: false });
  });

  test('at the end of the grace its signal fires; what rejects is handed back, and its attempt is not counted', async () => {
    const a = stage.process(SHORT);
    a.guard.task('t', { key: () => 1 }, (run) => sleep(stage.clock, 30_000, run.signal));
    const b = stage.process(SHORT);
    b.guard.task('t', { key: () => 1 }, (run) => `${run.attempt} ${run.trigger}`);
    await Promise.all([a.guard.start(), b.guard.start(), stage.clock.settle()]);
    const body = watch(a.guard.run('t', { key: 1 }, (run) => sleep(stage.clock, 30_000, run.signal)));
    await stage.clock.advance(1_000);
    const closing = watch(a.guard.close());
    await stage.clock.advance(9_900);
    expect(body.settled).toBe(false);
    await stage.clock.advance(200);
    expect(body.error).toMatchObject({ code: 'closed', reason: 'grace-over', key: '1' });
    expect(closing.settled).toBe(true);
    expect(await stage.history('t', '1')).toEqual(['started', 'handed-back']);
    await stage.clock.advance(3_000);
    expect(await stage.record('t', '1')).toMatchObject({
      state: 'completed',
      value: '"1 call"',
      takeovers: 0,
    });
  });

  test('work that gives up on stopSignal is handed back at once', async () => {
    const { guard } = stage.process(SHORT);
    const body = watch(guard.run('t', { key: 1 }, (run) => sleep(stage.clock, 30_000, run.stopSignal)));
    await stage.clock.advance(500);
    const closing = watch(guard.close());
    await stage.clock.advance(100);
    expect(body.error).toMatchObject({ code: 'closed', reason: undefined });
    expect(closing.settled).toBe(true);
    expect(await stage.record('t', '1')).toMatchObject({
      state: 'pending',
      attempt: 0,
      reason: 'handed-back',
    });
  });

  test('an error of its own during the grace is a failure like any other', async () => {
    const { guard } = stage.process(SHORT);
    const gate = new Gate();
    const body = watch(guard.run('t', { key: 1 }, () => gate.promise));
    await stage.clock.settle();
    const closing = watch(guard.close());
    gate.fail(new Error('boom'));
    await stage.clock.advance(100);
    expect(body.error).toMatchObject({ message: 'boom' });
    expect(closing.settled).toBe(true);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed' });
  });

  test('a run that nobody could go on with has failed instead of being handed back', async () => {
    const { guard } = stage.process(SHORT);
    const body = watch(guard.run('t', (run) => sleep(stage.clock, 30_000, run.stopSignal)));
    await stage.clock.settle();
    const closing = watch(guard.close());
    await stage.clock.advance(100);
    expect([body.settled, closing.settled]).toEqual([true, true]);
    expect(await stage.records()).toMatchObject([{ state: 'failed', fault: { code: 'closed' } }]);
  });

  test('[L3] work that never settles does not hold the end up, and its lease runs out by itself', async () => {
    const [a, b] = [stage.process(SHORT), stage.process(SHORT)];
    const body = watch(a.guard.run('t', { key: 1 }, () => new Promise(() => undefined)));
    await stage.clock.advance(500);
    const closing = watch(a.guard.close());
    await stage.clock.advance(13_000);
    expect(closing.settled).toBe(true);
    expect(body.error).toMatchObject({ code: 'closed' });
    expect(a.trips.locks).not.toContain('release');
    await stage.clock.advance(2_000);
    const next = watch(b.guard.run('t', { key: 1 }, (run: Run) => run.trigger));
    await stage.clock.advance(100);
    expect(next.value).toMatchObject({ value: 'takeover' });
  });

  test('a run that waits for its lock, or for its next attempt, ends at once', async () => {
    const [a, b] = [stage.process(SHORT), stage.process(SHORT)];
    const gate = new Gate();
    const other = watch(b.guard.run('t', () => gate.promise));
    await stage.clock.settle();
    const waiting = watch(a.guard.run('t', { wait: '1m' }, () => 'no'));
    const retry = { attempts: 2, backoff: '1m' } as const;
    const pausing = watch(
      a.guard.run('u', { key: 1, retry }, () => {
        throw new Error('boom');
      }),
    );
    await stage.clock.advance(100);
    const closing = watch(a.guard.close());
    await stage.clock.advance(100);
    expect(waiting.error).toMatchObject({ code: 'closed' });
    expect(pausing.error).toMatchObject({ message: 'boom' });
    expect(closing.settled).toBe(true);
    expect(await stage.record('u', '1')).toMatchObject({ state: 'pending', attempt: 1 });
    gate.open();
    await stage.clock.settle();
    expect(other.settled).toBe(true);
  });
});

describe('[L5] what keeps the process alive', () => {
  const isAlive = (): boolean => stage.clock.pendingTimers.ref > 0;

  test('[B106] running work does, whatever it waits for; a started node does not', async () => {
    const { guard } = stage.process(SHORT);
    guard.task('t', () => 1);
    await Promise.all([guard.start(), stage.clock.settle()]);
    await stage.clock.advance(100);
    expect(isAlive()).toBe(false);
    const gate = new Gate();
    const body = watch(guard.run('u', () => gate.promise));
    await stage.clock.settle();
    expect(isAlive()).toBe(true);
    gate.open();
    await stage.clock.advance(10);
    expect(body.settled).toBe(true);
    expect(isAlive()).toBe(false);
  });

  test('[B106] a call that waits does, and so does the pause before the next attempt', async () => {
    const { guard } = stage.process(SHORT);
    let attempts = 0;
    const retry = { attempts: 2, backoff: '30s' } as const;
    const outcome = watch(
      guard.run('t', { key: 1, retry }, () => {
        if ((attempts += 1) === 1) throw new Error('boom');
      }),
    );
    for (let waited = 0; waited < 29; waited += 1) {
      await stage.clock.advance(1_000);
      expect(isAlive()).toBe(true);
    }
    await stage.clock.advance(1_100);
    expect(outcome.value).toMatchObject({ status: 'completed' });
    expect(isAlive()).toBe(false);
  });

  test('a closed guard leaves no timer behind', async () => {
    const { guard } = stage.process(SHORT);
    guard.task('t', () => 1);
    await Promise.all([guard.start(), stage.clock.settle()]);
    await guard.run('t', { key: 1 }, (run) => run.progress(1));
    const closing = guard.close();
    await stage.clock.advance(100);
    await closing;
    // The last look at the clocks, which finds no lock any more.
    await stage.clock.advance(500);
    expect(stage.clock.pendingTimers.total).toBe(0);
  });
});
