/**
 * The life of a run: every arrow that exists, and no other. A pure function of the record and a wish; what it answers
 * becomes true only by a compare-and-set on the record's version (S7), so two nodes can both be told "yes" here and
 * one of them will lose.
 *
 * ```
 * pending ──▶ running ──▶ completed | failed | on-hold | pending again
 *    └──▶ skipped | expired          failed, on-hold, a call's skipped ──▶ by decision
 * ```
 */
import type { CrashPolicy, RunMove, Stepped } from './run-move.js';
import {
  again,
  based,
  closed,
  compensationOpen,
  failed,
  HANDED_BACK,
  held,
  type In,
  kept,
  no,
  noteOf,
  told,
  uncounted,
  unlessNewer,
  workerOf,
} from './run-parts.js';
import type { RunBase, RunFault, RunRecord } from './run-record.js';

/** Token of a run that its task allowed to start without a lock (`run-unguarded`). No grant has it. */
export const NO_TOKEN = '0';

/** What becomes of a record by one wish, at one moment of the run store's clock. */
export function step(run: RunRecord | null, move: RunMove, atMs: number): Stepped {
  if (move.type === 'create') return run === null ? created(move, atMs) : no('exists');
  if (run === null) return no('absent');
  switch (run.state) {
    case 'pending':
      return fromPending(run, move, atMs);
    case 'running':
      return fromRunning(run, move, atMs);
    case 'failed':
      return fromFailed(run, move, atMs);
    case 'on-hold':
      return move.type === 'decide' ? decided(run, move, atMs) : no('wrong-state');
    case 'skipped':
      return fromSkipped(run, move, atMs);
    case 'completed':
    case 'expired':
      return no('terminal');
  }
}

/** What a task's policy says about a run whose attempt was cut off. */
export function afterCrash(
  run: Pick<RunRecord, 'takeovers'>,
  policy: Pick<CrashPolicy, 'onCrash' | 'maxTakeovers'>,
): CrashPolicy['onCrash'] {
  if (policy.onCrash === 'retry' && run.takeovers >= policy.maxTakeovers) return 'hold';
  return policy.onCrash;
}

type Move<T extends RunMove['type']> = RunMove & { readonly type: T };

function created(move: Move<'create'>, atMs: number): Stepped {
  const { start, passed } = move;
  const times = { createdAtMs: atMs, updatedAtMs: atMs };
  const base: RunBase = { ...move.run, attempt: start ? 1 : 0, takeovers: 0, ...times };
  if (passed !== undefined) {
    const next: RunRecord = { ...base, attempt: 0, state: 'expired', finishedAtMs: atMs, ...passed };
    return told(null, next, 'expired', { note: passed.reason });
  }
  if (start === undefined) {
    return told(
      null,
      { ...base, state: 'pending', availableAtMs: move.availableAtMs ?? atMs },
      'created',
      {},
    );
  }
  const { lock, node } = start;
  return told(null, { ...base, state: 'running', lock, node, startedAtMs: atMs }, 'started', workerOf(start));
}

function fromPending(run: In<'pending'>, move: RunMove, atMs: number): Stepped {
  switch (move.type) {
    case 'start': {
      const { lock, node } = move.by;
      const base = based(run, atMs, { attempt: run.attempt + 1, trigger: move.trigger });
      const next: RunRecord = { ...base, state: 'running', lock, node, startedAtMs: atMs };
      return told(run, next, 'started', workerOf(move.by));
    }
    case 'skip': {
      const { reason } = move;
      const blockedBy = move.blockedBy === undefined ? {} : { blockedBy: move.blockedBy };
      const next: RunRecord = {
        ...based(run, atMs),
        state: 'skipped',
        finishedAtMs: atMs,
        reason,
        ...blockedBy,
      };
      return told(run, next, 'skipped', { note: reason });
    }
    case 'expire': {
      const { reason } = move;
      const next: RunRecord = { ...based(run, atMs), state: 'expired', finishedAtMs: atMs, reason };
      return told(run, next, 'expired', { note: reason });
    }
    case 'hold':
      return held(run, move.reason, atMs);
    case 'alarm':
      if (run.alarmed) return no('already');
      return told(run, { ...run, alarmed: true, updatedAtMs: atMs }, 'alarm', { note: 'overdue' });
    default:
      return no('wrong-state');
  }
}

function fromRunning(run: In<'running'>, move: RunMove, atMs: number): Stepped {
  switch (move.type) {
    case 'take-over':
      return takenOver(run, move, atMs);
    case 'progress': {
      if (move.token !== run.lock.token) return no('stale-token');
      const next: RunRecord = { ...run, progress: move.progress, updatedAtMs: atMs };
      return told(run, next, 'progress', { token: move.token });
    }
    case 'complete':
      return completed(run, move, atMs);
    case 'fail-attempt':
      return attemptFailed(run, move, atMs);
    case 'hand-back':
      if (move.token !== run.lock.token) return no('stale-token');
      return uncounted(run, HANDED_BACK, atMs, {}, workerOf(run));
    case 'crash':
      return crashed(run, move, atMs);
    case 'hold':
      return held(run, move.reason, atMs);
    case 'decide':
      // Somebody may be working on it: only the holder of a newer grant knows that nobody is.
      if (move.by === undefined) return no('wrong-state');
      return unlessNewer(run, move.by) ?? decided(run, move, atMs);
    default:
      return no('wrong-state');
  }
}

function takenOver(run: In<'running'>, move: Move<'take-over'>, atMs: number): Stepped {
  const refusal = unlessNewer(run, move.by);
  if (refusal !== undefined) return refusal;
  if (run.takeovers >= move.maxTakeovers) return no('max-takeovers');
  const { lock, node } = move.by;
  const base = based(run, atMs, { takeovers: run.takeovers + 1, trigger: 'takeover' });
  const progress = run.progress === undefined ? {} : { progress: run.progress };
  const next: RunRecord = { ...base, state: 'running', lock, node, startedAtMs: atMs, ...progress };
  return told(run, next, 'taken-over', workerOf(move.by));
}

function completed(run: In<'running'>, move: Move<'complete'>, atMs: number): Stepped {
  const { token, node } = move;
  if (token !== run.lock.token) return no('stale-token');
  const late = move.late ? { late: true } : {};
  const base = based(run, atMs);
  const next: RunRecord = { ...base, state: 'completed', finishedAtMs: atMs, node, ...late, ...kept(move) };
  return told(run, next, 'completed', { node, token, ...(move.late ? { note: 'late' } : {}) });
}

function attemptFailed(run: In<'running'>, move: Move<'fail-attempt'>, atMs: number): Stepped {
  const { fault, retryAtMs } = move;
  if (move.token !== run.lock.token) return no('stale-token');
  const details = { ...workerOf(run), note: noteOf(fault) };
  if (retryAtMs === undefined) {
    return failed(run, 'failed', atMs, { fault, compensating: move.compensate ? run : 'none', details });
  }
  const base = based(run, atMs, { lastFault: fault });
  return told(
    run,
    { ...base, state: 'pending', availableAtMs: retryAtMs, reason: 'retry' },
    'attempt-failed',
    details,
  );
}

function crashed(run: In<'running'>, move: Move<'crash'>, atMs: number): Stepped {
  const { by, fault, policy, heldAs = policy.onCrash === 'hold' ? 'crashed' : 'max-takeovers' } = move;
  if (by.lock.backend !== run.lock.backend) return no('other-backend');
  if (BigInt(by.lock.token) < BigInt(run.lock.token)) return no('stale-token');
  const details = { ...workerOf(by), note: noteOf(fault) };
  switch (afterCrash(run, policy)) {
    case 'retry':
      return uncounted(run, 'crashed', atMs, { takeovers: run.takeovers + 1, lastFault: fault }, details);
    case 'fail':
      return failed(run, 'failed', atMs, { fault, compensating: policy.compensate ? by : 'none', details });
    case 'hold':
      return held(run, heldAs, atMs, { fault, details });
  }
}

function fromFailed(run: In<'failed'>, move: RunMove, atMs: number): Stepped {
  switch (move.type) {
    case 'rerun':
      return again(run, 'rerun', 'call', atMs, { input: move.input });
    case 'decide':
      return move.decision === 'fail' ? no('already') : decided(run, move, atMs);
    case 'compensation-start':
      return compensationStarted(run, move, atMs);
    case 'compensation-end':
      return compensationEnded(run, move, atMs);
    case 'waive':
      if (!compensationOpen(run)) return no('already');
      return told(run, closed(run, 'waived', atMs), 'compensation-waived', { note: move.note });
    default:
      return no('wrong-state');
  }
}

function compensationStarted(run: In<'failed'>, move: Move<'compensation-start'>, atMs: number): Stepped {
  if (run.compensation !== 'due') return no('already');
  // Without a lock in the record nobody has begun; with one this is a takeover, and needs a newer grant.
  const refusal = run.lock === undefined ? undefined : unlessNewer({ lock: run.lock }, move.by);
  if (refusal !== undefined) return refusal;
  const { lock, node } = move.by;
  const next: RunRecord = { ...run, lock, node, takeovers: run.takeovers + 1, updatedAtMs: atMs };
  return told(run, next, 'compensation-started', workerOf(move.by));
}

function compensationEnded(run: In<'failed'>, move: Move<'compensation-end'>, atMs: number): Stepped {
  if (run.compensation !== 'due') return no('already');
  if (run.lock?.token !== move.token) return no('stale-token');
  const note = move.fault === undefined ? {} : { note: noteOf(move.fault) };
  const details = { token: move.token, ...note };
  return told(run, closed(run, move.result, atMs), `compensation-${move.result}`, details);
}

function fromSkipped(run: In<'skipped'>, move: RunMove, atMs: number): Stepped {
  if (run.scheduledForMs !== undefined) return no('terminal');
  if (move.type === 'reopen') return again(run, 'reopened', 'call', atMs, { input: move.input });
  return move.type === 'decide' && move.decision === 'retry' ? decided(run, move, atMs) : no('wrong-state');
}

function decided(run: RunRecord, move: Move<'decide'>, atMs: number): Stepped {
  const { note, node, by } = move;
  const details = { node, note, ...(by === undefined ? {} : { token: by.lock.token }) };
  switch (move.decision) {
    case 'retry':
      return again(run, 'decided-retry', 'manual', atMs, { details });
    case 'complete': {
      if (compensationOpen(run)) return no('compensation-due');
      const base = based(run, atMs);
      const next: RunRecord = { ...base, state: 'completed', finishedAtMs: atMs, node, ...kept(move) };
      return told(run, next, 'decided-complete', details);
    }
    case 'fail': {
      const fault: RunFault = run.lastFault ?? { name: 'Decision', message: note };
      const compensating = move.compensate ? 'nobody-yet' : 'none';
      return failed(run, 'decided-fail', atMs, { fault, compensating, details });
    }
  }
}
