/** The run that the current code is in, found through the shared context of all copies of this package. */
import type { Run } from '../../api/run.js';
import type { ActiveRun, CompletableRun } from './active-run.js';
import { currentFrame } from '../context.js';

/**
 * The innermost run that the current code works for: that of the nearest `guard.run`, task or `@SingleRun`.
 * `undefined` outside, and in code that goes on after its run's work has settled.
 */
export function currentRun(): Run | undefined {
  return innermost();
}

/**
 * The same with what an adapter needs to write its completion in a transaction of the application.
 */
export function activeRun(): (Run & CompletableRun) | undefined {
  return innermost();
}

function innermost(): ActiveRun | undefined {
  for (let frame = currentFrame(); frame !== undefined; frame = frame.parent) {
    const run = frame.run as ActiveRun | undefined;
    if (run !== undefined && !run.over) return run;
  }
  return undefined;
}
