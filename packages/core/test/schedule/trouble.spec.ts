/** What goes wrong around a schedule: blocked loops, stopped processes, sleeps, clock steps, outages, dead nodes. */
import type { Run } from '@guard/core';
import { range, ScheduleStage, shifted, START_MS, SWEEP } from './stage.js';
import { Gate, sleep, watch } from '../runs/stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const SECONDS = { cron: '* * * * * *' };
const MINUTES = { cron: '* * * * *' };

describe('[V7] a loop that was blocked under a schedule of every second', () => {
  test('the newest instant runs, and what was passed over is one summary with a count', async () => {
    const node = await stage.node(SECONDS);
    await stage.clock.advance(3_100);
    stage.clock.block(2_500);
    await stage.clock.advance(2_450);
    expect(stage.instants()).toEqual([1, 2, 3, 5, 6, 7, 8]);
    expect((await stage.states())['expired']).toEqual(['3–4: 1 missed']);
    expect(stage.told('loop-lag')).toHaveLength(1);
    expect(node.names()).toContain('run-expired');
  });

  test('with catchUp all, every one of them runs, once and in order', async () => {
    await stage.node({ ...SECONDS, catchUp: { all: { max: 10 } } });
    await stage.clock.advance(3_100);
    stage.clock.block(2_500);
    await stage.clock.advance(2_450);
    expect(stage.instants()).toEqual(range(1, 8));
    expect((await stage.states())['expired']).toBeUndefined();
  });
});

describe('[V5] [S8] everything was down over some ticks', () => {
  async function downFor(ms: number, catchUp: 'none' | 'latest' | { all: { max: number } }): Promise<void> {
    const first = await stage.node({ ...MINUTES, catchUp });
    await stage.clock.advance(61_000);
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(ms);
    const others = await Promise.all([1, 2].map(() => stage.node({ ...MINUTES, catchUp }, { start: false })));
    await stage.clock.runUntil(Promise.all(others.map(({ guard }) => guard.start())));
    await stage.clock.advance(9_000);
  }

  test('none: nothing is made up for, and the reason is recorded once', async () => {
    await downFor(130_000, 'none');
    expect(stage.instants()).toEqual([60]);
    expect(await stage.states()).toEqual({ completed: [60], expired: ['60–180: 2 missed'] });
  });

  test('latest: the last one is made up for once in the cluster', async () => {
    await downFor(130_000, 'latest');
    expect(stage.instants()).toEqual([60, 180]);
    expect(stage.log[1]!.trigger).toBe('catch-up');
    // At once: nobody has to find it waiting.
    expect(stage.log[1]!.atS).toBeLessThan(192);
    expect(await stage.states()).toEqual({ completed: [60, 180], expired: ['60–120: 1 missed'] });
  });

  test('all: each of them is made up for', async () => {
    await downFor(130_000, { all: { max: 5 } });
    expect(stage.instants()).toEqual([60, 120, 180]);
  });

  test('[V6] 200 ticks down with max 10: ten runs and one summary', async () => {
    await downFor(200 * 60_000, { all: { max: 10 } });
    expect(stage.instants()).toHaveLength(11);
    expect((await stage.states())['expired']).toEqual(['60–11460: 190 missed']);
  });
});

test('[V5] an occurrence older than its startingDeadline is not run, and its record says so', async () => {
  const options = { ...MINUTES, startingDeadline: '30s' } as const;
  const first = await stage.node(options);
  await stage.clock.advance(1_000);
  await stage.clock.runUntil(first.guard.close());
  await stage.clock.advance(100_000);
  await stage.node(options);
  await stage.clock.advance(5_000);
  expect(stage.instants()).toEqual([]);
  expect(await stage.record('t', '2026-01-01T00:01:00.000Z')).toMatchObject({
    state: 'expired',
    reason: 'startingDeadline',
  });
});

describe('[V28] [B152] clocks that are wrong', () => {
  test('[B156] nodes whose clocks are minutes apart run each instant once, when it is due by the store', async () => {
    for (const offMs of [0, 30_000, -30_000, 120_000])
      await stage.node(SECONDS, { guard: { clock: shifted(stage.clock, offMs) } });
    await stage.clock.advance(20_050);
    expect(stage.instants()).toEqual(range(1, 20));
    for (const { atS, key } of stage.log)
      expect(atS - (Date.parse(key) - START_MS) / 1_000).toBeLessThan(0.1);
    expect(stage.told('clock-skew').map(({ node }) => node)).toEqual([2, 3, 4]);
  });

  test('a node whose clock jumps by a day runs nothing early, says so, and stays out until it is right again', async () => {
    const wrong = shifted(stage.clock, 0);
    await stage.node(MINUTES, { guard: { clock: wrong } });
    await stage.clock.advance(61_000);
    wrong.offMs = 86_400_000;
    await stage.clock.advance(120_000);
    expect(stage.instants()).toEqual([60]);
    const { skewMs, stopped } = stage.told('clock-skew').at(-1)!.payload as {
      skewMs: number;
      stopped: boolean;
    };
    expect(stopped).toBe(true);
    expect(Math.abs(skewMs - 86_400_000)).toBeLessThan(10);
    wrong.offMs = 0;
    await stage.clock.advance(60_000);
    expect(stage.told('clock-skew').at(-1)!.payload).toMatchObject({ stopped: false });
    expect(stage.instants()).toEqual([60, 180, 240]);
  });

  test('a store whose clock goes back repeats nothing, and is quiet until it passes the mark', async () => {
    await stage.node(MINUTES);
    await stage.clock.advance(130_000);
    stage.clock.shiftWall(-90_000);
    await stage.clock.advance(85_000);
    expect(stage.instants()).toEqual([60, 120]);
    await stage.clock.advance(60_000);
    expect(stage.instants()).toEqual([60, 120, 180]);
  });

  test('a store whose clock jumps ahead by an hour makes up for one run at most', async () => {
    await stage.node(MINUTES);
    await stage.clock.advance(70_000);
    stage.clock.shiftWall(3_600_000);
    await stage.clock.advance(10_000);
    expect(stage.instants()).toEqual([60, 3_660]);
  });

  test('[B153] a machine that slept runs one made-up occurrence, then goes on', async () => {
    await stage.node(SECONDS);
    await stage.clock.advance(2_000);
    stage.clock.suspend(60_000);
    await stage.clock.advance(5_100);
    const instants = stage.instants();
    expect(instants.slice(0, 2)).toEqual([1, 2]);
    expect(instants.filter((at) => at <= 62).length).toBeLessThanOrEqual(3);
    expect(instants.slice(-3)).toEqual([65, 66, 67]);
  });
});

test('[B149] a task that is due in 31 days runs then, not before, and needs no timer that long', async () => {
  const delays: number[] = [];
  const setTimer = stage.clock.setTimer.bind(stage.clock);
  stage.clock.setTimer = (run, delayMs, options) => (delays.push(delayMs), setTimer(run, delayMs, options));
  await stage.node({ cron: '0 0 1 * *' });
  await stage.clock.advance(10_000);
  expect(stage.instants()).toEqual([]);
  stage.clock.shiftWall(31 * 86_400_000 - 15_000);
  await stage.clock.advance(4_000);
  expect(stage.instants()).toEqual([]);
  await stage.clock.advance(2_000);
  expect(stage.instants()).toEqual([31 * 86_400]);
  expect(Math.max(...delays)).toBeLessThan(2 ** 31);
});

describe('nodes that die', () => {
  test('[B133] a node killed in the middle of a run: it is taken over once, and the schedule goes on', async () => {
    const gate = new Gate();
    const work = (): unknown => (stage.log.length === 1 ? gate.promise : undefined);
    const first = await stage.node({ every: '10s' }, { work });
    await stage.node({ every: '10s' }, { work });
    await stage.clock.advance(10_100);
    const victim = stage.log[0]!.node === 'node-1' ? first : stage.processes[1]!;
    victim.kill();
    await stage.clock.advance(30_000);
    expect(stage.instants().filter((at) => at === 10)).toHaveLength(2);
    expect(stage.instants().slice(-2)).toEqual([30, 40]);
    const states = await stage.states();
    expect(states['completed']).toEqual(expect.arrayContaining([10, 30, 40]));
  });

  test('[S8] what a node planned and did not begin is begun by another', async () => {
    const first = await stage.node(MINUTES);
    const second = await stage.node(MINUTES);
    for (const node of [first, second]) node.locks.cut();
    await stage.clock.advance(61_000);
    expect(stage.instants()).toEqual([]);
    first.kill();
    second.locks.heal();
    await stage.clock.advance(20_000);
    expect(stage.instants()).toEqual([60]);
  });

  test('[V3] [B135] [B132] one that is cut off in an occurrence is told to stop before another goes on, and its result is refused', async () => {
    const aborted: number[] = [];
    const gate = new Gate();
    const work = (run: Run): unknown => {
      run.signal.addEventListener('abort', () => aborted.push(stage.clock.now().wallMs));
      return stage.log.length === 1 ? gate.promise : 'by the other';
    };
    for (let node = 0; node < 2; node += 1) await stage.node(MINUTES, { work });
    await stage.clock.advance(60_100);
    const first = stage.processes[stage.log[0]!.node === 'node-1' ? 0 : 1]!;
    first.locks.cut();
    first.state.cut();
    await stage.clock.advance(30_000);
    expect(stage.instants()).toEqual([60, 60]);
    expect(stage.log[1]!.trigger).toBe('takeover');
    expect((aborted[0]! - START_MS) / 1_000).toBeLessThan(stage.log[1]!.atS);
    first.locks.heal();
    first.state.heal();
    gate.open();
    await stage.clock.advance(15_000);
    expect(await stage.record('t', '2026-01-01T00:01:00.000Z')).toMatchObject({
      state: 'completed',
      value: '"by the other"',
    });
    expect(first.names()).toContain('run-refused');
  });

  test('[V25] one that dies after its occurrence completed has nothing to take over', async () => {
    for (let node = 0; node < 2; node += 1) await stage.node(MINUTES);
    await stage.clock.advance(60_500);
    stage.processes[stage.log[0]!.node === 'node-1' ? 0 : 1]!.kill();
    await stage.clock.advance(50_000);
    expect(stage.instants()).toEqual([60]);
  });

  test('[V10] two nodes with one label are two nodes', async () => {
    const guard = { node: { label: 'same' } };
    const a = await stage.node(SECONDS, { guard });
    await stage.node(SECONDS, { guard });
    await stage.clock.advance(5_000);
    a.kill();
    await stage.clock.advance(20_050);
    expect(stage.instants().slice(-3)).toEqual([23, 24, 25]);
    expect(new Set(stage.instants()).size).toBe(stage.log.length);
  });
});

describe('stores in trouble', () => {
  test('[V13] a store that is away ends no loop: afterwards one occurrence is made up for', async () => {
    const node = await stage.node(MINUTES);
    await stage.clock.advance(61_000);
    node.state.cut();
    await stage.clock.advance(150_000);
    node.state.heal();
    await stage.clock.advance(70_000);
    expect(stage.instants()).toEqual([60, 180, 240]);
    expect((await stage.states())['expired']).toEqual(['60–120: 1 missed']);
  });

  test.each([1, 2, 3])(
    '[S4] a plan whose answer was lost is settled by reading back (write %i)',
    async (nth) => {
      const node = await stage.node(MINUTES);
      await stage.node(MINUTES);
      await stage.clock.advance(59_990);
      node.state.loseReply('write', nth);
      await stage.clock.advance(30_000);
      expect(stage.instants()).toEqual([60]);
      expect(await stage.states()).toEqual({ completed: [60] });
    },
  );
});

const FIRST_OF_TEN = '2026-01-01T00:00:10.000Z';

describe('overlap', () => {
  test('[B155] with a wait that is too short it is a skip as well, not a queue that grows', async () => {
    const work = () => sleep(stage.clock, 15_000);
    for (let node = 0; node < 2; node += 1) await stage.node({ every: '10s', wait: 1 }, { work });
    await stage.clock.advance(600_000);
    const states = await stage.states();
    expect(states['pending']).toBeUndefined();
    expect(states['completed']?.length).toBeGreaterThanOrEqual(29);
    expect(states['skipped']?.length).toBeGreaterThanOrEqual(29);
    const instants = stage.instants();
    expect(instants).toEqual([...instants].sort((a, b) => a - b));
    const skipped = await stage.record('t', '2026-01-01T00:00:20.000Z');
    expect(skipped).toMatchObject({ reason: 'overlap', blockedBy: FIRST_OF_TEN });
  });

  test('[B131] [B155] a run that is longer than the period is never overlapped, and what it covered is recorded', async () => {
    let running = 0;
    const work = async (): Promise<void> => {
      running += 1;
      expect(running).toBe(1);
      await sleep(stage.clock, 2_500);
      running -= 1;
    };
    await stage.node(SECONDS, { work });
    await stage.node(SECONDS, { work });
    await stage.clock.advance(20_050);
    const states = await stage.states();
    const all = [...(states['completed'] ?? []), ...(states['skipped'] ?? []), ...(states['running'] ?? [])];
    expect(all.sort((a, b) => Number(a) - Number(b))).toEqual(range(1, 20));
    expect(states['completed']!.length).toBeGreaterThanOrEqual(5);
    expect(await stage.record('t', '2026-01-01T00:00:02.000Z')).toMatchObject({
      state: 'skipped',
      reason: 'overlap',
      blockedBy: '2026-01-01T00:00:01.000Z',
    });
  });

  test('[B139] [V16] a body as long as its period: no instant twice, and none is gone without a record', async () => {
    const work = () => sleep(stage.clock, 1_990 + stage.random.integer(0, 20));
    for (let node = 0; node < 3; node += 1) await stage.node({ every: '2s' }, { work });
    await stage.clock.advance(60_050);
    expect(new Set(stage.instants()).size).toBe(stage.log.length);
    const all = Object.values(await stage.states()).flat();
    expect(all.map(Number).sort((a, b) => a - b)).toEqual(range(2, 60, 2));
  });

  test('[B131] the schedule goes on after a run that rejected', async () => {
    const work = (): void => {
      if (stage.log.length === 3) throw new Error('boom');
    };
    await stage.node(SECONDS, { work });
    await stage.clock.advance(6_050);
    expect(stage.instants()).toEqual(range(1, 6));
    expect((await stage.states())['failed']).toEqual([3]);
  });
});

describe('[B131] a body that never settles', () => {
  test('is given up at its timeout: its lease runs out, it is taken over, and the schedule goes on', async () => {
    const never = new Gate();
    const aborted: number[] = [];
    const work = (run: Run): unknown => {
      if (stage.log.length !== 3) return undefined;
      run.signal.addEventListener('abort', () => aborted.push(stage.clock.now().wallMs - START_MS));
      return never.promise;
    };
    const options = { ...SECONDS, timeout: '4s', letGoAfter: '1s' } as const;
    for (let node = 0; node < 2; node += 1) await stage.node(options, { work });
    await stage.clock.advance(30_100);
    expect(Math.round(aborted[0]! / 1_000)).toBe(7);
    const after = stage.log.filter(({ key }) => (Date.parse(key) - START_MS) / 1_000 > 3);
    // Its lease was renewed until a second after the signal, and runs out by itself: 6 s at most.
    expect(after[0]!.atS).toBeGreaterThan(8);
    expect(after[0]!.atS).toBeLessThan(16);
    expect(stage.instants().slice(-5)).toEqual(range(26, 30));
    const [, again, ...more] = stage.log.filter(({ key }) => key === '2026-01-01T00:00:03.000Z');
    expect([again?.trigger, more]).toEqual(['takeover', []]);
  });
});

describe('definitions', () => {
  test('[V9] [B129] a changed schedule: the old one is settled, the new one starts from now', async () => {
    const old = await stage.node({ every: '20s' });
    await stage.clock.advance(30_000);
    await stage.clock.runUntil(old.guard.close());
    await stage.clock.advance(15_000);
    await stage.node({ every: '7s' });
    await stage.clock.advance(20_000);
    expect(stage.instants()).toEqual([20, 49, 56, 63]);
    expect((await stage.states())['expired']).toEqual([
      expect.stringMatching(/^20–(44\.999|45).*: 1 definition-changed$/),
    ]);
  });

  test('[V30] while two are live the later one schedules, and the other node says so', async () => {
    await stage.node({ every: '20s' });
    await stage.clock.advance(5_000);
    await stage.node({ every: '7s' });
    await stage.clock.advance(60_000);
    expect(new Set(stage.instants().map((at) => at % 7))).toEqual(new Set([0]));
    expect(stage.told('schedule-conflict')).toEqual([
      { node: 1, payload: { task: 't', own: 'every 20000ms', inForce: 'every 7000ms' } },
    ]);
  });

  test('a definition whose nodes are gone gives way to one that lives', async () => {
    await stage.node({ every: '20s' });
    await stage.clock.advance(5_000);
    const later = await stage.node({ every: '7s' });
    await stage.clock.advance(10_000);
    await stage.clock.runUntil(later.guard.close());
    await stage.clock.advance(60_000);
    expect(stage.instants().slice(-2)).toEqual([40, 60]);
    expect(stage.log.at(-1)!.node).toBe('node-1');
  });

  test.each(['locks', 'both'])(
    '[V30] [S8] %s were away for long: the later one is still in force, and nothing is passed over for it',
    async (away) => {
      for (const seed of [1, 3, 8]) {
        const nodes = [await stage.node({ every: '20s' })];
        await stage.clock.advance(5_000);
        nodes.push(await stage.node({ every: '7s' }));
        await stage.clock.advance(30_000 + seed * 700);
        for (const { locks, state } of nodes) {
          locks.down();
          if (away === 'both') state.down();
        }
        await stage.clock.advance(90_000);
        for (const { locks, state } of nodes) {
          locks.heal();
          state.heal();
        }
        await stage.clock.advance(60_000);
        const definition = (await stage.store.task('default', 't'))?.record.definition;
        expect(definition?.text).toBe('every 7000ms');
        expect(stage.instants().filter((at) => at > 40 && at % 7 !== 0)).toEqual([]);
        await stage.close();
        stage = new ScheduleStage(seed);
      }
    },
  );

  test.each([
    [false, { completed: [60, 600, 660], expired: ['60–540: 8 missed'] }],
    [true, { completed: [60, 660], expired: ['60–605: 9 paused'] }],
  ])('[V9] a schedule that is taken away and comes back; paused meanwhile: %s', async (isPaused, states) => {
    const node = await stage.node(MINUTES);
    await stage.clock.advance(65_000);
    if (isPaused) await stage.clock.runUntil(node.guard.tasks.pause('t', { note: 'Ada' }));
    await stage.clock.runUntil(node.guard.close());
    const without = stage.process(SWEEP);
    without.guard.task('t', () => undefined);
    await stage.start(without);
    await stage.clock.advance(540_000);
    const { verdict } = await stage.clock.runUntil(
      without.guard.tasks.explain('t', new Date(START_MS + 120_000)),
    );
    expect(verdict).toBe(isPaused ? 'paused' : 'due');
    if (isPaused) await stage.clock.runUntil(without.guard.tasks.resume('t'));
    await stage.clock.runUntil(without.guard.close());
    await stage.node(MINUTES);
    await stage.clock.advance(60_000);
    expect(await stage.states()).toEqual(states);
    expect(stage.told('alarm')).toEqual([]);
  });

  test('[V30] a node that does not know a task leaves its occurrences alone', async () => {
    const knows = await stage.node(MINUTES);
    const other = stage.process();
    await stage.start(other);
    await stage.clock.advance(1_000);
    await stage.clock.runUntil(knows.guard.close());
    await stage.clock.advance(300_000);
    expect(stage.log).toEqual([]);
    expect(await stage.states()).toEqual({});
  });
});

test('[V15] an instant whose record was pruned is not created again by a late node', async () => {
  await stage.node(MINUTES, { guard: { retain: { runs: '1m', keys: '2m' } } });
  await stage.clock.advance(61_000);
  await stage.clock.advance(10 * 60_000);
  expect(await stage.record('t', '2026-01-01T00:01:00.000Z')).toBeUndefined();
  await stage.node(MINUTES);
  await stage.clock.advance(1_000);
  expect(stage.instants().filter((at) => at === 60)).toHaveLength(1);
});

describe('[V15] an instant whose record was pruned long before the next one is due', () => {
  const RARE = { every: '2h' } as const;
  // Hours of sweeps every two seconds would show no more.
  const rarely = { sweepInterval: '60s', retain: { runs: '1m', keys: '30m' } } as const;

  test('is not run again by a node that starts then', async () => {
    await stage.node(RARE, { guard: rarely });
    await stage.clock.advance(7_201_000);
    await stage.clock.advance(60 * 60_000);
    expect(await stage.record('t', '2026-01-01T02:00:00.000Z')).toBeUndefined();
    await stage.node(RARE, { guard: rarely });
    await stage.clock.advance(60_000);
    expect(stage.instants()).toEqual([7_200]);
  });

  test('nor where the node that ran it died at once', async () => {
    const first = await stage.node(RARE, { guard: rarely });
    await stage.clock.advance(7_200_500);
    first.kill();
    const stranger = stage.process({ ...SWEEP, ...rarely });
    stranger.guard.task('other', {}, () => undefined);
    await stage.start(stranger);
    await stage.clock.advance(60 * 60_000);
    expect(await stage.record('t', '2026-01-01T02:00:00.000Z')).toBeUndefined();
    await stage.node(RARE, { guard: rarely });
    await stage.clock.advance(60_000);
    expect(stage.instants()).toEqual([7_200]);
    const { verdict } = await stranger.guard.tasks.explain('t', new Date('2026-01-01T02:00:00.000Z'));
    expect(verdict).toBe('forgotten');
  });
});

test('[V26] a task without a success for alarmAfter raises one alarm in the cluster', async () => {
  const work = (): void => {
    throw new Error('boom');
  };
  for (let node = 0; node < 3; node += 1)
    await stage.node({ ...MINUTES, alarmAfter: '5m' }, { work, guard: { sweepInterval: '10s' } });
  await stage.clock.advance(12 * 60_000);
  const alarms = stage
    .told('alarm')
    .filter(({ payload }) => (payload as { reason: string }).reason === 'no-success');
  expect(alarms.map(({ payload }) => payload)).toEqual([{ task: 't', reason: 'no-success' }]);
});

test('[V26] a pause does not count as a time without success: alarmAfter begins anew at its end', async () => {
  const node = await stage.node(
    { ...MINUTES, alarmAfter: '5m' },
    { work: () => Promise.reject(new Error('boom')), guard: { sweepInterval: '10s' } },
  );
  const { tasks } = node.guard;
  const raised = (): number =>
    stage.told('alarm').filter(({ payload }) => (payload as { reason: string }).reason === 'no-success')
      .length;
  await stage.clock.advance(90_000);
  await stage.clock.runUntil(tasks.pause('t', { note: 'Ada' }));
  await stage.clock.advance(30 * 60_000);
  expect((await stage.clock.runUntil(tasks.resume('t'))).resumed).toBeUndefined();
  await stage.clock.advance(4 * 60_000);
  expect(raised()).toBe(0);
  await stage.clock.advance(2 * 60_000);
  expect(raised()).toBe(1);
});

test('[L5] schedules keep the process alive after start, unless it was told otherwise', async () => {
  const node = await stage.node(MINUTES);
  expect(stage.clock.pendingTimers.ref).toBe(1);
  await stage.clock.runUntil(node.guard.close());
  const other = await stage.node(MINUTES, { start: false });
  await stage.clock.runUntil(other.guard.start({ ref: false }));
  expect(stage.clock.pendingTimers.ref).toBe(0);
});

test('[V11] [B110] close ends the schedule first, lets the run finish, and hands nothing on twice', async () => {
  const node = await stage.node(MINUTES, { work: () => sleep(stage.clock, 5_000) });
  await stage.clock.advance(60_500);
  const closed = watch(node.guard.close());
  await stage.clock.advance(6_000);
  expect(closed.settled).toBe(true);
  await stage.clock.advance(120_000);
  expect(await stage.states()).toEqual({ completed: [60] });
});
