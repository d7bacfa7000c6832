/** What a guard knows of its own health, and that a node which nobody counts on begins nothing by itself. */
import { ScheduleStage } from './stage.js';

const SECONDS = { cron: '* * * * * *' };

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

test('says whether it is started, how far its clock is off, and that it is closed', async () => {
  const node = await stage.node(SECONDS, { start: false });
  expect(node.guard.health()).toEqual({
    state: 'idle',
    skewMs: undefined,
    missedHeartbeats: 0,
    plans: false,
    unavailable: [],
  });
  await stage.start(node);
  expect(node.guard.health()).toMatchObject({
    state: 'started',
    skewMs: 0,
    missedHeartbeats: 0,
    plans: true,
  });
  stage.clock.shiftWall(2_000);
  expect(node.guard.health()).toMatchObject({ plans: true });
  await stage.clock.runUntil(node.guard.close());
  expect(node.guard.health()).toMatchObject({ state: 'closed', plans: false });
});

test('a node that could not announce itself three times plans nothing, until it can', async () => {
  const node = await stage.node(SECONDS);
  await stage.clock.advance(3_050);
  const before = stage.instants().length;
  node.locks.down();
  await stage.clock.advance(60_000);
  const { missedHeartbeats, plans, unavailable } = node.guard.health();
  expect(missedHeartbeats).toBeGreaterThanOrEqual(3);
  expect(plans).toBe(false);
  expect(unavailable).toEqual(['memory']);
  expect(stage.instants()).toHaveLength(before);
  node.locks.heal();
  await stage.clock.advance(40_000);
  expect(node.guard.health()).toMatchObject({ missedHeartbeats: 0, plans: true, unavailable: [] });
  expect(stage.instants().length).toBeGreaterThan(before + 5);
});

test('the others go on meanwhile', async () => {
  const node = await stage.node(SECONDS);
  await stage.node(SECONDS);
  node.locks.down();
  await stage.clock.advance(120_000);
  expect(node.guard.health().plans).toBe(false);
  const late = stage.log.filter(({ atS }) => atS > 60);
  expect(late.length).toBeGreaterThan(50);
  expect(late.every((run) => run.node === 'node-2')).toBe(true);
});
