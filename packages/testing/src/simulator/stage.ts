/** What every part of one simulation shares, and the parts of core that it is played with. */
import type { createGuard, kvRuns, memoryLocks, memoryState } from '@guard/core';
import type { SeededRandom } from '../clock/seeded-random.js';
import type { Journal } from './journal.js';
import type { SeedPlan } from './plan.js';
import type { World } from './world.js';

/**
 * The code under test. Default: `@guard/core` itself; a test of the simulator hands in a core in which one mechanism
 * was taken out, and expects to be told.
 */
export interface SimulatedCore {
  readonly createGuard: typeof createGuard;
  readonly memoryLocks: typeof memoryLocks;
  readonly memoryState: typeof memoryState;
  readonly kvRuns: typeof kvRuns;
}

/** One simulation. */
export interface Stage {
  readonly world: World;
  readonly random: SeededRandom;
  readonly journal: Journal;
  readonly plan: SeedPlan;
}
