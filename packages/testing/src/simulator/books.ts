/** All laws of one simulation together. */
import type { Beliefs } from './laws/beliefs.js';
import type { Calls } from './laws/calls.js';
import type { Entries } from './laws/entries.js';
import type { Grants } from './laws/grants.js';
import type { Occurrences } from './laws/occurrences.js';
import type { Runs } from './laws/runs.js';

/** What everything that happens is told to. */
export interface Books {
  readonly calls: Calls;
  readonly beliefs: Beliefs;
  readonly grants: Grants;
  readonly entries: Entries;
  readonly runs: Runs;
  readonly occurrences: Occurrences;
  /** Settles when everything that was answered at once is in the books. */
  readonly booked: () => Promise<void>;
}
