/**
 * Plays cases of the contract suites on the real time beside each other: on a database nearly all of a case is waiting,
 * and cases share nothing but the database. More at a time make a small machine late for the leases of the cases.
 */
import { sideBySide } from '@guard/testing';

/** In CI, as for every other test on the real time (`scripts/jest-real-time.cjs`). */
const chance = process.env['CI'] === undefined ? {} : { onSecondChance: told };

const atOnce = { describe, it: it.concurrent, skip: it.skip };
const terms = { atATime: 2, ...chance };

/** The runner of a suite whose cases wait. */
export const waitingCases = sideBySide(atOnce, terms);
/** The ports' own sentences; the cases of a guard above them are left to the places that play all. */
export const sentencesOnly = sideBySide(atOnce, {
  ...terms,
  suites: (title) => !title.startsWith('guard on '),
});

function told(title: string, error: unknown): void {
  console.warn(`${title}: played again after`, error);
}
