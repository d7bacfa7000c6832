/** How a mutation is shown to be killed: by which seed, and that the real core survives that seed. */
import { simulate, type SimulatedFault, type WatchedPromise } from '@guard/testing';
import { mutatedCore, type Mutation } from './mutated-core.js';

/** A mutation, and who has to notice. */
export interface Mutant extends Mutation {
  /** What is missing, in words. */
  readonly title: string;
  /** Promises of which one must be found broken. */
  readonly breaks: readonly WatchedPromise[];
  /** Kinds of fault to play with: fewer of them meet a rare race sooner. Default: all. */
  readonly faults?: readonly SimulatedFault[];
  /** Whether to play beyond what the promises assume. Default `false`. */
  readonly beyondAssumptions?: boolean;
  /** Whether to play with nodes that are answered at once. Default: in every third seed. */
  readonly atOnce?: boolean;
  /** Whether a task has a schedule. Default: in every fourth seed. */
  readonly schedules?: boolean;
  /** Where the race is rare: a seed from which it is met soon. Default 1. */
  readonly firstSeed?: number;
}

/** Seeds within which every mutant has to die. */
const MAX_SEEDS = 1_000;

/** Plays seeds until one kills the mutant, and that one with the real core. */
export async function kill(mutant: Mutant): Promise<void> {
  const core = mutatedCore(mutant);
  const { faults, title, firstSeed = 1, beyondAssumptions, atOnce, schedules } = mutant;
  const options = {
    ...(faults === undefined ? undefined : { faults }),
    ...(beyondAssumptions === undefined ? undefined : { beyondAssumptions }),
    ...(atOnce === undefined ? undefined : { atOnce }),
    ...(schedules === undefined ? undefined : { schedules }),
  };
  for (let seed = firstSeed; seed < firstSeed + MAX_SEEDS; seed += 1) {
    const { violation } = await simulate({ seed, core, ...options });
    if (violation === undefined) continue;
    const { promise, message } = violation;
    process.stdout.write(`${title}: killed by seed ${seed} [${promise}] ${message}\n`);
    expect(mutant.breaks).toContain(promise);
    expect(await simulate({ seed, ...options })).toMatchObject({ seed, violation: undefined });
    return;
  }
  throw new Error(`${title}: survived ${MAX_SEEDS} seeds from ${firstSeed}`);
}
