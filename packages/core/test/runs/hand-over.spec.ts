/** What goes from one call, attempt or node to the next: inputs, results, runs that were handed back. */
import type { Run, RunOptions } from '@guard/core';
import { Stage, sleep, watch } from './stage.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

describe('the input of a task', () => {
  test('is a copy from the record in every attempt and on every node, so that a takeover changes nothing', async () => {
    const { guard } = stage.process();
    const seen: unknown[] = [];
    const given = { at: new Date(0), list: [1] };
    const task = guard.task<typeof given>('t', { retry: { attempts: 2, backoff: '1s' } }, (_run, input) => {
      seen.push(structuredClone(input));
      input.list.push(2);
      if (seen.length === 1) throw new Error('once');
    });
    const outcome = watch(task(given));
    await stage.clock.advance(5_000);
    expect(outcome.value).toMatchObject({ status: 'completed' });
    const stored = { at: '1970-01-01T00:00:00.000Z', list: [1] };
    expect(seen).toEqual([stored, stored]);
    expect(given.list).toEqual([1]);
  });

  test.each([
    ['a number that is none', { n: NaN }, /input at 'n'/],
    ['a Map', new Map(), /input must be JSON/],
    ['a function inside', [() => 1], /input at '0'/],
  ])('is refused before any traffic where JSON would lose it: %s', async (_title, input, message) => {
    const { guard, trips } = stage.process();
    const task = guard.task<unknown>('t', () => 'no');
    await expect(task(input)).rejects.toThrow(message);
    expect(trips.locks.concat(trips.runs)).toEqual([]);
  });
});

test.each([
  ['a Map', new Map([[1, 2]])],
  ['a number that is none', { sum: NaN }],
  ['a function', { next: () => 1 }],
])('a result that JSON would lose is left out of the record, not damaged: %s', async (_title, value) => {
  const { guard } = stage.process();
  expect(await guard.run('t', { key: 1 }, () => value)).toMatchObject({ status: 'completed', value });
  expect(await stage.record('t', '1')).toMatchObject({ state: 'completed', valueOmitted: true });
});

describe('[B110] a run that was handed back by a node that closed', () => {
  test('goes on with the next call of its key, at once', async () => {
    const [old, next] = [stage.process({ grace: '1s' }), stage.process()];
    const body = watch(
      old.guard.run('nightly', { key: 'today' }, (run) => sleep(stage.clock, 60_000, run.signal)),
    );
    await stage.clock.advance(100);
    const closing = watch(old.guard.close());
    await stage.clock.advance(1_500);
    expect([body.settled, closing.settled]).toEqual([true, true]);
    expect(await stage.record('nightly', 'today')).toMatchObject({ state: 'pending', reason: 'handed-back' });
    expect(await next.guard.run('nightly', { key: 'today' }, ({ attempt }) => attempt)).toMatchObject({
      status: 'completed',
      value: 1,
    });
  });
});

describe('[L1] after a blocked event loop', () => {
  test.each<[string, RunOptions, RegExp]>([
    ['timeout', { timeout: '1s' }, /did not end within 1000 ms/],
    ['stallAfter', { stallAfter: '1s' }, /made no progress for 1000 ms/],
  ])(
    'a run whose %s has passed sees it in its signal, before any timer could tell',
    async (_name, limit, why) => {
      const { guard } = stage.process();
      let seen: Run['signal'] | undefined;
      const outcome = watch(
        guard.run('t', limit, (run) => {
          expect(run.signal.aborted).toBe(false);
          stage.clock.block(1_500);
          seen = run.signal;
          expect(seen.aborted).toBe(true);
          expect(String((seen.reason as Error).message)).toMatch(why);
          return Promise.reject(seen.reason as Error);
        }),
      );
      await stage.clock.advance(100);
      expect(outcome.error).toMatchObject({ code: 'run-timeout' });
      expect(seen?.aborted).toBe(true);
    },
  );
});

test('[L3] [L5] work that never settles keeps nothing alive once its guard has closed', async () => {
  const { guard } = stage.process({ grace: '1s' });
  void guard.run('t', () => new Promise(() => undefined)).catch(() => undefined);
  await stage.clock.advance(100);
  const closing = watch(guard.close());
  await stage.clock.advance(60_000);
  expect([closing.settled, stage.clock.pendingTimers.ref]).toEqual([true, 0]);
});

describe('[B122] a generator', () => {
  const values = function* (): Generator<number> {
    yield 1;
  };

  test('is no work: a call of one runs nothing', async () => {
    const { guard } = stage.process();
    const refused = { code: 'invalid-argument', message: expect.stringContaining('must not be a generator') };
    await expect(guard.run('t', values)).rejects.toMatchObject(refused);
    await expect(guard.withLock('k', values)).rejects.toMatchObject(refused);
    expect(() => guard.task('t', values)).toThrow(expect.objectContaining(refused));
  });

  test('is no result either: it would begin without the lock', async () => {
    const { guard } = stage.process();
    await expect(guard.run('t', () => values())).rejects.toThrow(/returned a stream/);
    await expect(guard.withLock('k', () => values())).rejects.toThrow(/returned a stream/);
    expect(await guard.inspect('k')).toMatchObject({ held: false });
    expect(await guard.withLock('k', () => [1, 2])).toEqual([1, 2]);
  });
});

describe('[B122] an answer that cannot even be looked at', () => {
  const odd = new Error('do not look');
  const refuse = (): never => {
    throw odd;
  };
  const answers: Record<string, () => unknown> = {
    'a getter of then': () => Object.defineProperty({}, 'then', { get: refuse }),
    'a proxy': () => new Proxy({}, { has: refuse }),
    'a promise of a proxy': () => Promise.resolve(new Proxy({}, { has: refuse })),
    'a constructor of a promise': () =>
      Object.defineProperty(Promise.resolve(1), 'constructor', { get: refuse }),
  };

  test.each(Object.keys(answers))(
    'is a failure of the work, and the lock is given back: %s',
    async (name) => {
      const { guard } = stage.process();
      await expect(guard.withLock('k', answers[name]!)).rejects.toBe(odd);
      expect(await guard.inspect('k')).toMatchObject({ held: false });
    },
  );
});
