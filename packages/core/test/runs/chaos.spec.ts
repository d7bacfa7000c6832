/**
 * Several nodes, one task, and a network that fails at random: what must hold whatever happens. The seed is printed
 * with every failure; the same seed plays the same faults.
 */
import type { Run } from '@guard/core';
import { SeededRandom } from '@guard/testing';
import { type Process, Stage, sleep } from './stage.js';

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8].map(
  (nth) => nth * 7_919 + new SeededRandom().integer(0, 1_000_000) * 10,
);
const KEYS = [...'abcdefghijkl'];

interface Begun {
  readonly key: string;
  readonly token: bigint;
  readonly run: Run;
}

/** What the plays hold against the promises. */
class Log {
  readonly begun: Begun[] = [];
  readonly broken: string[] = [];
  private readonly inside = new Set<Begun>();

  enter(run: Run): Begun {
    const entry = { key: run.key, token: run.token, run };
    for (const other of this.inside) {
      if (other.key === entry.key && isHeld(other.run) && isHeld(run))
        this.broken.push(`two hold ${run.key}`);
    }
    const before = this.begun.filter(({ key }) => key === run.key).at(-1);
    if (before !== undefined && before.token > entry.token) this.broken.push(`an older token for ${run.key}`);
    this.begun.push(entry);
    this.inside.add(entry);
    return entry;
  }

  leave(entry: Begun): void {
    this.inside.delete(entry);
  }
}

function isHeld(run: Run): boolean {
  try {
    run.assertHeld();
    return true;
  } catch {
    return false;
  }
}

async function play(seed: number): Promise<{ readonly stage: Stage; readonly log: Log }> {
  const stage = new Stage(seed);
  const random = new SeededRandom(seed);
  const log = new Log();
  const nodes: Process[] = [];
  for (let nth = 0; nth < 4; nth += 1) {
    const createRunning = seed % 2 === 0;
    const process = stage.process({
      createRunning,
      sweepInterval: '1s',
      defaults: { ttl: '2s' },
      grace: '1s',
    });
    process.guard.task(
      't',
      { key: (key: string) => key, retry: { attempts: 3, backoff: '500ms' }, maxTakeovers: 50 },
      work,
    );
    nodes.push(process);
  }
  await Promise.all([...nodes.map(({ guard }) => guard.start()), stage.clock.settle()]);
  for (let step = 0; step < 60; step += 1) {
    fault(random.pick(nodes as [Process, ...Process[]]), random);
    const node = random.pick(nodes as [Process, ...Process[]]);
    const key = random.pick(KEYS as [string, ...string[]]);
    const policy = random.pick(['skip', 'result'] as const);
    const options = { key, onDuplicate: policy, wait: random.integer(0, 1_500) };
    if (random.fraction() < 0.5) void node.guard.run('t', options, (run) => work(run)).catch(() => undefined);
    await stage.clock.advance(random.integer(50, 500));
  }
  for (const { locks, state } of nodes) {
    locks.heal();
    state.heal();
  }
  // What is left goes on by itself: leases end, sweeps find it.
  await stage.clock.advance(40_000);
  return { stage, log };

  async function work(run: Run): Promise<string> {
    const entry = log.enter(run);
    try {
      await sleep(stage.clock, random.integer(10, 3_000), run.signal);
      if (random.fraction() < 0.2) throw new Error('boom');
      return run.token.toString();
    } finally {
      log.leave(entry);
    }
  }
}

function fault({ locks, state }: Process, random: SeededRandom): void {
  switch (random.integer(0, 9)) {
    case 0:
      return locks.cut();
    case 1:
      return state.cut();
    case 2:
      locks.cut();
      return state.cut();
    case 3:
      locks.plan.play({ type: 'lose-reply' }, { times: 1 });
      return;
    case 4:
      state.plan.play({ type: 'lose-reply' }, { times: 1 });
      return;
    case 5:
      state.plan.play(
        { type: 'execute-later', afterMs: random.integer(100, 6_000), answer: 'never' },
        { times: 1 },
      );
      return;
    case 6:
      state.plan.play({ type: 'delay', replyMs: random.integer(1, 1_500) }, { times: 2 });
      return;
    default:
      locks.heal();
      state.heal();
  }
}

describe('whatever the network does', () => {
  let begun = 0;
  afterAll(() => expect(begun).toBeGreaterThan(4 * SEEDS.length));

  test.each(SEEDS)(
    '[S7] [S1] [S2] [L4] the promises of runs hold (seed %d)',
    async (seed) => {
      const { stage, log } = await play(seed);
      try {
        expect(log.broken).toEqual([]);
        begun += log.begun.length;
        for (const key of KEYS) {
          const record = await stage.record('t', key);
          if (record === undefined) continue;
          const history = await stage.history('t', key);
          expect(history.filter((what) => what === 'completed').length).toBeLessThanOrEqual(1);
          expect(history.at(-1) === 'completed').toBe(record.state === 'completed');
          // Nothing stays half done: a retry or a takeover brought it to its end.
          expect(['completed', 'failed', 'skipped']).toContain(record.state);
          if (record.state === 'completed') {
            expect(log.begun.map(({ key: begun, token }) => `${begun} "${token}"`)).toContain(
              `${key} ${record.value}`,
            );
          }
        }
      } finally {
        await stage.close();
      }
    },
    60_000,
  );
});
