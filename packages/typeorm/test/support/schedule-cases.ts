/**
 * Schedules on a real database, the same cases on every dialect: several guards, each with connections of its own, in
 * real time. What whole processes do beside that is the soak's (`test/soak`).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Clock,
  createGuard,
  type Guard,
  type GuardOptions,
  type RunRecord,
  systemClock,
  type TaskOptions,
} from '@guard/core';
import { withoutGaps } from '../soak/judge.js';
import { type OpenStore, openStore, prepare, type SoakStore } from '../soak/store.js';

/** A dialect. */
export interface Dialect {
  /** A new, empty store. */
  newStore(): SoakStore;
  /** Whose clock says what is due: a server's, or that of the process itself. */
  readonly clock: 'server' | 'process';
}

const EVERY_MS = 500;
const OFTEN = { every: EVERY_MS, catchUp: { all: { max: 100 } } } as const satisfies TaskOptions<void>;

/** All cases. */
export function describeSchedules({ newStore, clock: whose }: Dialect): void {
  let store: SoakStore;
  let opened: OpenStore[];
  let guards: Guard[];
  let ran: { readonly key: string; readonly node: number }[];

  beforeEach(async () => {
    [store, opened, guards, ran] = [newStore(), [], [], []];
    await prepare(store);
  });
  afterEach(async () => {
    await Promise.all(guards.map((guard) => guard.close()));
    for (const one of opened) await one.close();
  });

  /** A guard with connections of its own; with options, it knows the task. */
  async function node(options?: TaskOptions<void>, more: Partial<GuardOptions> = {}): Promise<Guard> {
    const { clock } = more;
    const one = await openStore(store, clock === undefined ? {} : { clock });
    opened.push(one);
    const guard = createGuard({
      ...{ locks: one.locks, runs: one.runs, defaults: { ttl: '2s' }, sweepInterval: '500ms', grace: '2s' },
      ...more,
    });
    const place = guards.push(guard);
    if (options !== undefined)
      guard.task('t', options, (run) => void ran.push({ key: run.key, node: place }));
    return guard;
  }

  async function records(): Promise<readonly RunRecord[]> {
    const { runs } = await guards[0]!.runs.list({ task: 't', limit: 1_000 });
    return runs.map(({ run }) => run);
  }

  const twice = (): string[] => {
    const keys = ran.map(({ key }) => key);
    return keys.filter((key, place) => keys.indexOf(key) !== place);
  };

  async function until(done: () => Promise<boolean> | boolean): Promise<void> {
    const endMs = performance.now() + 20_000;
    while (!(await done())) {
      if (performance.now() > endMs) throw new Error('it did not come about within 20 s');
      await sleep(50);
    }
  }

  it('[V8] [V30] four nodes that boot together follow one schedule, and one that does not know the task leaves it alone', async () => {
    for (let count = 0; count < 4; count += 1) await node(OFTEN);
    const stranger = await node();
    stranger.task('other', {}, () => undefined);
    await Promise.all(guards.map((guard) => guard.start()));
    await until(() => ran.length >= 6);
    expect(twice()).toEqual([]);
    expect(ran.map((one) => one.node)).not.toContain(5);
    expect(withoutGaps(await records(), EVERY_MS)).toEqual([]);
    const views = await Promise.all(guards.map((guard) => guard.tasks.get('t')));
    expect(
      new Set(views.map((view) => `${view?.schedule?.text} ${view?.schedule?.since.toISOString()}`)).size,
    ).toBe(1);
  });

  it('[V1] [V28] [B156] nodes whose clocks are seconds apart run nothing twice, and leave nothing without a record', async () => {
    for (const offMs of [-2_000, 0, 3_000]) await node(OFTEN, { clock: shifted(offMs) });
    await Promise.all(guards.map((guard) => guard.start()));
    await until(() => ran.length >= 5);
    // The others go on where the fastest one ends, however far ahead it was.
    await guards.pop()!.close();
    const before = ran.length;
    await until(() => ran.length >= before + 3);
    expect(twice()).toEqual([]);
    expect(withoutGaps(await records(), EVERY_MS)).toEqual([]);
    expect((await records()).filter(({ state }) => state === 'expired')).toEqual([]);
  });

  it('[V28] [S8] a process that is an hour ahead runs nothing twice, and whatever it passes over has its reason', async () => {
    const right = await node({ every: EVERY_MS });
    await right.start();
    await until(() => ran.length >= 2);
    const skewed: unknown[] = [];
    const ahead = await node({ every: EVERY_MS }, { clock: shifted(3_600_000) });
    ahead.on('clock-skew', (event) => skewed.push(event));
    await ahead.start();
    await sleep(1_500);
    await ahead.close();
    expect(twice()).toEqual([]);
    expect(withoutGaps(await records(), EVERY_MS)).toEqual([]);
    const passed = (await records()).filter(({ state }) => state === 'expired');
    if (whose === 'server') {
      // It sees that it is wrong, and stays out.
      expect(skewed).toEqual([expect.objectContaining({ stopped: true })]);
      expect(ran.filter((one) => one.node === 2)).toEqual([]);
      expect(passed).toEqual([]);
      return;
    }
    // The store's clock is its own, so it cannot know; what the hour held is recorded, and the mark is an hour ahead.
    expect(passed.length).toBeGreaterThanOrEqual(1);
    const inAnHour = new Date(Math.floor((Date.now() + 1_800_000) / EVERY_MS) * EVERY_MS);
    expect((await right.tasks.get('t'))!.settledUpTo!.getTime()).toBeGreaterThan(inAnHour.getTime());
    const late = await node(undefined, { clock: shifted(3_600_000) });
    expect(await late.tasks.explain('t', inAnHour)).toMatchObject({ verdict: 'missed' });
  });

  it('[S8] a pause holds on every node; what fell into it is told by explain, and a backfill makes up for it once', async () => {
    const [a, b] = [await node(OFTEN), await node(OFTEN)];
    await Promise.all([a.start(), b.start()]);
    await until(() => ran.length >= 2);
    const { paused } = await b.tasks.pause('t', { note: 'the books are closed' });
    await sleep(2 * EVERY_MS);
    const before = ran.length;
    await sleep(2 * EVERY_MS);
    expect(ran).toHaveLength(before);
    const inPause = new Date(Math.ceil((paused!.since.getTime() + 1) / EVERY_MS) * EVERY_MS);
    expect(await a.tasks.explain('t', inPause)).toMatchObject({ verdict: 'paused' });
    await a.tasks.resume('t');
    await until(() => ran.length > before);
    expect(await b.tasks.explain('t', inPause)).toMatchObject({ verdict: 'was-paused' });
    const window = { from: inPause, to: inPause };
    expect(await a.tasks.backfill('t', { ...window, preview: true })).toMatchObject({ missing: [inPause] });
    await a.tasks.backfill('t', window);
    await until(() => ran.some(({ key }) => key === inPause.toISOString()));
    expect(await a.tasks.backfill('t', window)).toMatchObject({ missing: [], present: [{ at: inPause }] });
    expect(twice()).toEqual([]);
    await until(async () => (await a.tasks.explain('t', inPause)).verdict === 'completed');
    expect(await b.tasks.explain('t', inPause)).toMatchObject({ trigger: 'backfill' });
  });

  it('[V26] a task without a success for alarmAfter raises one alarm in the cluster', async () => {
    const alarms: unknown[] = [];
    const failing = { every: EVERY_MS, alarmAfter: '1s' } as const;
    for (let count = 0; count < 3; count += 1) {
      const guard = await node();
      guard.task('t', failing, () => Promise.reject(new Error('no')));
      guard.on('alarm', (alarm) => void (alarm.reason === 'no-success' && alarms.push(alarm)));
    }
    await Promise.all(guards.map((guard) => guard.start()));
    await until(() => alarms.length > 0);
    await sleep(1_500);
    expect(alarms).toEqual([{ task: 't', reason: 'no-success' }]);
  });

  it('[V15] an instant whose record was pruned is not created again by a node that starts afterwards', async () => {
    const first = await node(OFTEN);
    await first.start();
    await until(() => ran.length >= 3);
    await first.tasks.pause('t', { note: 'while nothing is due, the list of what was planned empties' });
    await until(async () => (await opened[0]!.runs.task('default', 't'))!.record.planned === undefined);
    await first.close();
    const inAMinute = (await opened[0]!.runs.now()) + 60_000;
    await opened[0]!.runs.prune('default', {
      recordsBeforeMs: inAMinute,
      keysBeforeMs: inAMinute,
      limit: 100,
    });
    const late = await node(OFTEN);
    await late.start();
    await sleep(1_200);
    await late.tasks.resume('t');
    const before = ran.length;
    await until(() => ran.length > before + 1);
    expect(twice()).toEqual([]);
  });

  it('[V9] a changed schedule settles the old one and starts from now, while the node that keeps the old one says so', async () => {
    const conflicts: unknown[] = [];
    const old = await node({ every: '1d' });
    old.on('schedule-conflict', (event) => conflicts.push(event));
    await old.start();
    await sleep(50);
    await (await node(OFTEN)).start();
    await until(() => ran.length >= 2 && conflicts.length > 0);
    expect(conflicts).toEqual([{ task: 't', own: 'every 86400000ms', inForce: `every ${EVERY_MS}ms` }]);
    const since = (await old.tasks.get('t'))!.schedule!.since.getTime();
    expect(ran.every(({ key }) => Date.parse(key) >= since)).toBe(true);
  });
}

/** The machine's clock with its wall time off. */
function shifted(offMs: number): Clock {
  const now: Clock['now'] = () => {
    const { monoMs, wallMs } = systemClock.now();
    return { monoMs, wallMs: wallMs + offMs };
  };
  return { ...systemClock, now };
}
