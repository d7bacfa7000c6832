/** Several occurrences that wait at once: their order, whoever goes through them, and what raises no alarm. */
import { range, ScheduleStage, START_MS } from './stage.js';
import { sleep } from '../runs/stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const HOUR_S = 3_600;

test('[V6] what was missed runs one after another, oldest first, on however many nodes, and nobody calls it overdue', async () => {
  const options = { every: '1h', catchUp: { all: { max: 10 } } } as const;
  const work = (): unknown => sleep(stage.clock, 20_000);
  const first = await stage.node(options, { work });
  await stage.clock.runUntil(first.guard.close());
  await stage.clock.advance(6.5 * HOUR_S * 1_000);
  const nodes = [await stage.node(options, { work, start: false })];
  nodes.push(await stage.node(options, { work, start: false }));
  await stage.clock.runUntil(Promise.all(nodes.map(({ guard }) => guard.start())));
  await stage.clock.advance(180_000);
  expect(stage.instants()).toEqual(range(HOUR_S, 6 * HOUR_S, HOUR_S));
  expect((await stage.states())['completed']).toHaveLength(6);
  expect(stage.told('alarm')).toEqual([]);
});

test.each([
  { workMs: 1_300, wait: '5s' as const },
  { workMs: 1_050, wait: '5s' as const },
  { workMs: 1_300, wait: undefined },
])(
  '[V6] what was missed has its turn although work of $workMs ms (wait $wait) takes longer than the period of 1 s',
  async ({ workMs, wait }) => {
    const options = { every: '1s', catchUp: { all: { max: 10 } }, ...(wait && { wait }) } as const;
    const work = (): unknown => sleep(stage.clock, workMs);
    const first = await stage.node(options, { work });
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(200_500);
    for (const start of [true, true]) await stage.node(options, { work, start });
    await stage.clock.advance(90_000);
    const chosen = range(191, 200, 1).map((s) => new Date(START_MS + s * 1_000).toISOString());
    for (const key of chosen)
      expect([key, (await stage.record('t', key))?.state]).toEqual([key, 'completed']);
  },
);

describe('[V6] 200 ticks of 250 ms are missed, and the lock is held by somebody when two nodes start', () => {
  const options = { every: '250ms', catchUp: { all: { max: 10 } }, wait: '5s' } as const;

  /** The keys of the newest ten that were missed. */
  async function startBehind(heldMs: number): Promise<string[]> {
    const first = await stage.node(options);
    await stage.clock.runUntil(first.guard.close());
    await stage.clock.advance(50_100);
    const holder = { label: 'somebody' };
    const claim = { key: 'default/task/t', id: 'x', wait: false, ticketTtlMs: 6_000, session: 's', holder };
    await stage.locks.acquire([{ ...claim, ttlMs: heldMs }]);
    const nodes = [await stage.node(options, { start: false }), await stage.node(options, { start: false })];
    await stage.clock.runUntil(Promise.all(nodes.map(({ guard }) => guard.start())));
    return range(47_750, 50_000, 250).map((ms) => new Date(START_MS + ms).toISOString());
  }

  const caughtUp = (): string[] =>
    stage.log.filter(({ trigger }) => trigger === 'catch-up').map(({ key }) => key);

  test('ten run and one record tells of the others, however many come meanwhile', async () => {
    const ten = await startBehind(9_000);
    await stage.clock.advance(30_000);
    expect(caughtUp().filter((key) => ten.includes(key))).toEqual(ten);
    const summaries = (await stage.records()).filter(({ key }) => key.endsWith('/passed'));
    expect(summaries).toMatchObject([{ state: 'expired', summary: { count: 190 } }]);
  });

  test('they compete again where the locks were away before their turn came', async () => {
    const ten = await startBehind(9_000);
    await stage.clock.advance(5_000);
    for (const { locks } of stage.processes) locks.down();
    await stage.clock.advance(12_000);
    for (const { locks } of stage.processes) locks.heal();
    await stage.clock.advance(20_000);
    expect(caughtUp().filter((key) => ten.includes(key))).toEqual([]);
    expect(caughtUp().length).toBeLessThanOrEqual(10);
  });
});

test('a backfill runs oldest first, and does not take a sweep for each instant', async () => {
  const nodes = [await stage.node({ every: '10s', catchUp: 'none' }), await stage.node({ every: '10s' })];
  const { tasks } = nodes[0]!.guard;
  await stage.clock.runUntil(tasks.pause('t', { note: 'maintenance' }));
  await stage.clock.advance(405_000);
  await stage.clock.runUntil(tasks.resume('t'));
  const at = (seconds: number): Date => new Date(START_MS + seconds * 1_000);
  await stage.clock.runUntil(tasks.backfill('t', { from: at(10), to: at(400) }));
  await stage.clock.advance(4_900);
  expect(stage.instants()).toEqual(range(10, 400, 10));
  expect(stage.told('alarm')).toEqual([]);
});

test('an occurrence whose turn it is and that nobody can begin is told of as overdue, once', async () => {
  const options = { every: '1h', catchUp: { all: { max: 10 } } } as const;
  const first = await stage.node(options);
  await stage.clock.runUntil(first.guard.close());
  await stage.clock.advance(2.5 * HOUR_S * 1_000);
  const holder = { label: 'somebody' };
  const claim = { key: 'default/task/t', id: 'x', wait: false, ticketTtlMs: 6_000, session: 's', holder };
  await stage.locks.acquire([{ ...claim, ttlMs: 3_600_000 }]);
  await stage.node(options);
  await stage.node(options);
  await stage.clock.advance(60_000);
  const [alarm, ...more] = stage.told('alarm');
  expect(more).toEqual([]);
  expect(alarm).toMatchObject({ payload: { reason: 'overdue', run: { key: '2026-01-01T01:00:00.000Z' } } });
});

describe('an occurrence that is tried again', () => {
  /** The first attempt of the first instant fails. */
  const once = (): void => {
    if (stage.log.length === 1) throw new Error('boom');
  };

  test('keeps its place where its pause is shorter than a sweep interval: its lock stays with it', async () => {
    const retry = { attempts: 2, backoff: '1500ms' } as const;
    const options = { every: '1s', retry, catchUp: { all: { max: 10 } }, wait: '10s' } as const;
    for (let node = 0; node < 2; node += 1) await stage.node(options, { work: once });
    await stage.clock.advance(8_100);
    expect(stage.instants()).toEqual([1, ...range(1, 8)]);
  });

  test('[V16] lets later ones pass where the pause is longer, and runs once all the same', async () => {
    const retry = { attempts: 2, backoff: '25s' } as const;
    for (let node = 0; node < 2; node += 1) await stage.node({ every: '10s', retry }, { work: once });
    await stage.clock.advance(60_100);
    expect(stage.instants()).toEqual([10, 20, 30, 10, 40, 50, 60]);
    expect((await stage.states())['completed']).toEqual(expect.arrayContaining(range(10, 60, 10)));
  });
});
