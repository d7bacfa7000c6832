/** Takes single mechanisms of schedules out of the core, and expects the simulator to notice each. */
import { kill, type Mutant } from './killing.js';

const LIMIT_MS = 300_000;

const MUTANTS: readonly Mutant[] = [
  {
    title: 'a plan names no version of the record that it follows',
    file: 'kv/registry.ts',
    find: "expected === null ? 'absent' : { version: expected }",
    replace: "'any'",
    breaks: ['S7', 'S8'],
  },
  {
    title: 'the next plan forgets what the last one planned',
    file: 'machine/schedule.ts',
    find: 'const planned = [...unsettled(look), ...runs];',
    replace: 'const planned = [...runs];',
    breaks: ['S8'],
    firstSeed: 321,
  },
  {
    title: 'what is passed over is not named',
    file: 'machine/schedule.ts',
    find: "summaryOf(calendar, markMs, lastPassed, lastPassed, 'missed', recorded)",
    replace: 'undefined',
    breaks: ['S8'],
  },
];

describe('a schedule without one of its mechanisms', () => {
  it.each(MUTANTS)('is found out where $title', (mutant) => kill({ ...mutant, schedules: true }), LIMIT_MS);
});
