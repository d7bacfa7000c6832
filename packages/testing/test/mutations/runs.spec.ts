/** Takes single mechanisms of runs out of the core, and expects the simulator to notice each. */
import { kill, type Mutant } from './killing.js';

const LIMIT_MS = 300_000;

const MUTANTS: readonly Mutant[] = [
  {
    title: 'a finish names no version',
    file: 'kv/records.ts',
    find: 'this.#write(namespace, entries, next, { version: expected }, history)',
    replace: "this.#write(namespace, entries, next, 'any', history)",
    breaks: ['S7'],
    faults: ['pause', 'cut', 'loss', 'delay'],
  },
  {
    title: 'the sweep goes on with a run without its lock',
    file: 'runtime/run/run-entry.ts',
    find: 'if (this.lock === undefined && !this.unguarded) return',
    replace: 'if (this.lock === undefined && !this.unguarded && this.terms.sweeping !== true) return',
    breaks: ['S1', 'S7', 'L3'],
  },
  {
    title: 'an orphan is taken for a run that somebody works on',
    file: 'runtime/run/sweep.ts',
    find: 'return info?.held === true && info.token <= BigInt(run.lock.token);',
    replace: 'return true;',
    breaks: ['L3'],
  },
  {
    title: 'work begins although its lock was lost meanwhile',
    file: 'runtime/run/run-entry.ts',
    find: 'await this.lock?.assertHeldSoon();',
    replace: '',
    breaks: ['S1'],
  },
  {
    title: 'a node begins an attempt beside one of its own that has not settled',
    file: 'runtime/run/active-runs.ts',
    find: 'return lock !== undefined && !lock.isHeld();',
    replace: 'return false;',
    breaks: ['S7'],
    faults: ['cut', 'pause'],
    firstSeed: 281,
  },
];

describe('a single run without one of its mechanisms', () => {
  it.each(MUTANTS)('is found out where $title', (mutant) => kill(mutant), LIMIT_MS);
});
