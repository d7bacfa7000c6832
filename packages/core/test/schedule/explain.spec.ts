/** `explain` with each of its answers: for every instant a verdict, and a sentence that names who, what or why. */
import { Gate, sleep } from '../runs/stage.js';
import { MINUTES, saying, ScheduleStage } from './stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

test('it ran on this node, and the one that lost says the same', async () => {
  const nodes = [await stage.node(MINUTES), await stage.node(MINUTES)];
  await stage.clock.advance(61_000);
  const winner = stage.log[0]!.node;
  for (const node of nodes)
    expect(await stage.why(node, 60)).toEqual(['completed', saying(`ran on ${winner} (cron)`)]);
});

test('it was taken over: the node that went on with it is named', async () => {
  const gate = new Gate();
  const work = (): unknown => (stage.log.length === 1 ? gate.promise : undefined);
  const nodes = [await stage.node(MINUTES, { work }), await stage.node(MINUTES, { work })];
  await stage.clock.advance(60_500);
  const victim = stage.log[0]!.node === 'node-1' ? 0 : 1;
  nodes[victim]!.kill();
  await stage.clock.advance(20_000);
  const answer = await stage.why(nodes[1 - victim]!, 60);
  expect(answer).toEqual(['completed', saying(`ran on node-${2 - victim} (takeover)`)]);
});

test('it runs, it failed, and it waits for a person', async () => {
  const work = async (): Promise<void> => {
    if (stage.log.length === 1) throw new TypeError('boom');
    await sleep(stage.clock, 30_000);
  };
  const node = await stage.node({ ...MINUTES, onCrash: 'hold' }, { work });
  const other = await stage.node({ ...MINUTES, onCrash: 'hold' }, { work });
  await stage.clock.advance(121_000);
  expect(await stage.why(node, 60)).toEqual(['failed', saying('TypeError: boom')]);
  expect(await stage.why(node, 120)).toEqual(['running', saying(`runs on ${stage.log[1]!.node} since`)]);
  const victim = stage.log[1]!.node === 'node-1' ? node : other;
  victim.kill();
  await stage.clock.advance(20_000);
  const left = victim === node ? other : node;
  expect(await stage.why(left, 120)).toEqual(['on-hold', saying('waits for a person')]);
});

test('another run overlapped with it', async () => {
  const work = (): unknown => sleep(stage.clock, 90_000);
  const node = await stage.node(MINUTES, { work });
  await stage.clock.advance(121_000);
  expect(await stage.why(node, 120)).toEqual(['skipped', saying('overlap with 2026-01-01T00:01:00.000Z')]);
});

test('it ran although a range around it was missed, until nobody can know that any more', async () => {
  const options = { every: '10m' } as const;
  const rarely = { sweepInterval: '20s', retain: { runs: '1m', keys: '2m' } } as const;
  const first = await stage.node(options, { guard: rarely });
  await stage.clock.runUntil(first.guard.close());
  await stage.clock.advance(1_850_000);
  const window = { from: stage.at(600), to: stage.at(600) };
  await stage.clock.runUntil(stage.process().guard.tasks.backfill('t', window));
  const node = await stage.node(options, { guard: rarely });
  // What was asked for is found by the first sweep that comes a sweep interval later.
  await stage.clock.advance(50_000);
  const verdicts = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const at of [600, 1_200, 1_800]) found.push((await stage.explained(node, at)).verdict);
    return found;
  };
  expect(await verdicts()).toEqual(['completed', 'missed', 'completed']);
  await stage.clock.advance(1_500_000);
  expect(await verdicts()).toEqual(['forgotten', 'forgotten', 'forgotten']);
});

test('it is older than the deadline, or waits because nobody can have its lock', async () => {
  const node = await stage.node({ ...MINUTES, startingDeadline: '20s' });
  await stage.clock.advance(59_000);
  node.locks.down();
  await stage.clock.advance(12_000);
  expect(await stage.why(node, 60)).toEqual(['pending', saying('waits to be begun')]);
  await stage.clock.advance(15_000);
  expect(await stage.why(node, 60)).toEqual(['expired', saying('older than the startingDeadline')]);
});

test('it fell into a pause, and who asks is told the note', async () => {
  const node = await stage.node(MINUTES);
  await stage.clock.runUntil(node.guard.tasks.pause('t', { note: 'Ada, month end' }));
  await stage.clock.advance(61_000);
  expect(await stage.why(node, 60)).toEqual(['paused', saying('(Ada, month end)')]);
  await stage.clock.runUntil(node.guard.tasks.resume('t'));
  expect(await stage.why(node, 60)).toEqual(['was-paused', saying('the task was paused')]);
});

test('the schedule was changed', async () => {
  const old = await stage.node(MINUTES);
  await stage.clock.advance(1_000);
  await stage.clock.runUntil(old.guard.close());
  await stage.clock.advance(100_000);
  const node = await stage.node({ cron: '30 * * * *' });
  expect(await stage.why(node, 60)).toEqual(['definition-changed', saying('the schedule was changed')]);
});

test('[V30] no node was up that knows the task: one that does not know it can tell', async () => {
  const knows = await stage.node(MINUTES);
  const stranger = stage.process();
  await stage.start(stranger);
  await stage.clock.advance(1_000);
  await stage.clock.runUntil(knows.guard.close());
  await stage.clock.advance(130_000);
  expect(await stage.why(stranger, 60)).toEqual([
    'due',
    saying('no node that follows the schedule has begun it'),
  ]);
  await stage.node(MINUTES);
  expect(await stage.why(stranger, 60)).toEqual(['missed', saying('no node that knows the task was up')]);
});

test('it has not come, is none, or came before anybody followed the schedule', async () => {
  await stage.clock.advance(90_000);
  const node = await stage.node(MINUTES);
  expect(await stage.why(node, 120)).toEqual(['upcoming', saying('has not come yet')]);
  expect(await stage.why(node, 121)).toEqual(['not-scheduled', saying('is not in the schedule')]);
  expect(await stage.why(node, 60)).toEqual(['before-first-sight', saying('before any node followed')]);
});

test('it was settled, and its record is pruned', async () => {
  const retain = { runs: '1m', keys: '2m' } as const;
  const node = await stage.node({ every: '1m' }, { guard: { retain } });
  await stage.clock.advance(30 * 60_000);
  expect(await stage.why(node, 60)).toEqual(['forgotten', saying('its record is gone')]);
});
