/** Attempts that fail, crash, stall or lose their lock: what is recorded, and who goes on. */
import { GuardError, type Run, type RunOptions } from '@guard/core';
import { Gate, Stage, sleep, watch } from './stage.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

const boom = new Error('boom');
const fails = (): never => {
  throw boom;
};

describe('an attempt that rejects', () => {
  test('fails the run; the error is thrown as it is, and one alarm is raised', async () => {
    const process = stage.process();
    await expect(process.guard.run('t', { key: 1 }, fails)).rejects.toBe(boom);
    expect(await stage.record('t', '1')).toMatchObject({
      state: 'failed',
      fault: { message: 'boom' },
      attempt: 1,
    });
    expect(process.names()).toEqual(['run-started', 'run-failed', 'alarm failed']);
  });

  test('the next call with the key runs again, or keeps the failure', async () => {
    const { guard } = stage.process();
    await expect(guard.run('t', { key: 1, input: 'a' }, fails)).rejects.toBe(boom);
    await expect(guard.run('t', { key: 1, ifFailed: 'keep' }, fails)).resolves.toMatchObject({
      reason: 'failed',
    });
    const rerun = await guard.run('t', { key: 1, input: 'b' }, (run) => run.attempt);
    expect(rerun).toMatchObject({ value: 1, run: { input: '"b"', lastFault: { message: 'boom' } } });
    expect(await stage.history('t', '1')).toEqual(['started', 'failed', 'rerun', 'started', 'completed']);
  });

  test('is tried again after the backoff, under the same lock where the pause is short', async () => {
    const { guard, trips, names } = stage.process();
    const attempts: [number, string, bigint][] = [];
    const retry = { attempts: 3, backoff: { initial: '1s', factor: 3, jitter: 0 } } as const;
    const outcome = watch(
      guard.run('t', { key: 1, retry }, (run) => {
        attempts.push([run.attempt, run.trigger, run.token]);
        return attempts.length < 3 ? fails() : 'third';
      }),
    );
    await stage.clock.advance(3_900);
    expect(attempts.map(([attempt, trigger]) => `${attempt} ${trigger}`)).toEqual(['1 call', '2 retry']);
    await stage.clock.advance(200);
    expect(outcome.value).toMatchObject({ value: 'third', run: { attempt: 3 } });
    expect(new Set(attempts.map(([, , token]) => token)).size).toBe(1);
    expect(trips.locks.filter((verb) => verb !== 'renew')).toEqual(['acquire', 'release']);
    expect(names().filter((name) => name === 'run-failed')).toHaveLength(2);
  });

  test('gives the lock to others while it waits for long, and takes it again', async () => {
    const { guard } = stage.process();
    const tokens: bigint[] = [];
    const retry = { attempts: 2, backoff: '5m' } as const;
    const outcome = watch(
      guard.run('t', { retry }, (run) => {
        tokens.push(run.token);
        return tokens.length < 2 ? fails() : 'second';
      }),
    );
    await stage.clock.advance(60_000);
    await expect(guard.run('t', () => 'another')).resolves.toMatchObject({ value: 'another' });
    await stage.clock.advance(240_000);
    expect(outcome.value).toMatchObject({ value: 'second' });
    expect(tokens[1]).toBeGreaterThan(tokens[0] ?? 0n);
  });

  test('the last error is thrown when no attempt is left', async () => {
    const { guard } = stage.process();
    let count = 0;
    const work = (): never => {
      throw new Error(`attempt ${(count += 1)}`);
    };
    const outcome = watch(guard.run('t', { key: 1, retry: { attempts: 2, backoff: 0 } }, work));
    await stage.clock.advance(10);
    expect(outcome.error).toMatchObject({ message: 'attempt 2' });
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed', attempt: 2 });
  });
});

describe('limits of an attempt', () => {
  test('at its timeout the signal aborts, and the attempt has failed', async () => {
    const { guard } = stage.process();
    const outcome = watch(
      guard.run('t', { key: 1, timeout: '2s' }, (run) => sleep(stage.clock, 60_000, run.signal)),
    );
    await stage.clock.advance(2_100);
    expect(outcome.error).toMatchObject({ code: 'run-timeout' });
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed', fault: { code: 'run-timeout' } });
  });

  test('work that rejects with something else after its timeout is the cause', async () => {
    const { guard } = stage.process();
    const work = async (run: Run): Promise<void> => {
      await sleep(stage.clock, 60_000, run.signal).catch(() => undefined);
      throw boom;
    };
    const outcome = watch(guard.run('t', { timeout: '2s' }, work));
    await stage.clock.advance(2_100);
    expect(outcome.error).toMatchObject({ code: 'run-timeout', cause: boom });
  });

  test('work that returns after its timeout has completed', async () => {
    const { guard } = stage.process();
    const outcome = watch(guard.run('t', { timeout: '2s' }, () => sleep(stage.clock, 4_000)));
    await stage.clock.advance(4_100);
    expect(outcome.value).toMatchObject({ status: 'completed', run: { state: 'completed' } });
  });

  test('work that ignores its signal is let go: no release, no second attempt here, the lease runs out', async () => {
    const [a, b] = [stage.process(), stage.process()];
    const gate = new Gate<string>();
    const options: RunOptions = {
      key: 1,
      timeout: '2s',
      letGoAfter: '3s',
      ttl: '6s',
      retry: { attempts: 5 },
    };
    const stuck = watch(a.guard.run('t', options, () => gate.promise));
    await stage.clock.advance(4_900);
    expect(stuck.settled).toBe(false);
    await stage.clock.advance(200);
    expect(stuck.error).toMatchObject({ code: 'run-timeout' });
    expect(await stage.record('t', '1')).toMatchObject({ state: 'running' });
    expect(a.trips.locks).not.toContain('release');
    await stage.clock.advance(6_000);
    // The lease is over: elsewhere it goes on, here the old promise stands in the way.
    await expect(a.guard.run('t', options, () => 'no')).resolves.toMatchObject({ reason: 'running' });
    await expect(b.guard.run('t', options, () => 'taken over')).resolves.toMatchObject({
      value: 'taken over',
      run: { takeovers: 1, attempt: 1, trigger: 'takeover' },
    });
    gate.open('too late');
    await stage.clock.settle();
    expect(a.names()).toContain('run-refused');
    expect(await stage.record('t', '1')).toMatchObject({ value: '"taken over"' });
  });

  test('work that was let go and completes before anybody moved the record completes late', async () => {
    const { guard } = stage.process();
    const gate = new Gate<string>();
    const stuck = watch(guard.run('t', { key: 1, timeout: '2s', letGoAfter: '1s' }, () => gate.promise));
    await stage.clock.advance(10_000);
    expect(stuck.error).toMatchObject({ code: 'run-timeout' });
    gate.open('after all');
    await stage.clock.settle();
    expect(await stage.record('t', '1')).toMatchObject({
      state: 'completed',
      late: true,
      value: '"after all"',
    });
  });

  test('without progress for so long it is stopped as a crash, which uses up no attempt', async () => {
    const { guard } = stage.process();
    const starts: number[] = [];
    const work = async (run: Run): Promise<string> => {
      starts.push(run.attempt);
      if (starts.length > 1) return 'second';
      for (let step = 0; step < 5; step += 1) {
        run.progress(step);
        await sleep(stage.clock, 900, run.signal);
      }
      await sleep(stage.clock, 60_000, run.signal);
      return 'never';
    };
    const outcome = watch(guard.run('t', { key: 1, stallAfter: '1s' }, work));
    await stage.clock.advance(4_500);
    expect(starts).toEqual([1]);
    await stage.clock.advance(200);
    expect(outcome.value).toMatchObject({ value: 'second', run: { attempt: 1, takeovers: 1 } });
  });

  test.each([
    ['fail', 'failed'],
    ['hold', 'on-hold'],
  ] as const)('a stall with onCrash: %s is %s', async (onCrash, state) => {
    const { guard } = stage.process();
    const options: RunOptions = { key: 1, stallAfter: '1s', onCrash };
    const outcome = watch(guard.run('t', options, (run) => sleep(stage.clock, 9_000, run.signal)));
    await stage.clock.advance(1_100);
    expect(outcome.error).toMatchObject({ code: 'run-timeout' });
    expect(await stage.record('t', '1')).toMatchObject({ state });
    await expect(guard.run('t', { ...options, ifFailed: 'keep' }, () => 1)).resolves.toMatchObject({
      reason: state,
    });
  });

  test('a run that stalls again and again ends on hold', async () => {
    const process = stage.process();
    const options: RunOptions = { key: 1, stallAfter: '1s', maxTakeovers: 2 };
    const outcome = watch(process.guard.run('t', options, (run) => sleep(stage.clock, 9_000, run.signal)));
    await stage.clock.advance(5_000);
    expect(outcome.error).toMatchObject({ code: 'run-timeout' });
    expect(await stage.record('t', '1')).toMatchObject({
      state: 'on-hold',
      reason: 'max-takeovers',
      takeovers: 2,
    });
    expect(process.names()).toContain('alarm on-hold');
  });

  test('after an hour it is told of as long, once', async () => {
    const process = stage.process();
    const gate = new Gate();
    const body = watch(process.guard.run('t', { ttl: '5h' }, () => gate.promise));
    await stage.clock.settle();
    for (const names of [['run-started'], ['run-started', 'run-long'], ['run-started', 'run-long']]) {
      expect(process.names()).toEqual(names);
      stage.clock.block(3_600_000);
      await stage.clock.settle();
    }
    gate.open();
    await stage.clock.settle();
    expect(body.value).toMatchObject({ status: 'completed' });
    expect(process.names()).toEqual(['run-started', 'run-long', 'run-completed']);
  });

  test('a first attempt that could not begin in time has expired, for good', async () => {
    const process = stage.process();
    void process.guard.run('t', () => sleep(stage.clock, 5_000));
    await stage.clock.settle();
    const late = watch(
      process.guard.run('t', { window: '1d', wait: '10s', startingDeadline: '2s' }, () => 'no'),
    );
    await stage.clock.advance(6_000);
    expect(late.value).toMatchObject({ status: 'skipped', reason: 'expired', run: { state: 'expired' } });
    expect(process.names()).toContain('run-expired');
    await expect(process.guard.run('t', { window: '1d' }, () => 'no')).resolves.toMatchObject({
      reason: 'expired',
    });
  });
});

describe('a lock that is lost', () => {
  test('[S1] is not yet lost while it is only suspect: the work begins after the verdict', async () => {
    const { guard, state, locks } = stage.process();
    state.plan.play({ type: 'delay', replyMs: 1_000 }, { verbs: ['write'], times: 1 });
    locks.plan.play({ type: 'delay', replyMs: 800 }, { verbs: ['renew'], times: 1 });
    const call = watch(guard.run('t', { key: 1, ttl: '30s' }, (run) => run.guarded));
    await stage.clock.advance(100);
    // The machine sleeps while the store takes its time; the backend's lease does not run out meanwhile.
    stage.clock.suspend(40_000);
    await stage.clock.advance(2_500);
    expect(call).toMatchObject({ settled: true, value: { status: 'completed', value: true } });
  });

  const cutOff: RunOptions = { key: 1, ttl: '3s' };

  test('[B135] aborts the signal in time; a body that ends on it never overlaps the next one', async () => {
    const [a, b] = [stage.process(), stage.process()];
    let inside = 0;
    let most = 0;
    const work = async (run: Run): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      await sleep(stage.clock, 8_000, run.signal).finally(() => (inside -= 1));
    };
    const first = watch(a.guard.run('t', { ttl: '2s' }, work));
    await stage.clock.advance(1_000);
    a.locks.cut();
    await stage.clock.advance(2_000);
    expect(inside).toBe(0);
    const second = watch(b.guard.run('t', { ttl: '2s' }, work));
    await stage.clock.advance(9_000);
    expect(second.value).toMatchObject({ status: 'completed' });
    expect(most).toBe(1);
    expect(first.error).toMatchObject({ code: 'lock-lost' });
  });

  test('work that rejects after it is a crash: the record stays running, and the next call goes on', async () => {
    const [a, b] = [stage.process(), stage.process()];
    const first = watch(
      a.guard.run('t', cutOff, (run) => sleep(stage.clock, 60_000, run.signal).catch(fails)),
    );
    await stage.clock.advance(100);
    a.locks.cut();
    await stage.clock.advance(5_000);
    expect(first.error).toMatchObject({ code: 'lock-lost', cause: boom });
    expect(await stage.record('t', '1')).toMatchObject({ state: 'running', attempt: 1 });
    const next = await b.guard.run('t', cutOff, (run) => `${run.attempt} ${run.trigger}`);
    expect(next).toMatchObject({ value: '1 takeover', run: { takeovers: 1 } });
    expect(b.names()).toEqual(['run-taken-over', 'run-completed']);
  });

  test('[S7] work that completes although it was lost is recorded as late, while nobody moved the record', async () => {
    const { guard, locks } = stage.process();
    const run = watch(guard.run('t', cutOff, () => sleep(stage.clock, 6_000)));
    await stage.clock.advance(100);
    locks.cut();
    await stage.clock.advance(7_000);
    expect(run.value).toMatchObject({ status: 'completed', run: { late: true } });
  });

  test('[S7] [B132] a stale node’s result is refused, and it is told so', async () => {
    const [a, b] = [stage.process(), stage.process()];
    const first = watch(a.guard.run('t', cutOff, () => sleep(stage.clock, 10_000).then(() => 'stale')));
    await stage.clock.advance(200);
    a.locks.cut();
    await stage.clock.advance(4_000);
    const second = watch(b.guard.run('t', cutOff, () => sleep(stage.clock, 5_000).then(() => 'fresh')));
    await stage.clock.advance(7_000);
    expect(second.value).toMatchObject({ value: 'fresh', run: { value: '"fresh"' } });
    expect(first.error).toMatchObject({ code: 'stale-token', key: '1' });
    expect(a.names()).toContain('run-refused');
    expect(await stage.record('t', '1')).toMatchObject({ state: 'completed', value: '"fresh"' });
    expect(await stage.history('t', '1')).toEqual(['started', 'taken-over', 'completed']);
  });

  test('[L1] a blocked loop learns it by looking at its signal', async () => {
    const { guard } = stage.process();
    const seen: boolean[] = [];
    const outcome = guard.run('t', cutOff, (run) => {
      seen.push(run.signal.aborted);
      stage.clock.block(5_000);
      seen.push(run.signal.aborted);
      expect(() => run.assertHeld()).toThrow(expect.objectContaining({ code: 'lock-lost' }));
      throw boom;
    });
    await expect(outcome).rejects.toMatchObject({ code: 'lock-lost', cause: boom });
    expect(seen).toEqual([false, true]);
  });

  test('a doubt of the wall clock alone is waited for before an error is judged', async () => {
    const { guard } = stage.process();
    const outcome = watch(
      guard.run('t', { key: 1, ttl: '10s' }, async () => {
        await sleep(stage.clock, 100);
        stage.clock.suspend(60_000);
        throw boom;
      }),
    );
    await stage.clock.advance(3_000);
    // The backend renewed it after the sleep: it was held all the time, and the error counts.
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed' });
    expect(outcome.error).toBe(boom);
  });
});

describe('backends that cannot be asked', () => {
  test('[B125] no lock, no run: the call fails closed, and runs again after the repair', async () => {
    const { guard, locks } = stage.process();
    locks.down();
    const failed = watch(guard.run('t', { key: 1 }, () => 'no'));
    await stage.clock.advance(30_000);
    expect(failed.error).toMatchObject({ code: 'unavailable' });
    expect(GuardError.is(failed.error) && failed.error.cause).toBeInstanceOf(Error);
    locks.heal();
    const repaired = watch(guard.run('t', { key: 1 }, () => 'yes'));
    await stage.clock.advance(1_000);
    expect(repaired.value).toMatchObject({ value: 'yes' });
  });

  test('[B125] [S8] onUnavailable: skip is a recorded skip, which the next call moves on', async () => {
    const process = stage.process({ onUnavailable: 'skip' });
    process.locks.down();
    const skipped = watch(process.guard.run('t', { key: 1 }, () => 'no'));
    await stage.clock.advance(30_000);
    expect(skipped.value).toMatchObject({
      status: 'skipped',
      reason: 'unavailable',
      run: { state: 'skipped' },
    });
    expect(process.names()).toEqual(['run-skipped unavailable']);
    process.locks.heal();
    const repaired = watch(process.guard.run('t', { key: 1 }, () => 'yes'));
    await stage.clock.advance(1_000);
    expect(repaired.value).toMatchObject({ value: 'yes' });
  });

  test('run-unguarded, by the task’s own word: no lock, no token, its own event, and the key still counts', async () => {
    const process = stage.process();
    process.locks.down();
    const options: RunOptions = { key: 1, onUnavailable: 'run-unguarded' };
    const outcome = watch(
      process.guard.run('t', options, (run) => {
        expect(run.guarded).toBe(false);
        expect(() => run.token).toThrow(expect.objectContaining({ code: 'lock-lost' }));
        expect(() => run.assertHeld()).toThrow(expect.objectContaining({ code: 'lock-lost' }));
        return 'unguarded';
      }),
    );
    await stage.clock.advance(30_000);
    expect(outcome.value).toMatchObject({ value: 'unguarded', run: { state: 'completed' } });
    expect(process.names()).toEqual(['run-started', 'run-unguarded', 'run-completed']);
    const again = watch(process.guard.run('t', options, () => 'no'));
    await stage.clock.advance(30_000);
    expect(again.value).toMatchObject({ status: 'skipped', reason: 'completed' });
  });

  test('nothing runs without its record', async () => {
    const { guard, state, locks } = stage.process();
    await guard.run('warm-up', () => 1);
    state.down();
    locks.down();
    const failed = watch(guard.run('t', { key: 1, onUnavailable: 'run-unguarded' }, () => 'no'));
    await stage.clock.advance(60_000);
    expect(failed.error).toMatchObject({ code: 'unavailable' });
  });

  test('[S4] a start whose answer was lost is not a second start', async () => {
    const process = stage.process();
    await process.guard.run('warm-up', () => 1);
    process.state.loseReply('write');
    let starts = 0;
    const outcome = watch(process.guard.run('t', { key: 1 }, () => (starts += 1)));
    await stage.clock.advance(20_000);
    expect(outcome.value).toMatchObject({ status: 'completed', value: 1 });
    expect(await stage.history('t', '1')).toEqual(['started', 'completed']);
  });

  test('[S4] a finish whose answer was lost is settled by its own write', async () => {
    const process = stage.process();
    const outcome = watch(
      process.guard.run('t', { key: 1 }, () => {
        process.state.loseReply('write');
        return 'once';
      }),
    );
    await stage.clock.advance(20_000);
    expect(outcome.value).toMatchObject({ value: 'once', run: { state: 'completed' } });
    expect(await stage.history('t', '1')).toEqual(['started', 'completed']);
  });

  test('a finish is repeated with the lock renewed for settleTimeout, then it is unavailable', async () => {
    const { guard, state, trips } = stage.process();
    const gate = new Gate();
    const outcome = watch(
      guard.run('t', { key: 1, ttl: '3s', settleTimeout: '20s' }, async () => {
        await gate.promise;
        state.down();
      }),
    );
    gate.open();
    await stage.clock.advance(19_000);
    expect(outcome.settled).toBe(false);
    expect(trips.locks.filter((verb) => verb === 'renew').length).toBeGreaterThan(10);
    await stage.clock.advance(8_000);
    expect(outcome.error).toMatchObject({ code: 'unavailable', inDoubt: true });
    expect(trips.locks).toContain('release');
    state.heal();
    // An orphan, with its lock given back: the next call with the key goes on.
    const next = watch(guard.run('t', { key: 1 }, (run) => run.trigger));
    await stage.clock.advance(1_000);
    expect(next.value).toMatchObject({ value: 'takeover' });
  });

  test('a finish that gets through within settleTimeout is completed, and the work ran once', async () => {
    const { guard, state } = stage.process();
    let ran = 0;
    const outcome = watch(
      guard.run('t', { key: 1 }, () => {
        state.down();
        return (ran += 1);
      }),
    );
    await stage.clock.advance(60_000);
    state.heal();
    await stage.clock.advance(2_000);
    expect(outcome.value).toMatchObject({ status: 'completed', value: 1 });
    expect(ran).toBe(1);
  });
});

describe('compensation', () => {
  test('runs under the run’s lock before it is given back, and a rerun waits for it', async () => {
    const { guard } = stage.process();
    const gate = new Gate();
    const seen: string[] = [];
    const compensate = async (run: Run): Promise<void> => {
      run.assertHeld();
      seen.push(`${run.key}: ${run.lastFault?.message}`);
      await gate.promise;
    };
    const failed = watch(guard.run('t', { key: 1, compensate }, fails));
    await stage.clock.settle();
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed', compensation: 'due' });
    const early = await guard.run('t', { key: 1 }, () => 'no');
    expect(early).toMatchObject({ status: 'skipped', reason: 'compensation-due' });
    expect(failed.settled).toBe(false);
    gate.open();
    await stage.clock.settle();
    expect(failed.error).toBe(boom);
    expect(seen).toEqual(['1: boom']);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed', compensation: 'done' });
    await expect(guard.run('t', { key: 1 }, () => 'now')).resolves.toMatchObject({ value: 'now' });
  });

  test('one that rejects waits for a person', async () => {
    const { guard, names } = stage.process();
    const compensate = (): never => {
      throw new Error('cannot undo');
    };
    await expect(guard.run('t', { key: 1, compensate }, fails)).rejects.toBe(boom);
    expect(await stage.record('t', '1')).toMatchObject({ compensation: 'error' });
    expect(names()).toContain('error');
    await expect(guard.run('t', { key: 1 }, () => 'no')).resolves.toMatchObject({
      reason: 'compensation-due',
    });
    await guard.runs.waive('t', 1, { note: 'booked back by hand' });
    await expect(guard.run('t', { key: 1 }, () => 'now')).resolves.toMatchObject({ value: 'now' });
  });

  test('only a run that has failed for good is compensated', async () => {
    const { guard } = stage.process();
    let compensated = 0;
    let attempts = 0;
    const options: RunOptions = {
      key: 1,
      retry: { attempts: 2, backoff: 0 },
      compensate: () => (compensated += 1),
    };
    const outcome = watch(guard.run('t', options, () => ((attempts += 1) < 2 ? fails() : 'second')));
    await stage.clock.advance(10);
    expect(outcome.value).toMatchObject({ value: 'second' });
    expect(compensated).toBe(0);
  });
});
