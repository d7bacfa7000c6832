/** Started nodes: who goes on with the runs of a node that is gone, and when. */
import type { GuardOptions, Run, RunRecord, TaskOptions } from '@guard/core';
import { memoryLocks } from '@guard/core';
import { faultyBackend } from '@guard/testing';
import { Gate, type Process, Stage, sleep, watch } from './stage.js';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(() => stage.close());

const SWEEP = { sweepInterval: '2s', defaults: { ttl: '6s' } } satisfies Partial<GuardOptions>;

/** A started node that knows one task; what its runs do is in the test's hand. */
async function node(
  work: (run: Run, input: unknown) => unknown,
  options: TaskOptions<unknown> = {},
  guardOptions: Partial<GuardOptions> = {},
): Promise<Process & { readonly call: (input?: unknown) => Promise<unknown> }> {
  const process = stage.process({ ...SWEEP, ...guardOptions });
  const task = process.guard.task('t', { key: () => 1, ...options }, work);
  const started = process.guard.start();
  await stage.clock.settle();
  await started;
  return { ...process, call: (input) => task(input) };
}

describe('[L4] takeover', () => {
  test('a run whose node died goes on elsewhere within lease + sweep interval', async () => {
    const a = await node(() => new Promise(() => undefined));
    const seen: unknown[] = [];
    const b = await node((run, input) => {
      seen.push([run.trigger, run.attempt, input]);
      return 'taken over';
    });
    void a.call({ order: 7 }).catch(() => undefined);
    await stage.clock.advance(3_000);
    a.kill();
    const diedAtMs = stage.clock.now().monoMs;
    while (seen.length === 0 && stage.clock.now().monoMs - diedAtMs < 30_000) await stage.clock.advance(100);
    expect(stage.clock.now().monoMs - diedAtMs).toBeLessThanOrEqual(6_000 + 2_400);
    expect(seen).toEqual([['takeover', 1, { order: 7 }]]);
    expect(await stage.record('t', '1')).toMatchObject({
      state: 'completed',
      takeovers: 1,
      value: '"taken over"',
    });
    expect(b.names()).toEqual(['run-taken-over', 'run-completed']);
  });

  test('of several nodes exactly one goes on, and every takeover is under a larger token', async () => {
    const starts: bigint[] = [];
    const work = async (run: Run): Promise<void> => {
      starts.push(run.token);
      await sleep(stage.clock, 4_000, run.signal);
    };
    const nodes = [await node(work), await node(work), await node(work), await node(work)];
    void nodes[0]?.call().catch(() => undefined);
    await stage.clock.advance(500);
    nodes[0]?.kill();
    await stage.clock.advance(30_000);
    expect(starts).toHaveLength(2);
    expect(starts[1]).toBeGreaterThan(starts[0] ?? 0n);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'completed', takeovers: 1 });
  });

  test('a node that lives, however slow, is never taken over from', async () => {
    let starts = 0;
    const work = async (): Promise<void> => {
      starts += 1;
      await sleep(stage.clock, 60_000);
    };
    const a = await node(work);
    await node(work);
    const outcome = watch(a.call());
    await stage.clock.advance(61_000);
    expect(outcome.value).toMatchObject({ status: 'completed' });
    expect(starts).toBe(1);
  });

  test('[S7] a paused node that wakes after the takeover is refused, and does not declare the others dead', async () => {
    const gates = [new Gate<string>(), new Gate<string>()];
    const work = (): Promise<string> => gates.shift()?.promise ?? Promise.resolve('third');
    const [first, second] = gates;
    const a = await node(work);
    const b = await node(work);
    const stale = watch(a.call());
    await stage.clock.advance(500);
    a.kill();
    await stage.clock.advance(12_000);
    expect(b.names()).toEqual(['run-taken-over']);
    a.locks.heal();
    a.state.heal();
    first?.open('stale');
    await stage.clock.advance(20_000);
    expect(stale.error).toMatchObject({ code: 'stale-token' });
    expect(await stage.record('t', '1')).toMatchObject({
      state: 'running',
      takeovers: 1,
      node: { label: 'node-2' },
    });
    second?.open('fresh');
    await stage.clock.advance(100);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'completed', value: '"fresh"' });
  });

  test.each([
    ['fail', 'failed', ['run-failed', 'alarm failed']],
    ['hold', 'on-hold', ['run-on-hold', 'alarm on-hold']],
  ] as const)('onCrash: %s makes it %s, with one alarm', async (onCrash, state, names) => {
    const a = await node(() => new Promise(() => undefined), { onCrash });
    const others = [await node(() => 'no', { onCrash }), await node(() => 'no', { onCrash })];
    void a.call().catch(() => undefined);
    await stage.clock.advance(500);
    a.kill();
    await stage.clock.advance(30_000);
    expect(await stage.record('t', '1')).toMatchObject({ state, alarmed: true });
    expect(others.flatMap((other) => other.names())).toEqual(names);
  });

  test('a run that kills every node it is on ends on hold', async () => {
    const nodes: Process[] = [];
    const work = async (run: Run): Promise<void> => {
      const own = nodes.find(({ guard }) => guard === running.get(run));
      own?.kill();
      await new Promise(() => undefined);
    };
    const running = new Map<Run, unknown>();
    for (let count = 0; count < 5; count += 1) {
      const process: Process = await node(
        (run) => {
          running.set(run, process.guard);
          return work(run);
        },
        { maxTakeovers: 2 },
      );
      nodes.push(process);
    }
    void nodes[0]?.guard.runs.create('t', { key: 1 });
    await stage.clock.advance(120_000);
    expect(await stage.record('t', '1')).toMatchObject({
      state: 'on-hold',
      reason: 'max-takeovers',
      takeovers: 2,
    });
  });

  test('tasks that a node does not know, and nodes that were not started, leave it alone', async () => {
    const a = await node(() => new Promise(() => undefined));
    const stranger = stage.process(SWEEP);
    stranger.guard.task('other', () => 1);
    const idle = stage.process(SWEEP);
    idle.guard.task('t', () => 'no');
    const started = stranger.guard.start();
    await stage.clock.settle();
    await started;
    void a.call().catch(() => undefined);
    await stage.clock.advance(500);
    a.kill();
    await stage.clock.advance(60_000);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'running', takeovers: 0 });
    expect(await idle.guard.runs.get('t', 1)).toMatchObject({ orphaned: true, run: { state: 'running' } });
  });

  test('a run under a lock backend of another name is never taken over, but put on hold', async () => {
    const a = await node(() => new Promise(() => undefined));
    void a.call().catch(() => undefined);
    await stage.clock.advance(500);
    a.kill();
    await stage.clock.advance(20_000);
    const elsewhere = { ...faultyBackend(memoryLocks({ clock: stage.clock })).backend, name: 'elsewhere' };
    const b = await node(() => 'no', {}, { locks: elsewhere });
    await stage.clock.advance(5_000);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'on-hold', reason: 'other-backend' });
    expect(b.names()).toEqual(['run-on-hold', 'alarm on-hold']);
  });

  test('a run without a lock is left to the people', async () => {
    const a = await node(() => new Promise(() => undefined), { onUnavailable: 'run-unguarded' });
    a.locks.down();
    void a.call().catch(() => undefined);
    await stage.clock.advance(20_000);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'running', lock: { token: '0' } });
    a.kill();
    const b = await node(() => 'no');
    await stage.clock.advance(60_000);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'running' });
    await b.guard.runs.fail('t', 1, { note: 'its node is gone' });
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed' });
  });
});

describe('what is due', () => {
  test('a run that somebody asked for is begun by a started node', async () => {
    const seen: unknown[] = [];
    const a = await node((run, input) => seen.push([run.trigger, input]));
    const web = stage.process(SWEEP);
    await expect(web.guard.runs.create('t', { key: 'k', input: { id: 1 } })).resolves.toMatchObject({
      created: true,
    });
    await expect(web.guard.runs.create('t', { key: 'k' })).resolves.toMatchObject({ created: false });
    await web.guard.runs.create('t', { key: 'later', after: '1m' });
    await stage.clock.advance(6_000);
    expect(seen).toEqual([['manual', { id: 1 }]]);
    expect(a.names()).toEqual(['run-started', 'run-completed']);
    await stage.clock.advance(60_000);
    expect(await stage.record('t', 'later')).toMatchObject({ state: 'completed' });
  });

  test('a retry whose node died is begun by another node when it is due', async () => {
    const options: TaskOptions<unknown> = { retry: { attempts: 3, backoff: '10s' } };
    const a = await node(() => {
      throw new Error('boom');
    }, options);
    const b = await node((run) => `${run.attempt} ${run.trigger}`, options);
    void a.call().catch(() => undefined);
    await stage.clock.advance(500);
    a.kill();
    await stage.clock.advance(9_000);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'pending', attempt: 1 });
    await stage.clock.advance(6_000);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'completed', value: '"2 retry"' });
    expect(b.names()).toEqual(['run-started', 'run-completed']);
  });

  test('a retry whose node lives is left to that node', async () => {
    const options: TaskOptions<unknown> = { retry: { attempts: 2, backoff: '30s' } };
    let attempts = 0;
    const work = (): string => {
      if ((attempts += 1) === 1) throw new Error('boom');
      return 'second';
    };
    const a = await node(work, options);
    const b = await node(work, options);
    const outcome = watch(a.call());
    await stage.clock.advance(31_000);
    expect(outcome.value).toMatchObject({ value: 'second' });
    expect(b.names()).toEqual([]);
  });

  test('a compensation whose node died is finished by another', async () => {
    const seen: string[] = [];
    const boom = (): never => {
      throw new Error('boom');
    };
    const a = await node(boom, { compensate: () => new Promise(() => undefined) });
    const b = await node(boom, { compensate: (run) => seen.push(run.lastFault?.message ?? '') });
    void a.call().catch(() => undefined);
    await stage.clock.advance(500);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed', compensation: 'due' });
    a.kill();
    await stage.clock.advance(12_000);
    expect(seen).toEqual(['boom']);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'failed', compensation: 'done' });
    expect(await stage.history('t', '1')).toEqual([
      'started',
      'failed',
      'compensation-started',
      'compensation-done',
    ]);
    expect(b.names()).toEqual([]);
  });

  test('a compensation that is begun too often is an error', async () => {
    const boom = (): never => {
      throw new Error('boom');
    };
    const options: TaskOptions<unknown> = { maxTakeovers: 1, compensate: () => new Promise(() => undefined) };
    const nodes = [await node(boom, options), await node(boom, options), await node(boom, options)];
    void nodes[0]?.call().catch(() => undefined);
    await stage.clock.advance(500);
    nodes[0]?.kill();
    await stage.clock.advance(12_000);
    const begun = await stage.record('t', '1');
    expect(begun).toMatchObject({ compensation: 'due', takeovers: 1 });
    const label = (begun as RunRecord & { state: 'failed' }).node?.label;
    nodes.find((one) => `node-${nodes.indexOf(one) + 1}` === label)?.kill();
    await stage.clock.advance(12_000);
    expect(await stage.record('t', '1')).toMatchObject({ compensation: 'error' });
  });

  test('a run that nobody can begin is told of as overdue, once', async () => {
    const [a, b] = [await node(() => 1, { key: (key) => String(key) }), await node(() => 1)];
    const holder = { label: 'somebody' };
    const claim = { key: 'default/task/t:k', id: 'x', wait: false, ticketTtlMs: 6_000, session: 's', holder };
    await stage.locks.acquire([{ ...claim, ttlMs: 3_600_000 }]);
    await a.guard.runs.create('t', { key: 'k' });
    await stage.clock.advance(60_000);
    expect([...a.names(), ...b.names()]).toEqual(['alarm overdue']);
    expect(await stage.record('t', 'k')).toMatchObject({ state: 'pending', alarmed: true });
  });

  test('a transient fault never ends the sweep', async () => {
    const a = await node(() => 'done');
    await stage.clock.advance(5_000);
    a.state.down();
    await stage.clock.advance(20_000);
    expect(a.names()).toContain('error');
    a.state.heal();
    await stage.processes[0]?.guard.runs.create('t', { key: 'k' });
    await stage.clock.advance(8_000);
    expect(await stage.record('t', 'k')).toMatchObject({ state: 'completed' });
  });

  test('[L3] a question that is never answered does not end the sweep either', async () => {
    const a = await node(() => new Promise(() => undefined));
    const b = await node(() => 'taken over');
    void a.call().catch(() => undefined);
    await stage.clock.advance(500);
    a.kill();
    b.locks.cut();
    await stage.clock.advance(12_000);
    b.locks.heal();
    await stage.clock.advance(12_000);
    expect(await stage.record('t', '1')).toMatchObject({ state: 'completed', value: '"taken over"' });
  });

  test('records and keys are pruned by their age', async () => {
    await node(() => 'done', {}, { retain: { runs: '1h', keys: '2h' } });
    const { guard } = stage.processes[0]!;
    await guard.run('t', { key: 'old' }, () => 'x');
    stage.clock.block(75 * 60_000);
    await stage.clock.advance(5_000);
    expect(await stage.record('t', 'old')).toMatchObject({ state: 'completed', valueOmitted: true });
    await expect(guard.run('t', { key: 'old' }, () => 'no')).resolves.toMatchObject({ reason: 'completed' });
    stage.clock.block(75 * 60_000);
    await stage.clock.advance(5_000);
    expect(await stage.record('t', 'old')).toBeUndefined();
  });
});

describe('nodes', () => {
  test('are announced while they live, and gone when they are not', async () => {
    const a = await node(() => 1);
    await node(() => 1);
    expect((await stage.store.nodes('default')).map(({ label, tasks }) => [label, tasks])).toEqual(
      expect.arrayContaining([
        ['node-1', ['t']],
        ['node-2', ['t']],
      ]),
    );
    a.kill();
    await stage.clock.advance(20_000);
    expect((await stage.store.nodes('default')).map(({ label }) => label)).toEqual(['node-2']);
    const closing = stage.processes[1]?.guard.close();
    await stage.clock.advance(100);
    await closing;
    expect(await stage.store.nodes('default')).toEqual([]);
  });

  test('a node that sees another lock backend than the others do not start', async () => {
    await node(() => 1);
    const lost = stage.process({ ...SWEEP, locks: memoryLocks({ clock: stage.clock }) });
    lost.guard.task('t', () => 'no');
    const started = watch(lost.guard.start());
    await stage.clock.advance(20_000);
    expect(started.error).toMatchObject({ code: 'backend-mismatch' });
    await stage.store.create('default', orphan(), {
      writeId: 'w',
      atMs: 0,
      what: 'started',
      from: 'none',
      to: 'running',
      attempt: 1,
    });
    await stage.clock.advance(20_000);
    expect(lost.names()).toEqual([]);
  });

  test('nodes that were all killed at once do not keep their successors from starting', async () => {
    const old = [await node(() => 1), await node(() => 1)];
    await stage.clock.advance(7_000);
    for (const one of old) one.kill();
    for (let waited = 0; waited < 40_000; waited += 3_500) {
      const fresh = stage.process(SWEEP);
      const started = watch(fresh.guard.start());
      await stage.clock.advance(3_400);
      expect(started.error).toBeUndefined();
      const closing = fresh.guard.close();
      await stage.clock.advance(100);
      await closing;
    }
  });

  test('start can be called again, names only known tasks, and is refused after close', async () => {
    const { guard } = stage.process(SWEEP);
    guard.task('t', () => 1);
    await expect(guard.start({ tasks: ['nobody'] })).rejects.toMatchObject({ code: 'invalid-argument' });
    const both = Promise.all([guard.start({ tasks: ['t'] }), guard.start()]);
    await stage.clock.settle();
    await both;
    const closing = guard.close();
    await stage.clock.advance(100);
    await closing;
    await expect(guard.start()).rejects.toMatchObject({ code: 'closed' });
  });
});

function orphan(): RunRecord {
  return {
    ...{
      task: 't',
      key: 'o',
      id: 'o',
      attempt: 1,
      takeovers: 0,
      trigger: 'call',
      createdAtMs: 0,
      updatedAtMs: 0,
    },
    ...{ state: 'running', startedAtMs: 0, node: { id: 'gone', label: 'gone' } },
    lock: { backend: 'memory', key: 'default/task/t', token: '5' },
  };
}
