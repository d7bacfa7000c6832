/** The contract of a run store as a suite: every sentence of the port. */
import { defaultProfile, defineSuite, type SuiteOptions } from './runner.js';
import { findingCases } from './runs/finding.js';
import { RunKit, type RunPlace, type RunTraits } from './runs/kit.js';
import { movingCases } from './runs/moving.js';
import { registeringCases } from './runs/registering.js';
import { checkSuite } from './suite-options.js';

/** Options of `describeRunStore`. */
export interface RunStoreSuite extends SuiteOptions {
  /** What the adapter can do; the suite checks that it is true. */
  readonly traits: RunTraits;
  /** Makes an empty place for one case. On a shared server, other cases' keys may be there. */
  readonly create: () => Promise<RunPlace>;
}

/**
 * Defines the suite with the functions of a test runner.
 *
 * @throws GuardError `invalid-argument` naming the option.
 */
export function describeRunStore(options: RunStoreSuite): void {
  checkSuite(options, { createRunning: 'boolean' });
  const { create, profile = defaultProfile(), traits } = options;
  const themes = [
    ['records and moves', movingCases],
    ['finding and pruning', findingCases],
    ['tasks and nodes', registeringCases],
  ] as const;
  defineSuite(options, 'run store', traits, themes, async () => {
    const stage = new RunKit(await create(), profile);
    return { stage, close: () => Promise.resolve(), cleanup: () => stage.close() };
  });
}
