/** What may be done about a record that stands under a key already. */
import { admit, type Asker } from '../../src/machine/run-admission.js';
import type { RunBase, RunRecord } from '../../src/machine/run-record.js';

const base: RunBase = {
  task: 't',
  key: 'k',
  id: 'r',
  attempt: 0,
  takeovers: 0,
  trigger: 'call',
  createdAtMs: 0,
  updatedAtMs: 0,
};
const node = { id: 'n', label: 'n' };
const fault = { name: 'Error', message: 'boom' };
const lock = { backend: 'memory', key: 'ns/task/t', token: '7' };
const asker: Asker = { mine: false, backend: 'memory', ifFailed: 'rerun', overdueMs: 10_000 };

const pending = (availableAtMs: number, attempt = 0): RunRecord => ({
  ...base,
  attempt,
  state: 'pending',
  availableAtMs,
});
const failed = (compensation?: 'due' | 'done' | 'error' | 'waived'): RunRecord => ({
  ...base,
  state: 'failed',
  finishedAtMs: 0,
  fault,
  ...(compensation ? { compensation } : {}),
});
const running = (change: Partial<typeof lock> = {}): RunRecord => ({
  ...base,
  state: 'running',
  lock: { ...lock, ...change },
  node,
  startedAtMs: 0,
});
const skipped: RunRecord = { ...base, state: 'skipped', finishedAtMs: 0, reason: 'overlap' };

describe('judging a record that exists', () => {
  test.each<[string, RunRecord, Partial<Asker>, string]>([
    ['one’s own pending record is started', pending(0), { mine: true }, 'start'],
    ['somebody else’s pending record is left alone', pending(0), {}, 'leave: pending'],
    [
      'one that was handed back is started by whoever comes: nobody else is about to',
      { ...pending(0), reason: 'handed-back' } as RunRecord,
      {},
      'start',
    ],
    ['a pending record that is overdue by one sweep is started', pending(-9_900), {}, 'start'],
    ['a retry that is due later is left alone', pending(50_000, 1), {}, 'leave: pending'],
    [
      'a first attempt past its starting deadline expires',
      pending(-2_000),
      { mine: true, startingDeadlineMs: 2_000 },
      'expire',
    ],
    [
      'what a person asked for afterwards has none',
      { ...pending(-2_000), trigger: 'backfill' },
      { mine: true, startingDeadlineMs: 2_000 },
      'start',
    ],
    [
      'a retry has no starting deadline',
      pending(-2_000, 1),
      { mine: true, startingDeadlineMs: 2_000 },
      'start',
    ],
    ['a running record may be an orphan', running(), {}, 'take-over'],
    ['a run without a lock is never taken over', running({ token: '0' }), {}, 'leave: running'],
    ['a run of another lock backend is never taken over', running({ backend: 'b' }), {}, 'leave: running'],
    ['a failed run is run again where the caller says so', failed(), {}, 'rerun'],
    ['a failed run is kept where the caller says so', failed(), { ifFailed: 'keep' }, 'leave: failed'],
    ['no rerun before the compensation', failed('due'), {}, 'leave: compensation-due'],
    ['no rerun after a compensation that went wrong', failed('error'), {}, 'leave: compensation-due'],
    ['a rerun after the compensation', failed('done'), {}, 'rerun'],
    ['a rerun after a waived compensation', failed('waived'), {}, 'rerun'],
    ['a skipped call is moved on', skipped, {}, 'reopen'],
    ['a skipped occurrence stays skipped', { ...skipped, scheduledForMs: 0 }, {}, 'leave: skipped'],
    ['completed stays', { ...base, state: 'completed', finishedAtMs: 0, node }, {}, 'leave: completed'],
    ['expired stays', { ...base, state: 'expired', finishedAtMs: 0, reason: 'x' }, {}, 'leave: expired'],
    [
      'on hold waits for a person',
      { ...base, state: 'on-hold', sinceMs: 0, reason: 'x' },
      {},
      'leave: on-hold',
    ],
  ])('%s', (_title, run, change, verdict) => {
    const admission = admit(run, { ...asker, ...change }, 100);
    expect(admission.act === 'leave' ? `leave: ${admission.why}` : admission.act).toBe(verdict);
  });
});
