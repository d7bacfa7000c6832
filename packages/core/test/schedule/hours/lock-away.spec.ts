/**
 * The lock backend is away while the run store is up: what is due is planned and recorded, and cannot begin. When the
 * locks come back, the deadline and `catchUp` decide about what waited, as they do about what nobody planned.
 */
import type { CatchUp, GuardOptions, RunRecord, TaskOptions } from '@guard/core';
import { range, ScheduleStage, START_MS } from '../stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const SECONDS = { cron: '* * * * * *' } as const;
const MINUTES = { cron: '* * * * *' } as const;

/** More instants than wait in a course of twenty seconds: locks that were cut off are found again in the seconds after it. */
const ALL: CatchUp = { all: { max: 30 } };

/** A node looks for its lock twice in a sweep interval: while the locks are away for long, that is most of the work. */
const RARELY = { sweepInterval: '10s' } as const;

type Away = 'down' | 'cut';

interface Course {
  readonly how?: Away;
  readonly fromMs: number;
  readonly forMs: number;
  readonly thenMs: number;
  readonly guard?: Partial<GuardOptions>;
}

/** Two nodes, whose lock backend is away from `fromMs` for `forMs`; then it is back for `thenMs`. */
async function awayFor(
  options: TaskOptions<void>,
  { how = 'down', fromMs, forMs, thenMs, guard = {} }: Course,
): Promise<void> {
  const nodes = [await stage.node(options, { guard }), await stage.node(options, { guard })];
  await stage.clock.advance(fromMs);
  for (const { locks } of nodes) locks[how]();
  await stage.clock.advance(forMs);
  for (const { locks } of nodes) locks.heal();
  await stage.clock.advance(thenMs);
}

/** The instants that ended in these states, each by itself or in a summary, in seconds after the start. */
async function ended(...states: readonly RunRecord['state'][]): Promise<number[]> {
  const runs = (await stage.records()).filter(({ state }) => states.includes(state));
  return runs.flatMap(instantsOf).sort((a, b) => a - b);
}

function instantsOf(run: RunRecord): number[] {
  const second = (ms: number): number => Math.floor((ms - START_MS) / 1_000);
  if (run.state !== 'expired' || run.summary === undefined) return [second(run.scheduledForMs!)];
  return range(second(run.summary.fromMs) + 1, second(run.summary.toMs));
}

async function reasons(): Promise<string[]> {
  const expired = (await stage.records()).flatMap((run) => (run.state === 'expired' ? [run.reason] : []));
  return [...new Set(expired)];
}

/** The instants that began later than what counts as on time, in the order in which they began. */
function late(onTimeS = 5): number[] {
  const began = stage.log.map(({ key, atS }) => ({ at: (Date.parse(key) - START_MS) / 1_000, atS }));
  return began.filter(({ at, atS }) => atS - at > onTimeS + 0.2).map(({ at }) => at);
}

describe.each<Away>(['down', 'cut'])('[V5] [S8] the lock backend is away (%s) over some ticks', (how) => {
  const course = { how, fromMs: 5_100, forMs: 20_000, thenMs: 20_000 } as const;
  const all = range(1, 45);

  afterEach(async () => {
    // Each instant is in one record, and in one only; none began twice.
    expect(await ended('completed', 'expired', 'skipped')).toEqual(all);
    expect(new Set(stage.instants()).size).toBe(stage.log.length);
  });

  test('latest: of those that waited the newest one runs, and the others say why not', async () => {
    await awayFor(SECONDS, course);
    expect(late().length).toBeLessThanOrEqual(1);
    expect(await ended('expired')).toEqual(expect.arrayContaining(range(6, 18)));
    expect(await reasons()).toEqual(['missed']);
    expect(stage.told('run-expired').length).toBe((await ended('expired')).length);
  });

  test('none: what is late by more than five seconds does not run', async () => {
    await awayFor({ ...SECONDS, catchUp: 'none' }, course);
    expect(late()).toEqual([]);
    expect(await ended('expired')).toEqual(expect.arrayContaining(range(6, 18)));
  });

  test('all: what waited runs once, oldest first', async () => {
    await awayFor({ ...SECONDS, catchUp: ALL }, course);
    expect(await ended('expired')).toEqual([]);
    expect(late()).toEqual(expect.arrayContaining(range(6, 18)));
    expect(late()).toEqual([...late()].sort((a, b) => a - b));
  });

  test('all: not more than its max, and the newest of them', async () => {
    await awayFor({ ...SECONDS, catchUp: { all: { max: 3 } } }, course);
    expect(late().length).toBeLessThanOrEqual(3);
    // Where the border is, depends on when the lock is found again: those of the last five seconds are on time then.
    expect(await ended('expired')).toEqual(expect.arrayContaining(range(6, 16)));
    expect(Math.min(...late())).toBeGreaterThan(16);
  });

  test('what is past its startingDeadline expires, whatever catchUp says', async () => {
    await awayFor({ ...SECONDS, catchUp: ALL, startingDeadline: '4s' }, course);
    expect(await reasons()).toEqual(['startingDeadline']);
    expect(late(4)).toEqual([]);
    expect(await ended('expired')).toEqual(expect.arrayContaining(range(6, 20)));
  });
});

describe('[V5] the lock backend is away for so long that nodes stop planning', () => {
  const course = { fromMs: 61_000, forMs: 309_000, thenMs: 60_000, guard: RARELY } as const;

  test.each<[CatchUp, number[]]>([
    ['none', []],
    ['latest', [360]],
    [{ all: { max: 2 } }, [300, 360]],
    [{ all: { max: 10, within: '90s' } }, [300, 360]],
    [{ all: { max: 10 } }, [120, 180, 240, 300, 360]],
  ])('%j', async (catchUp, made) => {
    await awayFor({ ...MINUTES, catchUp }, course);
    expect(stage.instants()).toEqual([60, ...made, 420]);
    const runs = (await stage.records()).filter((run) => run.state === 'expired');
    const covered = runs.flatMap((run) => instantsOf(run).filter((at) => at % 60 === 0));
    expect(covered.sort((a, b) => a - b)).toEqual(range(120, 360, 60).filter((at) => !made.includes(at)));
    expect(stage.told('run-expired').length).toBe(runs.length);
  });
});

test('all within: one that waited longer than that is passed over, although nothing else is due', async () => {
  const all = { max: 10, within: '10s' } as const;
  await awayFor({ every: '10m', catchUp: { all } }, { fromMs: 599_000, forMs: 30_000, thenMs: 30_000 });
  expect(stage.log).toEqual([]);
  expect(await stage.record('t', '2026-01-01T00:10:00.000Z')).toMatchObject({
    state: 'expired',
    reason: 'missed',
  });
  const { verdict, text } = await stage.processes[0]!.guard.tasks.explain('t', new Date(START_MS + 600_000));
  expect([verdict, text]).toEqual(['expired', expect.stringContaining('catchUp')]);
});

test('what a person asked for, and what once began, is not passed over', async () => {
  const node = await stage.node({ every: '10m', catchUp: 'none' }, { guard: RARELY });
  await stage.clock.advance(3 * 600_000 + 60_000);
  const { tasks } = node.guard;
  await stage.clock.runUntil(tasks.pause('t', { note: 'maintenance' }));
  await stage.clock.advance(2 * 600_000);
  await stage.clock.runUntil(tasks.resume('t'));
  node.locks.down();
  const window = { from: new Date(START_MS + 4 * 600_000), to: new Date(START_MS + 5 * 600_000) };
  await stage.clock.runUntil(tasks.backfill('t', window));
  await stage.clock.advance(20_000);
  node.locks.heal();
  await stage.clock.advance(30_000);
  expect(stage.log.slice(-2)).toMatchObject([{ trigger: 'backfill' }, { trigger: 'backfill' }]);
  expect(await reasons()).toEqual(['paused']);
});
