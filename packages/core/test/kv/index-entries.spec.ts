/**
 * The index of open runs under crashes, on a store that promises nothing but single keys: processes create, move,
 * sweep and prune the same few runs at once, any of them stops for ever between any two operations, and afterwards
 * every run that somebody has to do something about is still found.
 */
import { kvRuns, type RunRecord, type RunStore } from '@guard/core';
import { SeededRandom } from '@guard/testing';
import { loose, NS, Stage } from './stage.js';

const random = new SeededRandom();
const KEYS = ['a', 'b', 'c'];
const STEPS = 12;
const ROUNDS = 100;

/** One process: its own run store, over a view of the shared store in which it can crash. */
class Process {
  readonly ended: Promise<void>;
  #crash: (() => void) | undefined;

  constructor(stage: Stage, crashes: boolean) {
    const crashed = new Promise<void>((resolve) => (this.#crash = resolve));
    const state = loose(stage.inner, random, async () => {
      for (let turns = Math.floor(random.fraction() * 4); turns > 0; turns -= 1) await Promise.resolve();
      if (!crashes || random.fraction() > 0.04) return;
      this.#crash!();
      await new Promise(() => undefined);
    });
    this.ended = Promise.race([work(stage, kvRuns(state)), crashed]);
  }
}

async function work(stage: Stage, runs: RunStore): Promise<void> {
  for (let step = 0; step < STEPS; step += 1) {
    const key = pick(KEYS);
    const next = stateOf(stage, key);
    const dice = random.fraction();
    if (dice < 0.3) await createOrMove(stage, runs, next);
    else if (dice < 0.55) await move(stage, runs, next);
    else if (dice < 0.9) await stage.due({}, runs);
    else await runs.prune(NS, { recordsBeforeMs: Infinity, keysBeforeMs: pick([0, Infinity]), limit: 10 });
  }
}

async function createOrMove(stage: Stage, runs: RunStore, next: RunRecord): Promise<void> {
  const answer = await runs.create(NS, next, stage.event(next.state));
  if (answer.status !== 'exists') return;
  const moved = { ...next, createdAtMs: answer.stored.run.createdAtMs };
  await runs.transition(NS, answer.stored.version, moved, stage.event(next.state));
}

async function move(stage: Stage, runs: RunStore, next: RunRecord): Promise<void> {
  const stored = await runs.get(NS, { task: 't', key: next.key });
  if (stored === null) return;
  const moved = { ...next, createdAtMs: stored.run.createdAtMs };
  await runs.transition(NS, stored.version, moved, stage.event(next.state));
}

function stateOf(stage: Stage, key: string): RunRecord {
  const over = { key, createdAtMs: stage.nowMs + Math.floor(random.fraction() * 3) };
  return pick([stage.pending, stage.running, stage.completed, stage.failed]).call(stage, over);
}

function pick<T>(of: readonly T[]): T {
  return of[Math.floor(random.fraction() * of.length)]!;
}

async function keysBelow(stage: Stage, folder: string): Promise<RunRecord[]> {
  const { entries } = await stage.inner.scan(`${NS}/run/${folder}/`, undefined, 1_000);
  return entries.map(({ value }) => {
    const { run, ...entry } = JSON.parse(value) as { run?: RunRecord };
    return run ?? (entry as RunRecord);
  });
}

const isOpen = ({ state }: RunRecord) => state === 'pending' || state === 'running';
const keys = (runs: readonly { readonly key: string }[]) => runs.map(({ key }) => key).sort();

describe(`the index of open runs (seed ${random.seed})`, () => {
  it.each([
    ['[L4] names every open run, whoever crashed where', true],
    ['[L4] names every open run, whatever went on at once', false],
  ])(
    '%s',
    async (_title, crashes) => {
      let open = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        const stage = new Stage();
        await Promise.all([1, 2, 3].map(() => new Process(stage, crashes).ended));
        const records = await keysBelow(stage, 'r');
        expect(keys(await stage.due())).toEqual(keys(records.filter(isOpen)));
        open += records.filter(isOpen).length;
        await stage.clock.advance(3_600_000);
        expect(keys(await stage.due())).toEqual(keys(records.filter(isOpen)));
        expect(keys(await keysBelow(stage, 'o'))).toEqual(keys(records.filter(isOpen)));
        await stage.runs.prune(NS, { recordsBeforeMs: Infinity, keysBeforeMs: Infinity, limit: 1_000 });
        expect(keys(await keysBelow(stage, 'r'))).toEqual(keys(records.filter(isOpen)));
        expect(keys(await keysBelow(stage, 'a'))).toEqual(keys(records.filter(isOpen)));
        expect(await stage.runs.list(NS, { limit: 10 })).toMatchObject({
          runs: { length: keys(records.filter(isOpen)).length },
        });
      }
      expect(open).toBeGreaterThan(ROUNDS / 4);
    },
    60_000,
  );
});
