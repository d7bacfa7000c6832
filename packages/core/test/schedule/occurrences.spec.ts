/** Occurrences in a cluster: each one once, whatever becomes of clocks, loops and nodes. */
import { range, ScheduleStage, START_MS, SWEEP } from './stage.js';
import { sleep } from '../runs/stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const EVERY_SECOND = { cron: '* * * * * *' };

describe('every occurrence once', () => {
  test('[V8] [B136] nodes that boot together and know one task have one schedule', async () => {
    const nodes = await Promise.all([1, 2, 3, 4].map(() => stage.node(EVERY_SECOND, { start: false })));
    const started = Promise.all(nodes.map(({ guard }) => guard.start()));
    await stage.clock.runUntil(started);
    await stage.clock.advance(20_050);
    expect(stage.instants()).toEqual(range(1, 20));
    expect(stage.log.every(({ trigger, key }) => trigger === 'cron' && key.endsWith('.000Z'))).toBe(true);
  });

  test('[B136] a task that is registered while its nodes run is guarded like the others', async () => {
    const nodes = [1, 2, 3].map(() => stage.process(SWEEP));
    for (const node of nodes) await stage.start(node);
    const ran: string[] = [];
    await stage.clock.advance(5_500);
    for (const { guard } of nodes) {
      guard.task('late', EVERY_SECOND, ({ key }) => ran.push(key));
      await stage.clock.advance(100);
    }
    await stage.clock.advance(9_500);
    expect(ran).toEqual(range(6, 15).map((second) => new Date(START_MS + second * 1_000).toISOString()));
  });

  test('[V1] [B128] a short task runs once although every node wakes for it, and a late starter repeats nothing', async () => {
    const work = () => sleep(stage.clock, 5);
    for (let node = 0; node < 3; node += 1) await stage.node(EVERY_SECOND, { work });
    await stage.clock.advance(10_400);
    await stage.node(EVERY_SECOND, { work });
    await stage.clock.advance(9_600);
    await stage.clock.advance(50);
    expect(stage.instants()).toEqual(range(1, 20));
    expect(await stage.states()).toEqual({ completed: range(1, 20) });
  });

  test('[B141] an interval is one series for the cluster, wherever its processes started', async () => {
    await stage.node({ every: '2s' });
    await stage.clock.advance(700);
    await stage.node({ every: '2s' });
    await stage.clock.advance(600);
    await stage.node({ every: '2s' });
    await stage.clock.advance(40_050);
    expect(stage.instants()).toEqual(range(2, 40, 2));
  });

  test('[B150] no occurrence begins before its instant', async () => {
    await stage.node(EVERY_SECOND);
    await stage.node(EVERY_SECOND);
    await stage.clock.advance(30_050);
    for (const { key, atS } of stage.log)
      // The store's time is known to the millisecond.
      expect(atS + 0.001).toBeGreaterThanOrEqual((Date.parse(key) - Date.UTC(2026, 0, 1)) / 1_000);
  });
});
