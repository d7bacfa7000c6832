/**
 * A backend is away for some minutes: from before, at or after an instant; the locks, the run store, or both. Alarms
 * need the run store alone. Afterwards `catchUp` decides about all that is due at once, whatever had been planned, tried
 * or recorded of it when the trouble began.
 */
import type { CatchUp, GuardOptions, TaskOptions } from '@guard/core';
import type { Process } from '../../runs/stage.js';
import { sleep } from '../../runs/stage.js';
import { range, ScheduleStage, START_MS, SWEEP } from '../stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const MINUTES = { cron: '* * * * *' } as const;
/** A node looks for its lock twice in a sweep interval: while the locks are away, that is most of what there is to play. */
const RARELY = { sweepInterval: '6s' } as const;
const ALL = { all: { max: 2 } } as const;

type Away = 'locks' | 'store' | 'both';

interface Course {
  readonly fromMs: number;
  readonly forMs?: number;
  readonly guard?: Partial<GuardOptions>;
}

/** Two nodes, and a backend that is away from `fromMs` on; answers the alarms that were raised meanwhile. */
async function awayFor(away: Away, options: TaskOptions<void>, course: Course): Promise<string[]> {
  const nodes: Process[] = [];
  const { guard = RARELY } = course;
  for (let node = 0; node < 2; node += 1) nodes.push(await stage.node({ ...MINUTES, ...options }, { guard }));
  await stage.clock.advance(course.fromMs);
  for (const node of nodes) down(node, away);
  await stage.clock.advance(course.forMs ?? 180_000);
  const raised = alarms();
  for (const { locks, state } of nodes) {
    locks.heal();
    state.heal();
  }
  await stage.clock.advance(70_000);
  return raised;
}

function down({ locks, state }: Process, away: Away): void {
  if (away !== 'store') locks.down();
  if (away !== 'locks') state.down();
}

/** Each alarm once for every node that told it. */
function alarms(): string[] {
  return stage.told('alarm').map(({ payload }) => {
    const { reason, run } = payload as { reason: string; run?: { key: string } };
    return run === undefined ? reason : `${reason} ${(Date.parse(run.key) - START_MS) / 1_000}`;
  });
}

/**
 * Instants, in seconds, that began so late that they were made up for. One that fell due in the five seconds before the
 * backend came back is on time when that is decided, however long a node then takes to find its lock.
 */
function madeUpFor(backAtMs: number): number[] {
  const late = stage.log.filter(({ key, atS }) => atS - (Date.parse(key) - START_MS) / 1_000 > 5.2);
  expect(late.map(({ trigger }) => trigger)).toEqual(late.map(() => 'catch-up'));
  const instants = late.map(({ key }) => (Date.parse(key) - START_MS) / 1_000);
  return instants.filter((at) => at < backAtMs / 1_000 - 5);
}

/** The instants that were passed over, each by itself or in a summary, with the reason of all of them. */
async function passed(): Promise<number[]> {
  const runs = (await stage.records()).filter((run) => run.state === 'expired');
  const seconds = (ms: number): number => (ms - START_MS) / 1_000;
  const instants = runs.flatMap((run) => {
    if (run.state !== 'expired' || run.summary === undefined) return [seconds(run.scheduledForMs!)];
    const { fromMs, toMs } = run.summary;
    return range(Math.floor(seconds(fromMs) / 60) * 60 + 60, seconds(toMs), 60);
  });
  return instants.sort((a, b) => a - b);
}

describe('[S8] the lock backend is away, the run store is up: an alarm is raised on one node', () => {
  test.each([-30_000, -5_000, 0, 500])('from %d ms after an instant on', async (after) => {
    const raised = await awayFor('locks', { alarmAfter: '100s' }, { fromMs: 120_000 + after });
    expect([...raised].sort()).toEqual(['no-success', after > 0 ? 'overdue 180' : 'overdue 120']);
    expect(alarms()).toEqual(raised);
  });

  test('also while a run of the task is recorded as running, and nobody can tell whether it is', async () => {
    const work = (): unknown => sleep(stage.clock, 3_600_000);
    const nodes = [await stage.node(MINUTES, { work }), await stage.node(MINUTES, { work })];
    await stage.clock.advance(65_000);
    for (const node of nodes) down(node, 'locks');
    await stage.clock.advance(90_000);
    expect(alarms()).toEqual(['overdue 120']);
  });

  test('also on a node that finds something to plan every second', async () => {
    const fail = (): never => {
      throw new Error('boom');
    };
    await stage.node({ every: '1s', alarmAfter: '10s' }, { work: fail });
    await stage.clock.advance(30_000);
    expect(alarms().filter((one) => one === 'no-success')).toHaveLength(1);
  });
});

test.each<Away>(['store', 'both'])(
  '[S8] %s: an alarm that could not be raised is raised afterwards',
  async (away) => {
    const raised = await awayFor(away, { alarmAfter: '100s' }, { fromMs: 119_000 });
    expect([raised, alarms()]).toEqual([[], ['no-success']]);
  },
);

describe('[V5] [S8] afterwards catchUp decides exactly', () => {
  const cases = [-30_000, 0, 500].map((after): [Away, number] => ['locks', after]);

  describe.each<[Away, number]>([...cases, ['store', -5_000], ['both', -5_000]])(
    '%s away from %d ms after an instant on',
    (away, after) => {
      test.each<[CatchUp, number]>([
        ['none', 0],
        ['latest', 1],
        [ALL, 2],
      ])('%j', async (catchUp, most) => {
        const course = { fromMs: 120_000 + after, forMs: 180_000 };
        await awayFor(away, { catchUp }, course);
        // Whichever of them was on time again when the nodes were ready: the newest ones before it.
        const made = madeUpFor(course.fromMs + course.forMs);
        expect(made.length).toBeLessThanOrEqual(most);
        const began = stage.instants();
        expect([...began, ...(await passed())].sort((a, b) => a - b)).toEqual(range(60, began.at(-1)!, 60));
        const skipped = (await passed()).at(-1) ?? 0;
        expect(began.filter((at) => at > 120 && at < skipped)).toEqual([]);
        expect(stage.told('run-expired').length).toBe(((await stage.states())['expired'] ?? []).length);
      });
    },
  );

  test('a deadline decides as well, whether an instant was planned before the trouble or not', async () => {
    const options = { catchUp: { all: { max: 10 } }, startingDeadline: '90s' } as const;
    await awayFor('locks', options, { fromMs: 115_000 });
    // Up from 295 on: what was due before 205 is too late.
    expect(stage.instants()).toEqual([60, 240, 300, 360]);
    expect(await passed()).toEqual([120, 180]);
  });

  test('newer instants that came while a lock was waited for are counted', async () => {
    // Judged before 180 s came, and granted after it.
    await awayFor('locks', { catchUp: 'latest' }, { fromMs: 119_000, forMs: 62_500, guard: SWEEP });
    expect(stage.instants()).toEqual([60, 180, 240]);
    expect(await passed()).toEqual([120]);
  });
});
