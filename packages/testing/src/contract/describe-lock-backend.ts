/**
 * The contract of a lock backend as a suite: every sentence of the port, and the cases that a guard must stand on it.
 * The port's sentences run on the bare adapter. The guards' cases run on a stage (`guard/stage.ts`), whose header says
 * what stands for a process, a pause and a network there.
 */
import { memoryState, type LockTraits } from '@guard/core';
import { assert } from './assert.js';
import { endingCases } from './guard/ending.js';
import { handleCases } from './guard/handling.js';
import { limitCases } from './guard/limits.js';
import { losingCases } from './guard/losing.js';
import { nestingCases } from './guard/nesting.js';
import { outageCases } from './guard/outage.js';
import { Stage } from './guard/stage.js';
import { waitingCases } from './guard/waiting.js';
import { batchingCases } from './locks/batching.js';
import { grantingCases } from './locks/granting.js';
import { inspectingCases } from './locks/inspecting.js';
import { LockKit, type LockPlace } from './locks/kit.js';
import { namingCases } from './locks/naming.js';
import { noticingCases } from './locks/noticing.js';
import { queueingCases } from './locks/queueing.js';
import { releasingCases } from './locks/releasing.js';
import { renewingCases } from './locks/renewing.js';
import { shortCutCases } from './locks/short-cut.js';
import { tokenCases } from './locks/tokens.js';
import { defaultProfile, defineSuite, type SuiteOptions } from './runner.js';
import { checkSuite } from './suite-options.js';

/** Options of `describeLockBackend`. */
export interface LockBackendSuite extends SuiteOptions {
  /** The adapter's traits; the suite checks that they are true, and reports by name what they rule out. */
  readonly traits: LockTraits;
  /** Whether the adapter offers `atOnce`: every case then runs a second time by that way. Default `false`. */
  readonly atOnce?: boolean;
  /** Makes an empty place for one case. On a shared server, other cases' keys may be there. */
  readonly create: () => Promise<LockPlace>;
}

const TRAITS: Readonly<Record<string, 'boolean' | 'number'>> = {
  ...{ fifo: 'boolean', push: 'boolean', floor: 'boolean' },
  ...{ minTtlMs: 'number', ttlGranularityMs: 'number', maxBatch: 'number' },
};

/**
 * Defines the suite with the functions of a test runner.
 *
 * @throws GuardError `invalid-argument` naming the option.
 */
export function describeLockBackend(options: LockBackendSuite): void {
  checkSuite(options, TRAITS, ['atOnce']);
  describeWays(options, false);
  if (options.atOnce === true) describeWays(options, true);
}

/** The suite on one of the ways that an operation can take. */
function describeWays(options: LockBackendSuite, atOnce: boolean): void {
  const { create, profile = defaultProfile(), traits } = options;
  const how = atOnce ? ' at once' : '';
  const themes = [
    ['granting', grantingCases],
    ['renewing', renewingCases],
    ['releasing', releasingCases],
    ['queueing', queueingCases],
    ['notices', noticingCases],
    ['tokens', tokenCases],
    ['inspect', inspectingCases],
    ['batches', batchingCases],
    ['keys', namingCases],
    ...(atOnce ? ([['the short cut', shortCutCases]] as const) : []),
  ] as const;
  defineSuite(options, `lock backend${how}`, traits, themes, async () => {
    const place = await create();
    const offers = place.backend.atOnce !== undefined;
    assert.equal(
      offers,
      options.atOnce === true,
      'whether the backend answers at once is what the suite is told',
    );
    const stage = new LockKit(place, profile, atOnce);
    return { stage, close: () => Promise.resolve(), cleanup: () => stage.close() };
  });
  const guardThemes = [
    ['losing a lock', losingCases],
    ['handles', handleCases],
    ['waiting', waitingCases],
    ['outages', outageCases],
    ['several locks', nestingCases],
    ['limits', limitCases],
    ['the end', endingCases],
  ] as const;
  defineSuite(options, `guard on lock backend${how}`, traits, guardThemes, async () => {
    const place = await create();
    const clock = place.clock;
    const state = memoryState(clock === undefined ? {} : { clock });
    const stage = new Stage({
      ...(clock === undefined ? {} : { clock }),
      profile,
      traits,
      atOnce,
      connectLocks: (own) => place.connect(own),
      connectState: () => Promise.resolve(state),
    });
    const { seed } = stage.random;
    return { stage, seed, close: () => stage.close(), cleanup: () => place.cleanup() };
  });
}
