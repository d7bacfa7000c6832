/** What becomes of single requests and notices: drawn, each from the kinds of fault that the plan knows. */
import type { Fault } from '../fault/fault-kinds.js';
import { between, chance } from './chance.js';
import type { Stage } from './stage.js';

/** On a clear connection a message takes up to so long. */
const NEAR_MS = 2;

/** The way there and back of every request. */
export function drawWay({ random }: Stage): Fault {
  return { type: 'delay', requestMs: between(random, 0.1, NEAR_MS), replyMs: between(random, 0.1, NEAR_MS) };
}

/** A fault, where the plan has one to choose from. */
export function drawFault({ random, plan }: Stage): Fault | undefined {
  const { faults, ttlMs } = plan;
  const kinds = (['loss', 'delay', 'repeat'] as const).filter((kind) => faults.has(kind));
  const [first, ...others] = kinds;
  if (first === undefined) return undefined;
  switch (random.pick([first, ...others])) {
    case 'loss':
      return random.pick<Fault>([
        { type: 'cut' },
        { type: 'lose-reply' },
        { type: 'reset', executed: true },
        { type: 'reset', executed: false },
        { type: 'fail', executed: chance(random, 0.5), operations: () => chance(random, 0.7) },
      ]);
    case 'delay':
      return random.pick<Fault>([
        { type: 'delay', requestMs: between(random, 0, 2 * ttlMs) },
        { type: 'delay', replyMs: between(random, 0, 2 * ttlMs) },
        { type: 'delay', requestMs: between(random, 0, ttlMs / 3), replyMs: between(random, 0, ttlMs / 3) },
      ]);
    case 'repeat':
      return random.pick<Fault>([
        { type: 'execute-twice', afterMs: between(random, 0, ttlMs / 4) },
        { type: 'execute-twice', afterMs: between(random, 0, 3 * ttlMs), answer: 'first' },
        { type: 'execute-later', afterMs: between(random, 0, 3 * ttlMs), answer: 'never' },
        { type: 'execute-later', afterMs: between(random, 0, 3 * ttlMs), answer: 'reject' },
      ]);
  }
}

/** When copies of a notice arrive, in milliseconds from now; none where it is lost. */
export function drawNotice({ random, plan }: Stage, faultRate: number): number[] {
  const way = between(random, 0.1, NEAR_MS);
  if (!plan.faults.has('notices') || !chance(random, faultRate)) return [way];
  const late = between(random, 0, 4 * Math.min(plan.ttlMs, 6_000));
  return random.pick([[], [late], [way, late]]);
}
