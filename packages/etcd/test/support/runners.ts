/**
 * Two halves of a contract suite, each for a file of its own. The shortest ttl of etcd is two seconds, so cases wait for
 * most of their time and run side by side: those of the port many at a time, those of guards few, because their own
 * machinery has times to keep.
 */
import { sideBySide } from '@guard/testing';

const runner = { describe, it: it.concurrent, skip: it.skip };
// As they are written, cases are long and heavy: two that run beside each other are no load that makes the others late.
const isFull = process.env['GUARD_PROFILE'] === 'full';
const isOfGuards = (title: string): boolean => title.startsWith('guard on ');

/** In CI, as for every other test on the real time (`scripts/jest-real-time.cjs`). */
const chance = process.env['CI'] === undefined ? {} : { onSecondChance: told };

/** The cases of the port alone. */
export const portCases = sideBySide(runner, {
  atATime: isFull ? 2 : 8,
  suites: (title) => !isOfGuards(title),
  ...chance,
});

/** The cases of guards alone. */
export const guardCases = sideBySide(runner, { atATime: isFull ? 2 : 4, suites: isOfGuards, ...chance });

/** On a cluster: three servers leave less of a machine to the cases. */
export const clusterCases = sideBySide(runner, {
  atATime: isFull ? 2 : 4,
  suites: (title) => isFull || !isOfGuards(title),
  ...chance,
});

function told(title: string, error: unknown): void {
  console.warn(`${title}: played again after`, error);
}
