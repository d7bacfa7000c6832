/** What people can ask and tell about a task: pause, resume, run now, backfill, next instants, explanations. */
import type { CatchUp, Guard } from '@guard/core';
import type { Process } from '../runs/stage.js';
import { Gate, sleep } from '../runs/stage.js';
import { range, ScheduleStage, START_MS } from './stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const MINUTES = { cron: '* * * * *' };
const at = (seconds: number): Date => new Date(START_MS + seconds * 1_000);
const seconds = (dates: readonly Date[]): number[] =>
  dates.map((date) => (date.getTime() - START_MS) / 1_000);

/** What a task's desk answers, with time going on meanwhile. */
function ask<T>(node: Process, question: (tasks: Guard['tasks']) => Promise<T>): Promise<T> {
  return stage.clock.runUntil(question(node.guard.tasks));
}

describe('pause and resume', () => {
  test('[S8] a pause holds on every node, and what falls into it is recorded and never run', async () => {
    const nodes = [await stage.node(MINUTES), await stage.node(MINUTES)];
    await stage.clock.advance(61_000);
    const paused = await ask(nodes[0]!, (tasks) => tasks.pause('t', { note: 'month end' }));
    expect(paused.paused?.note).toBe('month end');
    expect(Math.abs(paused.paused!.since.getTime() - at(61).getTime())).toBeLessThan(10);
    await stage.clock.advance(180_000);
    expect(stage.instants()).toEqual([60]);
    const why = await ask(nodes[1]!, (tasks) => tasks.explain('t', at(120)));
    expect(why).toMatchObject({ verdict: 'paused', text: expect.stringContaining('month end') as string });

    const resumed = await ask(nodes[1]!, (tasks) => tasks.resume('t'));
    expect(resumed.paused).toBeUndefined();
    await stage.clock.advance(60_000);
    expect(stage.instants()).toEqual([60, 300]);
    expect((await stage.states())['expired']).toEqual([expect.stringMatching(/^60–24[01.9]+: 3 paused$/)]);
    const later = await ask(nodes[0]!, (tasks) => tasks.explain('t', at(120)));
    expect(later).toMatchObject({ verdict: 'was-paused', run: { state: 'expired' } });
  });

  test('[S8] a pause takes nothing away that was missed before it', async () => {
    const daily = { cron: '0 3 * * *' };
    const clock = (hours: number, minutes: number): Date => at(hours * 3_600 + minutes * 60);
    await stage.clock.advance(170 * 60_000);
    const first = await stage.node(daily);
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(15 * 60_000);
    const admin = stage.process();
    await ask(admin, (tasks) => tasks.pause('t', { note: 'a look at it' }));
    await stage.clock.advance(60_000);
    await ask(admin, (tasks) => tasks.resume('t'));
    expect(await ask(admin, (tasks) => tasks.explain('t', clock(3, 0)))).toMatchObject({ verdict: 'due' });
    const second = await stage.node(daily);
    await stage.clock.advance(10_000);
    expect(stage.log).toMatchObject([{ key: clock(3, 0).toISOString(), trigger: 'catch-up' }]);
    expect((await ask(second, (tasks) => tasks.get('t')))?.settledUpTo?.getTime()).toBeGreaterThan(
      clock(3, 5).getTime(),
    );
  });

  test('[S8] after a pause that nobody saw each part has its reason', async () => {
    const first = await stage.node(MINUTES);
    await stage.clock.runUntil(first.guard.close());
    const admin = stage.process();
    await stage.clock.advance(150_000);
    await ask(admin, (tasks) => tasks.pause('t', { note: 'x' }));
    await stage.clock.advance(120_000);
    await ask(admin, (tasks) => tasks.resume('t'));
    expect(await ask(admin, (tasks) => tasks.explain('t', at(180)))).toMatchObject({ verdict: 'was-paused' });
    await stage.clock.advance(120_000);
    await stage.node(MINUTES, { work: () => sleep(stage.clock, 1_000) });
    await stage.clock.advance(10_000);
    expect(stage.instants()).toEqual([120, 360]);
    const verdicts = [];
    for (const instant of range(60, 360, 60))
      verdicts.push((await ask(admin, (tasks) => tasks.explain('t', at(instant)))).verdict);
    expect(verdicts).toEqual(['missed', 'completed', 'was-paused', 'was-paused', 'missed', 'completed']);
  });

  test('a pause needs a note, and a task that somebody knows', async () => {
    const node = await stage.node(MINUTES);
    const { tasks } = node.guard;
    await expect(tasks.pause('t', { note: ' ' })).rejects.toMatchObject({ code: 'invalid-argument' });
    await expect(tasks.pause('unknown', { note: 'x' })).rejects.toThrow(/must be known/);
    await expect(tasks.resume('t')).resolves.toMatchObject({ paused: undefined });
    await expect(tasks.get('unknown')).resolves.toBeNull();
  });

  test('a node without the task can pause and resume it', async () => {
    await stage.node(MINUTES);
    const admin = stage.process();
    await ask(admin, (tasks) => tasks.pause('t', { note: 'by hand' }));
    await stage.clock.advance(130_000);
    expect(stage.log).toEqual([]);
    await expect(admin.guard.tasks.resume('t', { note: '' })).rejects.toThrow(/note must say why/);
    const view = await ask(admin, (tasks) => tasks.resume('t', { note: 'all is well' }));
    expect(view).toMatchObject({ paused: undefined, resumed: { note: 'all is well' } });
    await stage.clock.advance(60_000);
    expect(stage.instants()).toEqual([180]);
  });
});

describe('run now', () => {
  test('runs under the lock of the task, whatever its schedule says', async () => {
    const node = await stage.node(MINUTES);
    const outcome = await ask(node, (tasks) => tasks.runNow('t'));
    expect(outcome).toMatchObject({ status: 'completed', run: { trigger: 'manual' } });
    expect(stage.log).toHaveLength(1);
  });

  test('[B131] says that another run overlaps, and does not run beside it', async () => {
    const gate = new Gate();
    const node = await stage.node(MINUTES, { work: () => gate.promise });
    await stage.clock.advance(61_000);
    const outcome = await ask(node, (tasks) => tasks.runNow('t'));
    expect(outcome).toMatchObject({ status: 'skipped', reason: 'overlap' });
    gate.open();
  });

  test('is for tasks that are registered here', async () => {
    await expect(stage.process().guard.tasks.runNow('t')).rejects.toThrow(/must be registered here/);
  });
});

describe('backfill', () => {
  test('the preview creates nothing; then every missing occurrence runs once, on any node', async () => {
    const node = await stage.node({ ...MINUTES, catchUp: 'none' });
    await stage.clock.advance(61_000);
    await ask(node, (tasks) => tasks.pause('t', { note: 'maintenance' }));
    await stage.clock.advance(240_000);
    await ask(node, (tasks) => tasks.resume('t'));
    const window = { from: at(60), to: at(300) };
    const preview = await ask(node, (tasks) => tasks.backfill('t', { ...window, preview: true }));
    expect(seconds(preview.missing)).toEqual([120, 180, 240, 300]);
    expect(preview.present).toMatchObject([{ at: at(60), run: { state: 'completed' } }]);
    expect(await stage.record('t', at(120).toISOString())).toBeUndefined();

    await ask(node, (tasks) => tasks.backfill('t', window));
    await ask(node, (tasks) => tasks.backfill('t', window));
    await stage.clock.advance(20_000);
    expect(stage.instants().sort((a, b) => a - b)).toEqual([60, 120, 180, 240, 300]);
    expect(stage.log.slice(1).every(({ trigger }) => trigger === 'backfill')).toBe(true);
  });

  type Asked = readonly [from: number, to: number];

  /** Nobody is up over five instants; somebody asks for some of them, and then two nodes start. */
  async function askedInTime(catchUp: CatchUp, [from, to]: Asked): Promise<Process> {
    const first = await stage.node({ ...MINUTES, catchUp });
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(330_000);
    const admin = stage.process();
    await ask(admin, (tasks) => tasks.backfill('t', { from: at(from), to: at(to) }));
    for (let node = 0; node < 2; node += 1) await stage.node({ ...MINUTES, catchUp });
    await stage.clock.advance(25_000);
    return admin;
  }

  test.each<[CatchUp, Asked, number[], string[] | undefined]>([
    ['latest', [60, 180], [60, 120, 180, 300], ['0–240: 1 missed']],
    ['latest', [300, 300], [300], ['0–300: 4 missed']],
    ['none', [180, 180], [180], ['0–300: 4 missed']],
    [{ all: { max: 2 } }, [240, 300], [120, 180, 240, 300], ['0–60: 1 missed']],
    [{ all: { max: 2 } }, [60, 240], [60, 120, 180, 240, 300], undefined],
    ['latest', [60, 300], [60, 120, 180, 240, 300], undefined],
  ])(
    '[S8] what it asks for before a node has settled it is not missed, and takes no place: %j, %j',
    async (catchUp, asked, ran, passed) => {
      const admin = await askedInTime(catchUp, asked);
      expect(stage.instants().sort((a, b) => a - b)).toEqual(ran);
      const { expired, ...others } = await stage.states();
      expect([expired, Object.keys(others)]).toEqual([passed, ['completed']]);
      for (const instant of range(60, 300, 60)) {
        const { verdict } = await ask(admin, (tasks) => tasks.explain('t', at(instant)));
        expect([instant, verdict]).toEqual([instant, ran.includes(instant) ? 'completed' : 'missed']);
      }
    },
  );

  test('[S8] what it asks for in a pause is not counted as paused, whoever settles the pause', async () => {
    for (const waits of [false, true]) {
      const node = await stage.node(MINUTES);
      await stage.clock.advance(1_000);
      if (waits) await stage.clock.runUntil(node.guard.close());
      if (waits) await stage.clock.advance(60_000);
      const admin = stage.process();
      await ask(admin, (tasks) => tasks.pause('t', { note: 'maintenance' }));
      await stage.clock.advance(200_000);
      const nowMs = stage.clock.now().wallMs;
      const to = new Date(Math.floor(nowMs / 60_000) * 60_000);
      await ask(admin, (tasks) => tasks.backfill('t', { from: to, to }));
      await ask(admin, (tasks) => tasks.resume('t'));
      if (waits) await stage.node(MINUTES);
      await stage.clock.advance(10_000);
      expect((await stage.states())['expired']).toEqual([expect.stringMatching(/: 2 paused$/)]);
      expect(stage.log.at(-1)).toMatchObject({ key: to.toISOString(), trigger: 'backfill' });
      await stage.close();
      stage = new ScheduleStage();
    }
  });

  test('[S8] what it asks for is not passed over when the schedule changes', async () => {
    const first = await stage.node({ every: '20s' });
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(70_000);
    await ask(stage.process(), (tasks) => tasks.backfill('t', { from: at(40), to: at(40) }));
    await stage.node(MINUTES);
    await stage.clock.advance(10_000);
    expect((await stage.states())['expired']).toEqual([expect.stringMatching(/: 2 definition-changed$/)]);
    expect(stage.log).toMatchObject([{ key: at(40).toISOString(), trigger: 'backfill' }]);
  });

  test('[V5] what it asks for while the locks are away takes no place of what waits for them', async () => {
    const node = await stage.node({ ...MINUTES, catchUp: { all: { max: 3 } } });
    await stage.clock.advance(65_000);
    node.locks.down();
    await stage.clock.advance(270_000);
    await ask(stage.process(), (tasks) => tasks.backfill('t', { from: at(240), to: at(300) }));
    node.locks.heal();
    await stage.clock.advance(40_000);
    const ran = stage.log.map(({ trigger }, place) => `${stage.instants()[place]} ${trigger}`);
    const backfilled = ['240 backfill', '300 backfill'];
    expect(ran).toEqual(['60 cron', '120 catch-up', '180 catch-up', ...backfilled, '360 cron']);
  });

  test('[S7] a node whose own schedule is not in force asks for the instants of the one that is', async () => {
    const loser = await stage.node({ every: '20s' });
    await stage.clock.advance(1_000);
    await stage.node({ every: '7s' });
    await stage.clock.advance(60_000);
    const window = { from: at(1), to: at(22), preview: true };
    const { missing, present } = await ask(loser, (tasks) => tasks.backfill('t', window));
    expect([...seconds(missing), ...present.map((one) => seconds([one.at])[0])]).toEqual([7, 14, 21]);
    const after = at(70);
    expect(seconds(await ask(loser, (tasks) => tasks.next('t', { after, count: 2 })))).toEqual([77, 84]);
    expect(await ask(loser, (tasks) => tasks.explain('t', at(40)))).toMatchObject({
      verdict: 'not-scheduled',
    });
  });

  test('an instant that is asked for afterwards is not too late for its starting deadline', async () => {
    const work = () => sleep(stage.clock, 4_000);
    const node = await stage.node({ ...MINUTES, catchUp: 'none', startingDeadline: '3s' }, { work });
    await ask(node, (tasks) => tasks.pause('t', { note: 'maintenance' }));
    await stage.clock.advance(190_000);
    await ask(node, (tasks) => tasks.resume('t'));
    await ask(node, (tasks) => tasks.backfill('t', { from: at(60), to: at(180) }));
    await stage.clock.advance(45_000);
    expect(stage.instants().sort((a, b) => a - b)).toEqual([60, 120, 180]);
    expect((await stage.states())['completed']).toHaveLength(3);
  });

  test('a window that reaches into the future, or is too large, is refused', async () => {
    const node = await stage.node(MINUTES);
    await stage.clock.advance(600_000);
    const { tasks } = node.guard;
    await expect(tasks.backfill('t', { from: at(0), to: at(900) })).rejects.toThrow(/later than now/);
    await expect(tasks.backfill('t', { from: at(0), to: at(540), limit: 3 })).rejects.toThrow(/limit/);
    await expect(tasks.backfill('t', { from: 'x' as never, to: at(1) })).rejects.toThrow(/must be a Date/);
    await expect(tasks.backfill('t', { from: at(9), to: at(1) })).rejects.toThrow(
      /must not be later than to/,
    );
    await expect(tasks.backfill('t', undefined as never)).rejects.toThrow(/from must be a Date/);
    const wrong = { from: at(0), to: at(540), preview: 'yes' as never };
    await expect(tasks.backfill('t', wrong)).rejects.toThrow(/preview must be true or false/);
  });

  test('a date that is none, or lies where no calendar reaches, is named', async () => {
    const { tasks } = (await stage.node(MINUTES)).guard;
    await expect(tasks.explain('t', new Date('x'))).rejects.toThrow(/must be a valid Date/);
    for (const ms of [-8.64e15, 8.64e15]) {
      const date = new Date(ms);
      for (const asked of [tasks.explain('t', date), tasks.next('t', { after: date })])
        await expect(asked).rejects.toMatchObject({ code: 'invalid-argument' });
    }
    for (const year of ['1970', '2998']) {
      const after = new Date(`${year}-01-01T00:00:00Z`);
      expect(await ask(stage.processes[0]!, () => tasks.next('t', { after, count: 1 }))).toHaveLength(1);
    }
  });
});

test('the next instants are told by any node, from the stored schedule where it does not know the task', async () => {
  const node = await stage.node({ every: '7s' });
  expect(seconds(await ask(node, (tasks) => tasks.next('t', { count: 3 })))).toHaveLength(3);
  const admin = stage.process();
  const after = new Date(70_000);
  expect(await ask(admin, (tasks) => tasks.next('t', { count: 2, after }))).toEqual([
    new Date(77_000),
    new Date(84_000),
  ]);
  await expect(ask(admin, (tasks) => tasks.next('unknown'))).rejects.toThrow(/must have a schedule/);
  expect(await ask(admin, (tasks) => tasks.get('t'))).toMatchObject({ schedule: { text: 'every 7000ms' } });
});

test('[S7] after the clock of the store went back, what is settled is not announced again', async () => {
  const node = await stage.node(MINUTES);
  await stage.clock.advance(61_000);
  const stored = await stage.store.task('default', 't');
  const ahead = { ...stored!.record, lowWaterMarkMs: at(300).getTime(), writeId: 'ahead' };
  expect(await stage.store.putTask('default', stored!.version, ahead)).not.toBeNull();
  expect(seconds(await ask(node, (tasks) => tasks.next('t', { count: 2 })))).toEqual([360, 420]);
  const after = at(0);
  expect(seconds(await ask(node, (tasks) => tasks.next('t', { after, count: 3 })))).toEqual([60, 360, 420]);
  const why = await ask(node, (tasks) => tasks.explain('t', at(240)));
  expect(why).toMatchObject({ verdict: 'forgotten', text: expect.stringContaining('went back') as string });
  expect(await ask(node, (tasks) => tasks.explain('t', at(360)))).toMatchObject({ verdict: 'upcoming' });
  expect(await ask(node, (tasks) => tasks.explain('t', at(241)))).toMatchObject({ verdict: 'not-scheduled' });
});

describe('explain', () => {
  const verdictOf = async (node: Process, instant: Date): Promise<string> =>
    (await ask(node, (tasks) => tasks.explain('t', instant))).verdict;

  test('says what became of every instant', async () => {
    await stage.clock.advance(30_000);
    const gate = new Gate();
    const work = (): unknown => (stage.log.length === 2 ? gate.promise : undefined);
    const node = await stage.node(MINUTES, { work });
    await stage.clock.advance(150_500);
    expect(await verdictOf(node, at(0))).toBe('before-first-sight');
    expect(await ask(node, (tasks) => tasks.explain('t', at(60)))).toMatchObject({
      verdict: 'completed',
      text: expect.stringMatching(
        /^2026-01-01T00:01:00.000Z ran on node-1 \(cron\) and completed at 2026/,
      ) as string,
    });
    expect(await verdictOf(node, at(120))).toBe('running');
    expect(await ask(node, (tasks) => tasks.explain('t', at(180)))).toMatchObject({
      verdict: 'skipped',
      text: expect.stringContaining('overlap with 2026-01-01T00:02:00.000Z') as string,
    });
    expect(await verdictOf(node, at(240))).toBe('upcoming');
    expect(await verdictOf(node, at(61))).toBe('not-scheduled');
    gate.open();
  });

  test('says that no node was up', async () => {
    const first = await stage.node(MINUTES);
    await stage.clock.advance(61_000);
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(200_000);
    const admin = stage.process();
    expect(await verdictOf(admin, at(120))).toBe('due');
    const node = await stage.node(MINUTES);
    await stage.clock.advance(2_000);
    for (const instant of range(120, 180, 60)) expect(await verdictOf(node, at(instant))).toBe('missed');
    expect(await verdictOf(node, at(240))).toBe('completed');
  });
});
