/** How a node measures its clock against the run store's: it tells of a skew that there is, and of no other. */
import { ScheduleStage, shifted } from './stage.js';

const OFTEN = { every: '5s' } as const;

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

interface Skew {
  readonly skewMs: number;
  readonly stopped: boolean;
}

const told = (): Skew[] => stage.told('clock-skew').map(({ payload }) => payload as Skew);

describe('[B152] clocks that agree are never told to differ', () => {
  test.each([
    ['down', 1],
    ['down', 8],
    ['cut', 1],
    ['cut', 8],
  ] as const)('after the run store was away (%s) for %i minutes', async (how, minutes) => {
    const node = await stage.node({ cron: '* * * * *' });
    await stage.clock.advance(40_000);
    node.state[how]();
    await stage.clock.advance(minutes * 60_000);
    node.state.heal();
    await stage.clock.advance(120_000);
    expect(told()).toEqual([]);
    expect(Math.abs(node.guard.health().skewMs!)).toBeLessThan(5);
  });

  test.each([
    ['on their way there', { requestMs: 4_500 }],
    ['on their way back', { replyMs: 4_500 }],
    ['late on both ways', { requestMs: 3_000, replyMs: 1_900 }],
  ])('where answers of the store are %s', async (_what, delay) => {
    const node = await stage.node(OFTEN);
    await stage.clock.advance(5_000);
    const slow = node.state.plan.play({ type: 'delay', ...delay });
    await stage.clock.advance(200_000);
    slow.stop();
    await stage.clock.advance(120_000);
    expect(told()).toEqual([]);
  });

  test('where the first answer ever comes late', async () => {
    const node = await stage.node(OFTEN, { start: false });
    const slow = node.state.plan.play({ type: 'delay', requestMs: 4_800 }, { verbs: ['now'] });
    await stage.start(node);
    await stage.clock.advance(30_000);
    slow.stop();
    await stage.clock.advance(60_000);
    expect(told()).toEqual([]);
    expect(Math.abs(node.guard.health().skewMs!)).toBeLessThan(5);
  });

  test('after a sleep of the machine nothing is said before the store was asked', async () => {
    const node = await stage.node({ cron: '0 0 * * *' });
    stage.clock.suspend(3_600_000);
    expect(node.guard.health().skewMs).toBeUndefined();
    await stage.clock.advance(60_000);
    expect(Math.abs(node.guard.health().skewMs!)).toBeLessThan(5);
    expect(told()).toEqual([]);
  });
});

describe('[B152] a clock that is wrong is found', () => {
  test('also after the run store was away', async () => {
    const node = await stage.node(OFTEN, { guard: { clock: shifted(stage.clock, -3_000) } });
    await stage.clock.advance(1_000);
    node.state.cut();
    await stage.clock.advance(200_000);
    node.state.heal();
    await stage.clock.advance(120_000);
    expect(told().length).toBeGreaterThanOrEqual(2);
    for (const { skewMs } of told()) expect(Math.abs(skewMs + 3_000)).toBeLessThan(5);
  });

  test('by no more than is sure, where the store is slow; and exactly, once it is not', async () => {
    const node = await stage.node(OFTEN, {
      guard: { clock: shifted(stage.clock, 4_000) },
      start: false,
    });
    const slow = node.state.plan.play({ type: 'delay', requestMs: 4_000 }, { verbs: ['now'] });
    await stage.start(node);
    await stage.clock.advance(30_000);
    expect(told().every(({ skewMs }) => skewMs <= 4_000)).toBe(true);
    slow.stop();
    await stage.clock.advance(120_000);
    const { skewMs, stopped } = told().at(-1)!;
    expect(Math.abs(skewMs - 4_000)).toBeLessThan(5);
    expect(stopped).toBe(false);
  });

  test('and stops the node from five minutes on, however slow the store is', async () => {
    const clock = shifted(stage.clock, 310_000);
    const node = await stage.node(OFTEN, { guard: { clock }, start: false });
    node.state.plan.play({ type: 'delay', requestMs: 2_000, replyMs: 2_000 }, { verbs: ['now'] });
    await stage.start(node);
    await stage.clock.advance(60_000);
    expect(told()[0]).toMatchObject({ stopped: true });
    expect(stage.instants()).toEqual([]);
    expect(node.guard.health().plans).toBe(false);
  });
});
