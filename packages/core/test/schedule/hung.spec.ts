/**
 * Work that never settles, whatever its signal says. Its lock runs out, so the lock cannot tell any more that it goes
 * on: the node on which it does begins nothing beside it, and where no other node goes on with the run, tells.
 */
import type { Run, TaskOptions } from '@guard/core';
import type { Process } from '../runs/stage.js';
import { Gate } from '../runs/stage.js';
import { ScheduleStage, START_MS } from './stage.js';

let stage: ScheduleStage;
beforeEach(() => {
  stage = new ScheduleStage();
});
afterEach(() => stage.close());

const LIMITS = { timeout: '4s', letGoAfter: '2s' } as const;
const FIRST = '2026-01-01T00:01:00.000Z';
const SECOND = '2026-01-01T00:02:00.000Z';
const never = (): Promise<never> => new Promise(() => undefined);

/** Works that are alive on each node, of the most that there ever were. */
const alive = new Map<string, { now: number; most: number }>();
beforeEach(() => alive.clear());

/** Counts its works; `hang` says which of them never settle. */
async function nodeWith(options: TaskOptions<void>, hang: (run: Run) => boolean): Promise<Process> {
  const name = `node-${stage.processes.length + 1}`;
  const count = { now: 0, most: 0 };
  alive.set(name, count);
  const work = async (run: Run): Promise<void> => {
    count.now += 1;
    count.most = Math.max(count.most, count.now);
    if (hang(run)) await never();
    count.now -= 1;
  };
  return stage.node(options, { work });
}

function most(): number[] {
  return [...alive.values()].map((one) => one.most);
}

async function explained(node: Process, instant: string): Promise<string> {
  return (await stage.clock.runUntil(node.guard.tasks.explain('t', new Date(instant)))).text;
}

/** Reasons of the alarms about one run. */
function alarms(key: string): string[] {
  return stage.told('alarm').flatMap(({ payload }) => {
    const { reason, run } = payload as { reason: string; run?: { key: string } };
    return run?.key === key ? [reason] : [];
  });
}

describe('work that hangs on every node', () => {
  test.each<[string, TaskOptions<void>]>([
    ['cron', { cron: '* * * * *' }],
    ['every', { every: '1m' }],
    ['retry', { every: '1m', retry: { attempts: 3, backoff: '1s' } }],
    ['all', { every: '1m', catchUp: { all: { max: 10 } } }],
  ])(
    '[S7] [S8] [L3] %s: the run is put on hold with one alarm, and no node has two works',
    async (_, how) => {
      const nodes = [];
      for (let node = 0; node < 2; node += 1) nodes.push(await nodeWith({ ...how, ...LIMITS }, () => true));
      await stage.clock.advance(300_000);
      expect(await stage.record('t', FIRST)).toMatchObject({
        state: 'on-hold',
        reason: 'unsettled',
        lastFault: { code: 'run-timeout' },
      });
      expect(alarms(FIRST)).toEqual(['on-hold']);
      expect(stage.told('run-on-hold')).toHaveLength(1);
      expect(most()).toEqual([1, 1]);
      // What came afterwards waits with a record, and that is told too.
      expect(new Set(stage.log.map(({ key }) => key))).toEqual(new Set([FIRST]));
      expect(alarms(SECOND)).toEqual(['overdue']);
      expect(stage.told('run-skipped')).toContainEqual(
        expect.objectContaining({ payload: { task: 't', key: SECOND, reason: 'busy' } }),
      );
      const newest = (await stage.states())['pending']!.at(-1) as number;
      expect(await explained(nodes[0]!, new Date(START_MS + newest * 1_000).toISOString())).toMatch(
        /is overdue, but not on this node: earlier work/,
      );
      expect(await explained(nodes[0]!, FIRST)).toContain('did not settle after its time-out');
    },
  );

  test('[S7] one node alone: the same, and a node that comes later goes on with the newest instant', async () => {
    await nodeWith({ every: '1m', ...LIMITS }, () => true);
    await stage.clock.advance(200_000);
    expect(alarms(FIRST)).toEqual(['on-hold']);
    await nodeWith({ every: '1m', ...LIMITS }, () => false);
    await stage.clock.advance(110_000);
    expect(most()).toEqual([1, 1]);
    const [, ...later] = stage.log;
    expect(new Set(later.map(({ node }) => node))).toEqual(new Set(['node-2']));
    expect(later.map(({ key }) => key)).toContain('2026-01-01T00:05:00.000Z');
    expect(await stage.record('t', SECOND)).toMatchObject({ state: 'expired', reason: 'missed' });
  });

  test.each([
    ['fail', 'failed'],
    ['hold', 'on-hold'],
  ] as const)('[S8] onCrash %s: %s, as soon as its lease is over', async (onCrash, state) => {
    await nodeWith({ every: '1m', onCrash, ...LIMITS }, () => true);
    await stage.clock.advance(60_000 + 6_000 + 6_000 + 5_000);
    expect(await stage.record('t', FIRST)).toMatchObject({ state });
    expect(alarms(FIRST)).toEqual([state]);
  });

  test('[S7] a result that comes after that is refused, and its node goes on with the schedule', async () => {
    const gate = new Gate();
    await stage.node({ every: '1m', ...LIMITS }, { work: ({ key }) => (key === FIRST ? gate.promise : 1) });
    await stage.clock.advance(170_000);
    expect(stage.log).toHaveLength(1);
    gate.open();
    await stage.clock.advance(11_000);
    expect(stage.told('run-refused')).toHaveLength(1);
    expect(await stage.record('t', FIRST)).toMatchObject({ state: 'on-hold' });
    expect(stage.instants().slice(1)).toContain(180);
    await stage.clock.advance(60_000);
    expect(stage.instants().at(-1)).toBe(240);
  });
});

describe('work that hangs on one node', () => {
  test('[L4] another node goes on with the run, and with the schedule, on time', async () => {
    const hangs = new Set<string>();
    const hang = ({ key }: Run): boolean => hangs.size === 0 && hangs.add(key) !== undefined;
    for (let node = 0; node < 2; node += 1) await nodeWith({ every: '1m', ...LIMITS }, hang);
    await stage.clock.advance(365_000);
    expect(stage.log.map(({ trigger }) => trigger)).toEqual(['cron', 'takeover', ...Array(5).fill('cron')]);
    const [first, ...others] = stage.log;
    expect(others.map(({ node }) => node)).not.toContain(first!.node);
    for (const { key, atS } of stage.log.slice(2)) {
      expect(atS - (Date.parse(key) - START_MS) / 1_000).toBeLessThan(1);
    }
    expect(stage.told('alarm')).toEqual([]);
    expect(most()).toEqual([1, 1]);
  });

  test('[S1] a call on its node is skipped beside it, and one on another node runs', async () => {
    const a = await nodeWith({ every: '1h', ...LIMITS }, () => false);
    let hung = 0;
    const work = (): unknown => (hung++ === 0 ? never() : hung);
    const options = { window: '1h', ...LIMITS } as const;
    const stuck = a.guard.run('plain', options, work).catch(() => 'timed out');
    await stage.clock.advance(20_000);
    await expect(stuck).resolves.toBe('timed out');
    const again = await stage.clock.runUntil(a.guard.run('plain', LIMITS, work));
    expect(again).toMatchObject({ status: 'skipped', reason: 'busy' });
    const other = stage.process();
    await expect(stage.clock.runUntil(other.guard.run('plain', LIMITS, work))).resolves.toMatchObject({
      value: 2,
    });
  });
});

describe('work without a time-out', () => {
  test('[S8] while it holds its lock it is slow and not hung: what comes meanwhile is skipped, and says so', async () => {
    const gate = new Gate();
    const node = await stage.node({ every: '1m' }, { work: () => gate.promise });
    await stage.clock.advance(190_000);
    expect(await stage.states()).toEqual({ running: [60], skipped: [120, 180] });
    expect(await explained(node, FIRST)).toContain('runs on node-1');
    gate.open();
    await stage.clock.advance(60_000);
    expect((await stage.states())['completed']).toEqual([60, 240]);
  });

  test('[S1] [S7] where its lock is lost nothing begins beside it, its record is shown as orphaned, and its result counts', async () => {
    const gate = new Gate();
    const work = ({ key }: Run): unknown => (key === FIRST ? gate.promise : undefined);
    const node = await stage.node({ every: '1m' }, { work });
    await stage.clock.advance(65_000);
    node.locks.down();
    await stage.clock.advance(10_000);
    node.locks.heal();
    await stage.clock.advance(70_000);
    expect(stage.log).toHaveLength(1);
    const view = await stage.clock.runUntil(node.guard.runs.get('t', FIRST));
    expect(view).toMatchObject({ orphaned: true, run: { state: 'running' } });
    expect(await explained(node, FIRST)).toContain('does not hold its lock any more');
    gate.open();
    await stage.clock.advance(20_000);
    expect(await stage.record('t', FIRST)).toMatchObject({ state: 'completed', late: true });
    expect(stage.instants()).toEqual([60, 120]);
  });
});
