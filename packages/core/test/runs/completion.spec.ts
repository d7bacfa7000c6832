/** The completion in the application's own transaction: what an adapter writes, and what the engine makes of it. */
import { activeRun, kvRuns, type Run, type CompletableRun } from '@guard/core';
import { Gate, Stage, sleep, watch } from './stage.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

/** Stands for an adapter: writes what was prepared, as a transaction that is committed does. */
async function complete(value: unknown, commit = true): Promise<void> {
  const run = activeRun();
  if (run === undefined) throw new Error('not in a run');
  const { expected, next, event } = await run.prepareCompletion(value);
  run.settled(event.writeId);
  if (!commit) return;
  const answer = await kvRuns(stage.state).transition(run.namespace, expected, next, event);
  expect(answer.status).toBe('moved');
}

describe('a completion that the application’s transaction wrote', () => {
  test('is read back after the work, with the value that was written where the work threw', async () => {
    const { guard, names } = stage.process();
    const outcome = await guard.run('t', { key: 1 }, async () => {
      await complete({ paid: true });
      throw new Error('after the commit');
    });
    expect(outcome).toMatchObject({
      status: 'completed',
      value: { paid: true },
      run: { state: 'completed' },
    });
    expect(await stage.history('t', '1')).toEqual(['started', 'completed']);
    expect(names()).toEqual(['run-started', 'run-completed']);
  });

  test('is the outcome with the value that the work returned', async () => {
    const { guard } = stage.process();
    const outcome = await guard.run('t', { key: 1 }, async () => {
      await complete('written');
      return 'returned';
    });
    expect(outcome).toMatchObject({ value: 'returned', run: { value: '"written"' } });
  });

  test('that was rolled back makes the attempt fail, although the work returned', async () => {
    const { guard } = stage.process();
    const work = async (): Promise<string> => {
      await complete('x', false);
      return 'returned';
    };
    await expect(guard.run('t', { key: 1 }, work)).rejects.toMatchObject({ code: 'aborted' });
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed', fault: { code: 'aborted' } });
  });

  test('that was rolled back with the work’s own error is that error, and may be tried again', async () => {
    const { guard } = stage.process();
    let attempts = 0;
    const retry = { attempts: 2, backoff: 0 } as const;
    const outcome = watch(
      guard.run('t', { key: 1, retry }, async () => {
        attempts += 1;
        await complete('x', attempts === 2);
        if (attempts === 1) throw new Error('rolled back');
        return attempts;
      }),
    );
    await stage.clock.advance(10);
    expect(outcome.value).toMatchObject({
      value: 2,
      run: { attempt: 2, lastFault: { message: 'rolled back' } },
    });
  });

  test('[S7] is refused by its expected version where another node has taken the run over', async () => {
    const [a, b] = [stage.process(), stage.process()];
    const gate = new Gate();
    const stale = watch(
      a.guard.run('t', { key: 1, ttl: '2s' }, async () => {
        const run = activeRun() as Run & CompletableRun;
        const prepared = await run.prepareCompletion('stale');
        run.settled(prepared.event.writeId);
        await gate.promise;
        const answer = await kvRuns(stage.state).transition(
          'default',
          prepared.expected,
          prepared.next,
          prepared.event,
        );
        expect(answer.status).toBe('conflict');
        throw new Error('rolled back');
      }),
    );
    await stage.clock.advance(100);
    a.locks.cut();
    await stage.clock.advance(4_000);
    const fresh = watch(b.guard.run('t', { key: 1 }, () => 'fresh'));
    await stage.clock.advance(100);
    expect(fresh.value).toMatchObject({ value: 'fresh' });
    gate.open();
    await stage.clock.advance(6_000);
    expect(stale.error).toMatchObject({ code: 'lock-lost' });
    expect(await stage.record('t', '1')).toMatchObject({ value: '"fresh"' });
  });

  test('is not prepared without the lock', async () => {
    const { guard } = stage.process();
    const work = async (): Promise<void> => {
      stage.clock.block(60_000);
      await complete('x');
    };
    await expect(guard.run('t', { key: 1 }, work)).rejects.toMatchObject({ code: 'lock-lost' });
  });

  test('waits for a progress that is on its way, and no other follows', async () => {
    const { guard, state } = stage.process();
    const outcome = watch(
      guard.run('t', { key: 1 }, async (run) => {
        state.plan.play({ type: 'delay', replyMs: 1_000 }, { verbs: ['write'], times: 1 });
        run.progress(1);
        await sleep(stage.clock, 10);
        await complete('x');
        run.progress(2);
        await sleep(stage.clock, 20_000);
      }),
    );
    await stage.clock.advance(22_000);
    expect(outcome.value).toMatchObject({ status: 'completed', run: { value: '"x"' } });
    expect(await stage.history('t', '1')).toEqual(['started', 'progress', 'completed']);
  });

  test('there is none outside of a run', () => {
    expect(activeRun()).toBeUndefined();
  });
});
