/** What is refused before any traffic, with the name of the argument and its value. */
import { createGuard, memoryLocks, type GuardOptions, type RunOptions } from '@guard/core';
import { Stage } from './stage.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

const bad: readonly [Record<string, unknown>, RegExp][] = [
  [{ keys: 1 }, /has no option 'keys'/],
  [{ key: '' }, /key must not be empty/],
  [{ key: 'x'.repeat(513) }, /key must be at most 512 bytes/],
  [{ key: {} }, /key must be a text/],
  [{ key: 1, window: '1h' }, /key and window contradict/],
  [{ window: 0 }, /window must be at least 1 ms, got 0/],
  [{ wait: -1 }, /wait must be at least 0 ms/],
  [{ ttl: '0s' }, /ttl must be at least/],
  [{ ttl: 60 }, /ttl must be at least/],
  [{ ttl: 'soon' }, /ttl must be milliseconds or a text like '30s', got "soon"/],
  [{ retry: { attempts: 0 } }, /retry.attempts must be a whole number from 1/],
  [{ retry: { attempts: 1.5 } }, /retry.attempts/],
  [{ retry: {} }, /retry.attempts/],
  [{ retry: { attempts: 2, pause: 1 } }, /retry has no option 'pause'/],
  [{ retry: { attempts: 2, backoff: -1 } }, /retry.backoff must be at least 0 ms/],
  [{ retry: { attempts: 2, backoff: { factor: 0.5 } } }, /retry.backoff.factor/],
  [{ retry: { attempts: 2, backoff: { jitter: 2 } } }, /retry.backoff.jitter/],
  [
    { retry: { attempts: 2, backoff: { initial: '1h', max: '1m' } } },
    /must not be longer than retry.backoff.max/,
  ],
  [{ timeout: Infinity }, /timeout must be at most/],
  [{ stallAfter: '2m', timeout: '1m' }, /stallAfter \(120000 ms\) must be shorter than timeout \(60000 ms\)/],
  [{ onCrash: 'ignore' }, /onCrash must be one of 'retry', 'fail', 'hold', got "ignore"/],
  [{ maxTakeovers: -1 }, /maxTakeovers/],
  [{ ifFailed: true }, /ifFailed must be one of/],
  [{ onDuplicate: 'wait' }, /onDuplicate must be one of/],
  [{ onUnavailable: 'run' }, /onUnavailable must be one of/],
  [{ startingDeadline: 0.5 }, /startingDeadline must be at least 1 ms/],
  [{ settleTimeout: 0 }, /settleTimeout must be at least 1 ms/],
  [{ letGoAfter: NaN }, /letGoAfter must be milliseconds/],
  [{ compensate: 'undo' }, /compensate must be a function/],
  [{ codec: { encode: String } }, /codec.decode must be a function/],
  [{ input: 1n }, /input is not JSON/],
  [{ input: 'x'.repeat(70_000) }, /input is too large: 70002 bytes of JSON/],
  [{ input: () => 1 }, /input must be JSON/],
];

describe('options of a run', () => {
  test.each(bad)('%j is refused', async (options, message) => {
    const { guard, trips } = stage.process();
    await expect(guard.run('t', options as RunOptions, () => 'no')).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    await expect(guard.run('t', options as RunOptions, () => 'no')).rejects.toThrow(message);
    expect(trips.locks.concat(trips.runs)).toEqual([]);
  });

  test('so are a task without a name and work that is none', async () => {
    const { guard } = stage.process();
    await expect(guard.run('', () => 1)).rejects.toMatchObject({ code: 'invalid-argument' });
    await expect(guard.run('t', {}, 'work' as never)).rejects.toThrow(/work must be a function/);
    await expect(guard.run('t', undefined as never)).rejects.toThrow(/work must be a function/);
    expect(() => guard.task('t', { crontab: 'x' } as never, () => 1)).toThrow(/has no option 'crontab'/);
    expect(() => guard.task('t', { key: () => 1, window: '1h' }, () => 1)).toThrow(/contradict/);
    const task = guard.task('ok', { window: '1h' }, () => 1);
    await expect(task.run(undefined, { key: 1, window: '1h' })).rejects.toThrow(/contradict/);
    await expect(task.run(undefined, { ttl: 1 } as never)).rejects.toThrow(
      /call options has no option 'ttl'/,
    );
  });

  test('so are a task and a key that together are too long', async () => {
    const { guard } = stage.process();
    const outcome = guard.run('t'.repeat(400), { key: ':'.repeat(512) }, () => 1);
    await expect(outcome).rejects.toThrow(/together must be at most 1280 bytes/);
  });

  test.each([
    [{ onUnavailable: 'run-unguarded' }, /onUnavailable must be 'throw' or 'skip'/],
    [{ retain: { runs: '2d', keys: '1d' } }, /retain.keys .* must not be shorter than retain.runs/],
    [{ retain: { events: '1d' } }, /retain has no option 'events'/],
    [{ sweepInterval: 0 }, /sweepInterval must be at least/],
  ])('a guard with %j is not made', (options, message) => {
    expect(() => stage.process(options as Partial<GuardOptions>)).toThrow(message);
  });

  test('a guard without a run store says how to get one', async () => {
    const guard = createGuard({ locks: memoryLocks({ clock: stage.clock }), clock: stage.clock });
    await expect(guard.run('t', () => 1)).rejects.toThrow(/has no run store/);
    expect(() => guard.runs).toThrow(/has no run store/);
    expect(() => guard.task('t', () => 1)).toThrow(/has no run store/);
    await expect(guard.start()).rejects.toThrow(/has no run store/);
    await guard.close();
  });
});
