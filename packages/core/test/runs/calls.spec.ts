/** Calls for runs, on one node and on several: what happens once, what is skipped, and why. */
import { currentLock, currentRun, type Guard, GuardError, type Run } from '@guard/core';
import { Gate, Stage, sleep, watch } from './stage.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

const never = (): never => {
  throw new Error('this work must not run');
};

describe('a run with a key', () => {
  test('[S7] completes once: the next call with the key is told so, on every node', async () => {
    const [a, b] = [stage.process(), stage.process()];
    const first = await a.guard.run('settle', { key: '2026-11-29' }, (run) => `by ${run.task}`);
    expect(first).toMatchObject({
      status: 'completed',
      value: 'by settle',
      run: { attempt: 1, state: 'completed' },
    });
    for (const { guard } of [a, b]) {
      const again = await guard.run('settle', { key: '2026-11-29' }, never);
      expect(again).toMatchObject({ status: 'skipped', reason: 'completed', run: { value: '"by settle"' } });
    }
    expect(await stage.history('settle', '2026-11-29')).toEqual(['started', 'completed']);
    expect(b.names()).toEqual(['run-skipped completed']);
  });

  test('keys are texts: the same in every form, and another one is another run', async () => {
    const { guard } = stage.process();
    await guard.run('t', { key: ['a', 1] }, () => 1);
    await expect(guard.run('t', { key: 'a:1' }, never)).resolves.toMatchObject({ status: 'skipped' });
    await expect(guard.run('t', { key: 1n }, () => 2)).resolves.toMatchObject({ value: 2 });
    await expect(guard.run('u', { key: 'a:1' }, () => 3)).resolves.toMatchObject({ value: 3 });
  });

  test('[S1] different keys run side by side, one key never does', async () => {
    const { guard } = stage.process();
    const gate = new Gate();
    const one = watch(guard.run('t', { key: 1 }, () => gate.promise));
    const two = watch(guard.run('t', { key: 2 }, () => 'two'));
    const oneAgain = watch(guard.run('t', { key: 1 }, never));
    await stage.clock.settle();
    expect(two.value).toMatchObject({ value: 'two' });
    expect(oneAgain.value).toMatchObject({ status: 'skipped', reason: 'running' });
    gate.open();
    await stage.clock.settle();
    expect(one.value).toMatchObject({ status: 'completed' });
  });

  test('[B126] two calls of one process in the same tick are two claims: 200 rounds, never both', async () => {
    const { guard } = stage.process();
    for (let round = 0; round < 200; round += 1) {
      let inside = 0;
      let ran = 0;
      const work = async (): Promise<void> => {
        inside += 1;
        ran += 1;
        expect(inside).toBe(1);
        await Promise.resolve();
        inside -= 1;
      };
      const both = Promise.all([guard.run('t', { key: round }, work), guard.run('t', { key: round }, work)]);
      await stage.clock.advance(1);
      const outcomes = await both;
      expect(ran).toBe(1);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['completed', 'skipped']);
    }
  });

  test.each([true, false])(
    '[C5] costs two lock trips and the store trips of its kind (createRunning: %s)',
    async (createRunning) => {
      const { guard, trips } = stage.process({ createRunning });
      await guard.run('warm-up', () => undefined);
      trips.locks.length = trips.runs.length = 0;
      await guard.run('t', { key: 1 }, () => 1);
      expect(trips.locks).toEqual(['acquire', 'release']);
      expect(trips.runs).toEqual(
        createRunning ? ['create', 'transition'] : ['create', 'transition', 'transition'],
      );
      trips.locks.length = trips.runs.length = 0;
      await guard.run('t', () => 1);
      expect(trips.locks).toEqual(['acquire', 'release']);
      expect(trips.runs).toHaveLength(createRunning ? 2 : 3);
    },
  );

  test('a duplicate of a completed run never waits for a lock', async () => {
    const { guard } = stage.process();
    await guard.run('t', { key: 1 }, () => 1);
    const lock = await stage.locks.acquire([
      {
        ...{ key: 'default/task/t:1', id: 'x', ttlMs: 60_000, wait: false, ticketTtlMs: 6_000 },
        ...{ session: 's', holder: { label: 'x', run: '1' } },
      },
    ]);
    expect(lock[0]).toMatchObject({ status: 'granted' });
    const outcome = watch(guard.run('t', { key: 1, wait: '1m' }, never));
    await stage.clock.settle();
    expect(outcome.value).toMatchObject({ status: 'skipped', reason: 'completed' });
  });
});

describe('a run without a key', () => {
  test('is guarded by its lock alone: the next call runs again', async () => {
    const { guard } = stage.process();
    await expect(guard.run('t', () => 1)).resolves.toMatchObject({ value: 1 });
    await expect(guard.run('t', () => 2)).resolves.toMatchObject({ value: 2 });
    expect(await stage.records()).toHaveLength(2);
  });

  test('[S8] overlap is a recorded skip that names the run that holds the lock', async () => {
    const [a, b] = [stage.process(), stage.process()];
    const gate = new Gate();
    const first = watch(a.guard.run('t', () => gate.promise));
    await stage.clock.settle();
    const second = await b.guard.run('t', never);
    expect(second).toMatchObject({ status: 'skipped', reason: 'overlap', run: { state: 'skipped' } });
    const [running, skipped] = (await stage.records()).toSorted((one, other) =>
      one.state < other.state ? -1 : 1,
    );
    expect(skipped).toMatchObject({ state: 'skipped', reason: 'overlap', blockedBy: running?.key });
    expect(b.names()).toEqual(['run-skipped overlap']);
    gate.open();
    await stage.clock.settle();
    expect(first.value).toMatchObject({ status: 'completed' });
  });

  test('with a wait, queues for the lock and runs after the other', async () => {
    const [a, b] = [stage.process(), stage.process()];
    void a.guard.run('t', () => sleep(stage.clock, 3_000));
    await stage.clock.settle();
    const second = watch(b.guard.run('t', { wait: '5s' }, () => 'second'));
    await stage.clock.advance(2_900);
    expect(second.settled).toBe(false);
    await stage.clock.advance(200);
    expect(second.value).toMatchObject({ value: 'second' });
  });

  test('[S8] overlap after a wait is a recorded skip too, and a call that was skipped does not run later', async () => {
    const [a, b] = [stage.process({ sweepInterval: '1s' }), stage.process({ sweepInterval: '1s' })];
    const gate = new Gate();
    let begun = 0;
    const task = (guard: Guard) =>
      guard.task('t', { wait: '500ms' }, () => ((begun += 1), gate.promise)) as () => Promise<unknown>;
    const [callA, callB] = [task(a.guard), task(b.guard)];
    await stage.clock.runUntil(Promise.all([a.guard.start(), b.guard.start()]));
    const first = watch(callA());
    await stage.clock.advance(100);
    const second = watch(callB());
    await stage.clock.advance(600);
    expect(second.value).toMatchObject({ status: 'skipped', reason: 'overlap', run: { state: 'skipped' } });
    gate.open();
    await stage.clock.advance(10_000);
    expect(first.settled).toBe(true);
    expect(begun).toBe(1);
  });

  test('a lock that no running run holds is no overlap: it is waited for, for one sweep interval', async () => {
    const { guard } = stage.process({ sweepInterval: '5s' });
    const holder = { label: 'somebody' };
    const claim = { key: 'default/task/t', id: 'x', wait: false, ticketTtlMs: 6_000, session: 's', holder };
    await stage.locks.acquire([{ ...claim, ttlMs: 1_500 }]);
    const freed = watch(guard.run('t', () => 'ran'));
    await stage.clock.advance(2_100);
    expect(freed.value).toMatchObject({ value: 'ran' });
    await stage.locks.acquire([{ ...claim, id: 'y', ttlMs: 60_000 }]);
    const stuck = watch(guard.run('t', never));
    await stage.clock.advance(4_900);
    expect(stuck.settled).toBe(false);
    await stage.clock.advance(200);
    expect(stuck.value).toMatchObject({ status: 'skipped', reason: 'busy', run: { state: 'skipped' } });
  });

  test('a nested call of its own task does not wait for ever', async () => {
    const { guard } = stage.process();
    const outcome = await guard.run('t', () => guard.run('t', never));
    expect(outcome).toMatchObject({ value: { status: 'skipped', reason: 'overlap' } });
    const waiting = await guard.run('t', () =>
      guard.run('t', { wait: '1m' }, never).catch((error: unknown) => error),
    );
    expect(waiting).toMatchObject({ status: 'completed', value: { code: 'would-deadlock' } });
    expect((await stage.records()).map(({ state }) => state).sort()).toEqual([
      'completed',
      'completed',
      'skipped',
      'skipped',
    ]);
  });
});

describe('a run per window', () => {
  test('[S7] happens once per window by the run store’s clock, under its task’s lock', async () => {
    const [a, b] = [stage.process(), stage.process()];
    await a.guard.run('t', { window: '1h' }, () => 1);
    stage.clock.shiftWall(86_400_000); // this process's wall clock is wrong, the store's is the machine's
    await expect(b.guard.run('t', { window: '1h' }, () => 2)).resolves.toMatchObject({ value: 2 });
    await expect(a.guard.run('t', { window: '1h' }, never)).resolves.toMatchObject({ reason: 'completed' });
    await stage.clock.advance(3_600_000);
    await expect(a.guard.run('t', { window: '1h' }, () => 3)).resolves.toMatchObject({ value: 3 });
  });

  test('a skipped window is moved on by the next call in that window', async () => {
    const { guard } = stage.process();
    const gate = new Gate();
    const other = watch(guard.run('t', { window: '2h' }, () => gate.promise));
    await stage.clock.settle();
    await expect(guard.run('t', { window: '1h' }, never)).resolves.toMatchObject({ reason: 'overlap' });
    gate.open();
    await stage.clock.settle();
    expect(other.settled).toBe(true);
    const moved = await guard.run('t', { window: '1h' }, () => 'now');
    expect(moved).toMatchObject({ status: 'completed', value: 'now' });
    const key = moved.run?.key ?? '';
    expect(await stage.history('t', key)).toEqual(['created', 'skipped', 'reopened', 'started', 'completed']);
  });
});

describe('a call that is not the one to run', () => {
  test('[B123] is told by an outcome, by an error, or gets the recorded result', async () => {
    const { guard } = stage.process();
    const task = 'sum';
    await guard.run(task, { key: 1 }, () => 42);
    await expect(guard.run(task, { key: 1 }, never)).resolves.toMatchObject({
      status: 'skipped',
      reason: 'completed',
    });
    await expect(guard.run(task, { key: 1, onDuplicate: 'result' }, never)).resolves.toMatchObject({
      status: 'completed',
      value: 42,
    });
    const error = await guard
      .run(task, { key: 1, onDuplicate: 'throw' }, never)
      .catch((thrown: unknown) => thrown);
    expect(GuardError.is(error, 'run-skipped')).toBe(true);
    expect(error).toMatchObject({ key: '1', reason: 'completed' });
  });

  test('[B123] with a wait it joins the run in progress, also on another node', async () => {
    const [a, b] = [stage.process(), stage.process()];
    void a.guard.run('sum', { key: 1 }, async () => {
      await sleep(stage.clock, 2_000);
      return 42;
    });
    await stage.clock.settle();
    const joined = watch(b.guard.run('sum', { key: 1, onDuplicate: 'result', wait: '5s' }, never));
    const impatient = watch(b.guard.run('sum', { key: 1, onDuplicate: 'result', wait: '1s' }, never));
    await stage.clock.advance(1_100);
    expect(impatient.value).toMatchObject({ status: 'skipped', reason: 'running' });
    await stage.clock.advance(1_000);
    expect(joined.value).toMatchObject({ status: 'completed', value: 42 });
  });

  test('[B123] who had the lock first and finds that another made the record joins that run', async () => {
    const [a, b] = [stage.process(), stage.process()];
    const gate = new Gate();
    a.state.plan.play({ type: 'delay', requestMs: 300 }, { verbs: ['write'], times: 1 });
    const joined = watch(a.guard.run('sum', { key: 1, onDuplicate: 'result', wait: '5s' }, never));
    await stage.clock.advance(100);
    const first = watch(
      b.guard.run('sum', { key: 1, wait: '5s' }, async () => {
        await gate.promise;
        return 42;
      }),
    );
    await stage.clock.advance(1_000);
    expect(joined.value).toBeUndefined();
    gate.open();
    await stage.clock.advance(1_000);
    expect(first.value).toMatchObject({ status: 'completed', value: 42 });
    expect(joined.value).toMatchObject({ status: 'completed', value: 42 });
  });

  test('a result that was too long is not handed out as nothing', async () => {
    const { guard } = stage.process();
    const first = await guard.run('t', { key: 1 }, () => 'x'.repeat(70_000));
    expect(first).toMatchObject({ status: 'completed', run: { valueOmitted: true } });
    await expect(guard.run('t', { key: 1, onDuplicate: 'result' }, never)).resolves.toMatchObject({
      status: 'skipped',
      reason: 'completed',
    });
  });

  test('a result that is no JSON is omitted and told of; a codec keeps it', async () => {
    const process = stage.process();
    await process.guard.run('t', { key: 1 }, () => 12n);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'completed', valueOmitted: true });
    expect(process.names()).toContain('error');
    const codec = { encode: String, decode: (text: string) => BigInt(text) };
    await process.guard.run('t', { key: 2, codec }, () => 12n);
    await expect(
      process.guard.run('t', { key: 2, codec, onDuplicate: 'result' }, never),
    ).resolves.toMatchObject({ value: 12n });
  });
});

describe('what the work sees', () => {
  test('the run is handed in and is ambient, with its lock', async () => {
    const { guard } = stage.process();
    await guard.run('t', { key: 'k' }, async (run) => {
      expect(currentRun()).toBe(run);
      expect(currentLock()?.token).toBe(run.token);
      expect(run).toMatchObject({ task: 't', key: 'k', attempt: 1, trigger: 'call', guarded: true });
      expect(run.scheduledFor).toBeUndefined();
      expect(run.signal.aborted || run.stopSignal.aborted).toBe(false);
      run.assertHeld();
      await guard.run('inner', (inner) => expect(currentRun()).toBe(inner));
      expect(currentRun()).toBe(run);
    });
    expect(currentRun()).toBeUndefined();
  });

  test('code that goes on after its run is not in that run any more', async () => {
    const { guard } = stage.process();
    const late = new Gate();
    let seen: Run | undefined | null = null;
    await guard.run('t', () => {
      void late.promise.then(() => (seen = currentRun()));
    });
    late.open();
    await stage.clock.settle();
    expect(seen).toBeUndefined();
  });

  test('[B122] held until a promise or a thenable settles; a plain value ends it; a stream is refused', async () => {
    const { guard, names } = stage.process();
    const gate = new Gate<string>();
    const thenable = { then: gate.promise.then.bind(gate.promise) } as PromiseLike<string>;
    const held = watch(guard.run('t', () => thenable));
    await stage.clock.settle();
    await expect(guard.run('t', never)).resolves.toMatchObject({ reason: 'overlap' });
    gate.open('done');
    await stage.clock.settle();
    expect(held.value).toMatchObject({ value: 'done' });
    await expect(guard.run('t', () => 'plain')).resolves.toMatchObject({ value: 'plain' });
    const observable = { subscribe: () => undefined };
    await expect(guard.run('t', () => observable)).rejects.toMatchObject({ code: 'invalid-argument' });
    await expect(
      guard.run('t', async function* () {
        yield 1;
      }),
    ).rejects.toMatchObject({ code: 'invalid-argument' });
    expect(names()).toContain('run-failed');
  });

  test('progress is kept with the record, at most once in five seconds, and never waits', async () => {
    const { guard, trips } = stage.process();
    const done = watch(
      guard.run('t', { key: 1 }, async (run) => {
        for (let step = 1; step <= 18; step += 1) {
          run.progress({ step });
          await sleep(stage.clock, 1_000);
        }
      }),
    );
    await stage.clock.advance(7_000);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'running', progress: '{"step":5}' });
    await stage.clock.advance(12_000);
    expect(done.value).toMatchObject({ status: 'completed' });
    expect(trips.runs.filter((verb) => verb === 'transition')).toHaveLength(1 + 4);
    await expect(guard.run('t', (run) => run.progress(1n))).rejects.toMatchObject({
      code: 'invalid-argument',
    });
  });
});

describe('tasks', () => {
  test('are called like the function they guard', async () => {
    const { guard } = stage.process();
    const charge = guard.task(
      'charge',
      { key: (order: { id: number }) => order.id },
      (run, order: { id: number }) => {
        return `${run.key}: ${order.id}`;
      },
    );
    expect(charge.name).toBe('charge');
    await expect(charge({ id: 7 })).resolves.toMatchObject({
      status: 'completed',
      value: '7: 7',
      run: { input: '{"id":7}' },
    });
    await expect(charge({ id: 7 })).resolves.toMatchObject({ status: 'skipped' });
    await expect(charge.run({ id: 7 }, { onDuplicate: 'result' })).resolves.toMatchObject({ value: '7: 7' });
    await expect(charge.run({ id: 7 }, { key: 'other' })).resolves.toMatchObject({ value: 'other: 7' });
    await expect(charge.run({ id: 7 }, { window: '1h' })).resolves.toMatchObject({ status: 'completed' });
  });

  test('[B120] two tasks of one name are refused', () => {
    const { guard } = stage.process();
    guard.task('t', () => 1);
    expect(() => guard.task('t', () => 2)).toThrow(expect.objectContaining({ code: 'invalid-argument' }));
  });
});
