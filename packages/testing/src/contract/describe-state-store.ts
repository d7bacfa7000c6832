/**
 * The contract of a state store as a suite: every sentence of the port, and the cases that a guard must stand on it
 * (over locks in memory; the stage is described in `guard/stage.ts`).
 */
import { memoryLocks } from '@guard/core';
import { keepingCases } from './guard/keeping.js';
import { Stage } from './guard/stage.js';
import { defaultProfile, defineSuite, type SuiteOptions } from './runner.js';
import { expiringCases } from './state/expiring.js';
import { fencingCases } from './state/fencing.js';
import { StateKit, type StatePlace, type StateTraits } from './state/kit.js';
import { scanningCases } from './state/scanning.js';
import { sizingCases } from './state/sizing.js';
import { watchingCases } from './state/watching.js';
import { writingCases } from './state/writing.js';
import { checkSuite } from './suite-options.js';

/** Options of `describeStateStore`. */
export interface StateStoreSuite extends SuiteOptions {
  /** What the adapter can do; the suite checks that it is true. */
  readonly traits: StateTraits;
  /** Makes an empty place for one case. On a shared server, other cases' keys may be there. */
  readonly create: () => Promise<StatePlace>;
}

const STATE_TRAITS = { maxBatch: 'number', push: 'boolean' } as const;

/**
 * Defines the suite with the functions of a test runner.
 *
 * @throws GuardError `invalid-argument` naming the option.
 */
export function describeStateStore(options: StateStoreSuite): void {
  checkSuite(options, STATE_TRAITS);
  const { create, profile = defaultProfile(), traits } = options;
  const themes = [
    ['writing', writingCases],
    ['expiring', expiringCases],
    ['fences', fencingCases],
    ['scanning', scanningCases],
    ['watching', watchingCases],
    ['batches, keys and sizes', sizingCases],
  ] as const;
  defineSuite(options, 'state store', traits, themes, async () => {
    const stage = new StateKit(await create(), profile);
    return { stage, close: () => Promise.resolve(), cleanup: () => stage.close() };
  });
  const locks = memoryLocks().traits;
  defineSuite(options, 'guard on state store', locks, [['state', keepingCases]], async () => {
    const place = await create();
    const own = place.clock === undefined ? {} : { clock: place.clock };
    const backend = memoryLocks(own);
    const stage = new Stage({
      ...own,
      profile,
      atOnce: false,
      traits: locks,
      connectLocks: () => Promise.resolve(backend),
      connectState: (clock) => place.connect(clock),
    });
    const { seed } = stage.random;
    return { stage, seed, close: () => stage.close(), cleanup: () => place.cleanup() };
  });
}
