/**
 * The life of a run as a table: every state against every wish, the allowed arrows and the refused ones. Whoever adds
 * a state or a wish has to say here what happens between it and all the others.
 */
import type { RunMove, Stepped, Worker } from '../../src/machine/run-move.js';
import type { RunBase, RunRecord } from '../../src/machine/run-record.js';
import { afterCrash, step } from '../../src/machine/run.js';

const AT = 5_000;

const base: RunBase = {
  task: 'settle',
  key: 'k',
  id: 'r1',
  attempt: 1,
  takeovers: 1,
  trigger: 'call',
  createdAtMs: 1_000,
  updatedAtMs: 2_000,
};
const fault = { name: 'Error', message: 'boom' };
const oldFault = { name: 'Error', message: 'earlier' };

function worker(token: number, backend = 'memory', id = `n${token}`): Worker {
  return { lock: { backend, key: 'ns/task/settle', token: String(token) }, node: { id, label: id } };
}
const own = worker(7);
const newer = worker(9);
const foreign = worker(9, 'elsewhere');
const policy = { onCrash: 'retry', maxTakeovers: 3, compensate: false } as const;

const running: RunRecord = { ...base, state: 'running', ...own, startedAtMs: 2_000 };
const failed: RunRecord = { ...base, state: 'failed', finishedAtMs: 2_000, fault: oldFault };
const skipped: RunRecord = { ...base, state: 'skipped', finishedAtMs: 2_000, reason: 'overlap' };

const records = {
  none: null,
  pending: { ...base, attempt: 0, takeovers: 0, state: 'pending', availableAtMs: 2_000 },
  'pending, alarmed': { ...base, alarmed: true, state: 'pending', availableAtMs: 2_000, lastFault: oldFault },
  running,
  'running, taken over 3 times': { ...running, takeovers: 3 },
  'running, unguarded': { ...running, ...worker(0) },
  completed: { ...base, state: 'completed', finishedAtMs: 2_000, node: own.node },
  failed,
  'failed, compensation due': { ...failed, compensation: 'due' },
  'failed, compensating': { ...failed, compensation: 'due', ...own },
  'failed, compensated': { ...failed, compensation: 'done' },
  'failed, compensation error': { ...failed, compensation: 'error' },
  'on-hold': { ...base, state: 'on-hold', sinceMs: 2_000, reason: 'crashed' },
  expired: { ...base, state: 'expired', finishedAtMs: 2_000, reason: 'startingDeadline' },
  skipped,
  'skipped occurrence': { ...skipped, scheduledForMs: 1_000 },
} satisfies Record<string, RunRecord | null>;

const person = { type: 'decide', note: 'asked by Ada', node: own.node, compensate: false } as const;
const newRun = { task: 'settle', key: 'k', id: 'r1', trigger: 'call' } as const;

const moves = {
  create: { type: 'create', run: newRun },
  'create running': { type: 'create', run: newRun, start: own },
  start: { type: 'start', by: own, trigger: 'retry' },
  'take over, newer token': { type: 'take-over', by: newer, maxTakeovers: 3 },
  'take over, same token': { type: 'take-over', by: own, maxTakeovers: 3 },
  'take over, other backend': { type: 'take-over', by: foreign, maxTakeovers: 3 },
  progress: { type: 'progress', token: '7', progress: '50' },
  'progress, stale': { type: 'progress', token: '5', progress: '50' },
  complete: { type: 'complete', token: '7', node: own.node, value: '42' },
  'complete, stale': { type: 'complete', token: '5', node: own.node },
  'attempt failed, last': { type: 'fail-attempt', token: '7', fault, compensate: false },
  'attempt failed, to compensate': { type: 'fail-attempt', token: '7', fault, compensate: true },
  'attempt failed, again later': {
    type: 'fail-attempt',
    token: '7',
    fault,
    compensate: true,
    retryAtMs: 9_000,
  },
  'attempt failed, stale': { type: 'fail-attempt', token: '5', fault, compensate: false },
  'hand back': { type: 'hand-back', token: '7' },
  'hand back, stale': { type: 'hand-back', token: '5' },
  'crash, retry': { type: 'crash', by: own, fault, policy },
  'crash, fail': { type: 'crash', by: newer, fault, policy: { ...policy, onCrash: 'fail' } },
  'crash, hold': { type: 'crash', by: own, fault, policy: { ...policy, onCrash: 'hold' } },
  'crash, older token': { type: 'crash', by: worker(6), fault, policy },
  'crash, other backend': { type: 'crash', by: foreign, fault, policy },
  hold: { type: 'hold', reason: 'other-backend' },
  skip: { type: 'skip', reason: 'overlap', blockedBy: 'other' },
  expire: { type: 'expire', reason: 'startingDeadline' },
  reopen: { type: 'reopen' },
  rerun: { type: 'rerun', input: '1' },
  'a person retries': { ...person, decision: 'retry' },
  'a person completes': { ...person, decision: 'complete', value: '42' },
  'a person fails': { ...person, decision: 'fail' },
  'a person fails an orphan': { ...person, decision: 'fail', by: newer },
  'a person completes an orphan': { ...person, decision: 'complete', by: newer },
  'compensation starts': { type: 'compensation-start', by: newer },
  'compensation starts, same token': { type: 'compensation-start', by: own },
  'compensation done': { type: 'compensation-end', token: '7', result: 'done' },
  'compensation error': { type: 'compensation-end', token: '7', result: 'error', fault },
  'compensation done, stale': { type: 'compensation-end', token: '5', result: 'done' },
  waive: { type: 'waive', note: 'settled by hand' },
  alarm: { type: 'alarm' },
} satisfies Record<string, RunMove>;

type Name = keyof typeof records;
type Wish = keyof typeof moves;

const terminal = (): Partial<Record<Wish, string>> =>
  Object.fromEntries(Object.keys(moves).map((wish) => [wish, '!terminal']));

/** What is allowed or refused for another reason than "this state has no such arrow". */
const table: Record<Name, Partial<Record<Wish, string>>> = {
  none: {
    ...Object.fromEntries(Object.keys(moves).map((wish) => [wish, '!absent'])),
    create: 'pending',
    'create running': 'running #1',
  },
  pending: {
    start: 'running #1',
    hold: 'on-hold',
    skip: 'skipped',
    expire: 'expired',
    alarm: 'pending',
  },
  'pending, alarmed': {
    start: 'running #2',
    hold: 'on-hold',
    skip: 'skipped',
    expire: 'expired',
    alarm: '!already',
  },
  running: {
    'take over, newer token': 'running #1',
    'take over, same token': '!stale-token',
    'take over, other backend': '!other-backend',
    progress: 'running #1',
    'progress, stale': '!stale-token',
    complete: 'completed',
    'complete, stale': '!stale-token',
    'attempt failed, last': 'failed',
    'attempt failed, to compensate': 'failed, due',
    'attempt failed, again later': 'pending #1',
    'attempt failed, stale': '!stale-token',
    'hand back': 'pending',
    'hand back, stale': '!stale-token',
    'crash, retry': 'pending',
    'crash, fail': 'failed',
    'crash, hold': 'on-hold',
    'crash, older token': '!stale-token',
    'crash, other backend': '!other-backend',
    hold: 'on-hold',
    'a person fails an orphan': 'failed',
    'a person completes an orphan': 'completed',
  },
  'running, taken over 3 times': {
    'take over, newer token': '!max-takeovers',
    'take over, same token': '!stale-token',
    'take over, other backend': '!other-backend',
    progress: 'running #1',
    'progress, stale': '!stale-token',
    complete: 'completed',
    'complete, stale': '!stale-token',
    'attempt failed, last': 'failed',
    'attempt failed, to compensate': 'failed, due',
    'attempt failed, again later': 'pending #1',
    'attempt failed, stale': '!stale-token',
    'hand back': 'pending',
    'hand back, stale': '!stale-token',
    'crash, retry': 'on-hold',
    'crash, fail': 'failed',
    'crash, hold': 'on-hold',
    'crash, older token': '!stale-token',
    'crash, other backend': '!other-backend',
    hold: 'on-hold',
    'a person fails an orphan': 'failed',
    'a person completes an orphan': 'completed',
  },
  'running, unguarded': {
    'take over, newer token': 'running #1',
    'take over, same token': 'running #1',
    'take over, other backend': '!other-backend',
    progress: '!stale-token',
    'progress, stale': '!stale-token',
    complete: '!stale-token',
    'complete, stale': '!stale-token',
    'attempt failed, last': '!stale-token',
    'attempt failed, to compensate': '!stale-token',
    'attempt failed, again later': '!stale-token',
    'attempt failed, stale': '!stale-token',
    'hand back': '!stale-token',
    'hand back, stale': '!stale-token',
    'crash, retry': 'pending',
    'crash, fail': 'failed',
    'crash, hold': 'on-hold',
    'crash, older token': 'pending',
    'crash, other backend': '!other-backend',
    hold: 'on-hold',
    'a person fails an orphan': 'failed',
    'a person completes an orphan': 'completed',
  },
  completed: { ...terminal(), create: '!exists', 'create running': '!exists' },
  expired: { ...terminal(), create: '!exists', 'create running': '!exists' },
  failed: {
    rerun: 'pending',
    'a person retries': 'pending',
    'a person completes': 'completed',
    'a person completes an orphan': 'completed',
    'a person fails': '!already',
    'a person fails an orphan': '!already',
    'compensation starts': '!already',
    'compensation starts, same token': '!already',
    'compensation done': '!already',
    'compensation error': '!already',
    'compensation done, stale': '!already',
    waive: '!already',
  },
  'failed, compensation due': {
    rerun: '!compensation-due',
    'a person retries': '!compensation-due',
    'a person completes': '!compensation-due',
    'a person completes an orphan': '!compensation-due',
    'a person fails': '!already',
    'a person fails an orphan': '!already',
    'compensation starts': 'failed, due',
    'compensation starts, same token': 'failed, due',
    'compensation done': '!stale-token',
    'compensation error': '!stale-token',
    'compensation done, stale': '!stale-token',
    waive: 'failed, waived',
  },
  'failed, compensating': {
    rerun: '!compensation-due',
    'a person retries': '!compensation-due',
    'a person completes': '!compensation-due',
    'a person completes an orphan': '!compensation-due',
    'a person fails': '!already',
    'a person fails an orphan': '!already',
    'compensation starts': 'failed, due',
    'compensation starts, same token': '!stale-token',
    'compensation done': 'failed, done',
    'compensation error': 'failed, error',
    'compensation done, stale': '!stale-token',
    waive: 'failed, waived',
  },
  'failed, compensated': {
    rerun: 'pending',
    'a person retries': 'pending',
    'a person completes': 'completed',
    'a person completes an orphan': 'completed',
    'a person fails': '!already',
    'a person fails an orphan': '!already',
    'compensation starts': '!already',
    'compensation starts, same token': '!already',
    'compensation done': '!already',
    'compensation error': '!already',
    'compensation done, stale': '!already',
    waive: '!already',
  },
  'failed, compensation error': {
    rerun: '!compensation-due',
    'a person retries': '!compensation-due',
    'a person completes': '!compensation-due',
    'a person completes an orphan': '!compensation-due',
    'a person fails': '!already',
    'a person fails an orphan': '!already',
    'compensation starts': '!already',
    'compensation starts, same token': '!already',
    'compensation done': '!already',
    'compensation error': '!already',
    'compensation done, stale': '!already',
    waive: 'failed, waived',
  },
  'on-hold': {
    'a person retries': 'pending',
    'a person completes': 'completed',
    'a person completes an orphan': 'completed',
    'a person fails': 'failed',
    'a person fails an orphan': 'failed',
  },
  skipped: { reopen: 'pending', 'a person retries': 'pending' },
  'skipped occurrence': {
    ...terminal(),
    create: '!exists',
    'create running': '!exists',
  },
};

function expected(name: Name, wish: Wish): string {
  const exists = records[name] !== null && wish.startsWith('create');
  return table[name][wish] ?? (exists ? '!exists' : '!wrong-state');
}

function shown(stepped: Stepped): string {
  if ('refused' in stepped) return `!${stepped.refused}`;
  const { next } = stepped;
  if (next.state === 'failed' && next.compensation) return `failed, ${next.compensation}`;
  const counted = next.state === 'running' || next.state === 'pending';
  return counted && next.attempt > 0 ? `${next.state} #${next.attempt}` : next.state;
}

function stepOf(name: Name, wish: Wish): Stepped {
  return step(records[name], moves[wish], AT);
}

const names = Object.keys(records) as Name[];
const wishes = Object.keys(moves) as Wish[];
const pairs = names.flatMap((name) => wishes.map((wish) => [name, wish] as const));

describe('the life of a run', () => {
  describe.each(names)('%s', (name) => {
    test.each(wishes)('%s', (wish) => {
      expect(shown(stepOf(name, wish))).toBe(expected(name, wish));
    });
  });

  test('every accepted wish keeps who the run is, and tells from where to where', () => {
    const accepted = pairs.flatMap(([name, wish]) => {
      const stepped = stepOf(name, wish);
      return 'refused' in stepped ? [] : [{ from: records[name], ...stepped }];
    });
    expect(accepted.length).toBeGreaterThan(60);
    for (const { from, next, event } of accepted) {
      expect(next).toMatchObject({ task: 'settle', key: 'k', id: 'r1', updatedAtMs: AT });
      expect(next.createdAtMs).toBe(from?.createdAtMs ?? AT);
      expect(event).toMatchObject({
        atMs: AT,
        from: from?.state ?? 'none',
        to: next.state,
        attempt: next.attempt,
      });
    }
  });

  test('nothing leads out of completed, expired and an occurrence that was skipped [S7]', () => {
    for (const name of ['completed', 'expired', 'skipped occurrence'] as const) {
      for (const wish of wishes) expect(stepOf(name, wish)).toHaveProperty('refused');
    }
  });

  test('a record that is accepted holds only what its new state has', () => {
    const stepped = step(records.running, moves['attempt failed, again later'], AT);
    expect(stepped).toMatchObject({ next: { state: 'pending', availableAtMs: 9_000, lastFault: fault } });
    for (const gone of ['lock', 'node', 'startedAtMs']) expect(stepped).not.toHaveProperty(['next', gone]);
  });

  test('an attempt that is cut off or handed back is not counted', () => {
    for (const wish of ['hand back', 'crash, retry'] as const) {
      expect(stepOf('running', wish)).toMatchObject({
        next: { state: 'pending', attempt: 0, availableAtMs: AT },
      });
    }
    expect(stepOf('running', 'crash, retry')).toMatchObject({ next: { takeovers: 2, lastFault: fault } });
    expect(stepOf('running', 'hand back')).toMatchObject({ next: { takeovers: 1 } });
  });

  test('a takeover keeps the attempt and the progress, counts itself, and writes the newer token', () => {
    const withProgress = step(running, moves.progress, AT);
    const run = 'next' in withProgress ? withProgress.next : null;
    expect(step(run, moves['take over, newer token'], AT)).toMatchObject({
      next: {
        attempt: 1,
        takeovers: 2,
        trigger: 'takeover',
        lock: { token: '9' },
        progress: '50',
        node: { id: 'n9' },
      },
      event: { what: 'taken-over', token: '9', node: { id: 'n9' } },
    });
  });

  test('a compensation begins under the lock of the attempt that failed, with a count of its own', () => {
    expect(stepOf('running', 'attempt failed, to compensate')).toMatchObject({
      next: { compensation: 'due', lock: own.lock, node: own.node, takeovers: 0 },
    });
    const ended = stepOf('failed, compensating', 'compensation done');
    expect(ended).toMatchObject({ next: { compensation: 'done', fault: oldFault, finishedAtMs: 2_000 } });
    expect(ended).not.toHaveProperty(['next', 'lock']);
  });

  test('failed and on-hold are marked as alarmed in the same write, and the mark goes with the state', () => {
    for (const wish of ['attempt failed, last', 'crash, hold'] as const) {
      expect(stepOf('running', wish)).toMatchObject({ next: { alarmed: true } });
    }
    expect(stepOf('pending, alarmed', 'start')).not.toHaveProperty(['next', 'alarmed']);
  });

  test('a rerun and a decision to retry begin to count anew; a rerun brings its own input', () => {
    expect(stepOf('failed', 'rerun')).toMatchObject({
      next: { attempt: 0, takeovers: 0, trigger: 'call', input: '1', availableAtMs: AT },
    });
    expect(stepOf('on-hold', 'a person retries')).toMatchObject({
      next: { attempt: 0, takeovers: 0, trigger: 'manual' },
      event: { what: 'decided-retry', note: 'asked by Ada' },
    });
  });

  test.each([
    [{ onCrash: 'retry', maxTakeovers: 3 }, 2, 'retry'],
    [{ onCrash: 'retry', maxTakeovers: 3 }, 3, 'hold'],
    [{ onCrash: 'retry', maxTakeovers: 0 }, 0, 'hold'],
    [{ onCrash: 'fail', maxTakeovers: 0 }, 9, 'fail'],
    [{ onCrash: 'hold', maxTakeovers: 3 }, 0, 'hold'],
  ] as const)('after a crash %j with %d takeovers says %s', (crashPolicy, takeovers, verdict) => {
    expect(afterCrash({ takeovers }, crashPolicy)).toBe(verdict);
  });
});
