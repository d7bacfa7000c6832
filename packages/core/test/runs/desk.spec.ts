/** Records for people, and their decisions. */
import { Gate, Stage, watch } from './stage.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

const note = { note: 'asked by Ada' };
const fails = (): never => {
  throw new Error('boom');
};

describe('records', () => {
  test('one, all of them in pages, and what happened', async () => {
    const { guard } = stage.process();
    for (let key = 1; key <= 5; key += 1) {
      await guard.run('t', { key }, () => key);
      await stage.clock.advance(1);
    }
    await guard.run('u', { key: 1 }, fails).catch(() => undefined);
    expect(await guard.runs.get('t', 3)).toMatchObject({ orphaned: false, run: { key: '3', value: '3' } });
    expect(await guard.runs.get('t', 9)).toBeNull();
    const first = await guard.runs.list({ task: 't', limit: 2 });
    expect(first.runs.map(({ run }) => run.key)).toEqual(['5', '4']);
    const second = await guard.runs.list({ task: 't', limit: 2, cursor: first.cursor! });
    expect(second.runs.map(({ run }) => run.key)).toEqual(['3', '2']);
    expect((await guard.runs.list({ states: ['failed'] })).runs.map(({ run }) => run.task)).toEqual(['u']);
    expect(
      (await guard.runs.history('t', 1)).map(({ what, from, to }) => `${what}: ${from} → ${to}`),
    ).toEqual(['started: none → running', 'completed: running → completed']);
  });

  test('a running run is orphaned when nobody holds its lock, or a newer grant does', async () => {
    const [a, b] = [stage.process(), stage.process()];
    const gate = new Gate();
    const body = watch(a.guard.run('t', { key: 1, ttl: '2s' }, () => gate.promise));
    await stage.clock.settle();
    expect(await b.guard.runs.get('t', 1)).toMatchObject({ orphaned: false });
    a.kill();
    await stage.clock.advance(3_000);
    expect(await b.guard.runs.list()).toMatchObject({
      runs: [{ orphaned: true, run: { state: 'running' } }],
    });
    gate.open();
    await stage.clock.advance(10);
    expect(body.settled).toBe(false);
  });
});

describe('decisions', () => {
  test('a failed run is sent back to be tried, and keeps its history', async () => {
    const { guard } = stage.process();
    await guard.run('t', { key: 1 }, fails).catch(() => undefined);
    expect(await guard.runs.retry('t', 1, note)).toMatchObject({
      state: 'pending',
      attempt: 0,
      trigger: 'manual',
    });
    const history = await guard.runs.history('t', 1);
    expect(history.at(-1)).toMatchObject({
      what: 'decided-retry',
      note: 'asked by Ada',
      node: { label: 'node-1' },
    });
  });

  test('a failed run is marked as completed, with a value', async () => {
    const { guard } = stage.process();
    await guard.run('t', { key: 1 }, fails).catch(() => undefined);
    await guard.runs.complete('t', 1, { ...note, value: { booked: 'by hand' } });
    const again = await guard.run('t', { key: 1, onDuplicate: 'result' }, () => 'no');
    expect(again).toMatchObject({ status: 'completed', value: { booked: 'by hand' } });
  });

  test('a run on hold is marked as failed, and its compensation becomes due', async () => {
    const process = stage.process({ sweepInterval: '1s' });
    const undone: string[] = [];
    const options = {
      key: () => 1,
      stallAfter: '1s',
      onCrash: 'hold',
      compensate: () => undone.push('undone'),
    } as const;
    const task = process.guard.task('t', options, () => new Promise(() => undefined));
    const stalled = watch(task.run(undefined));
    await stage.clock.advance(32_000);
    expect(stalled.error).toMatchObject({ code: 'run-timeout' });
    expect(await stage.record('t', '1')).toMatchObject({ state: 'running' });
    const other = stage.process({ sweepInterval: '1s' });
    other.guard.task('t', options, () => 'no');
    await Promise.all([other.guard.start(), stage.clock.settle()]);
    await stage.clock.advance(33_000);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'on-hold' });
    expect(await other.guard.runs.fail('t', 1, note)).toMatchObject({ state: 'failed', compensation: 'due' });
    await stage.clock.advance(3_000);
    expect(undone).toEqual(['undone']);
    expect(await stage.record('t', '1')).toMatchObject({ compensation: 'done' });
  });

  test('about a run that is running only under its lock: nobody may be working on it', async () => {
    const [a, b] = [stage.process(), stage.process()];
    const gate = new Gate();
    const body = watch(a.guard.run('t', { key: 1, ttl: '2s' }, () => gate.promise));
    await stage.clock.settle();
    await expect(b.guard.runs.complete('t', 1, note)).rejects.toMatchObject({ code: 'lock-busy' });
    a.locks.cut();
    await stage.clock.advance(3_000);
    expect(await b.guard.runs.fail('t', 1, note)).toMatchObject({ state: 'failed' });
    gate.open();
    await stage.clock.advance(10);
    expect(body.error).toMatchObject({ code: 'stale-token' });
  });

  test.each(['retry', 'complete', 'fail', 'waive'] as const)(
    '%s is refused where there is nothing to decide',
    async (verb) => {
      const { guard } = stage.process();
      await expect(guard.runs[verb]('t', 1, note)).rejects.toMatchObject({ code: 'invalid-argument' });
      await guard.run('t', { key: 1 }, () => 1);
      await expect(guard.runs[verb]('t', 1, note)).rejects.toMatchObject({ code: 'invalid-argument' });
      for (const bad of [undefined, {}, { note: ' ' }, { note: 'x', extra: 1 }]) {
        await expect(guard.runs[verb]('t', 1, bad as never)).rejects.toMatchObject({
          code: 'invalid-argument',
        });
      }
    },
  );
});
