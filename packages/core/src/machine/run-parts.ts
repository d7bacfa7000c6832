/**
 * The ends of the arrows of `machine/run.ts`: how each new record is put together, with the line of history that
 * belongs to it. A record keeps only what every state has; the rest goes with the state it belonged to.
 */
import type { KeptValue, MoveRefusal, Stepped, Worker } from './run-move.js';
import type { RunBase, RunEvent, RunFault, RunRecord, RunStatus } from './run-record.js';

/** A record in one state. */
export type In<S extends RunStatus['state']> = RunRecord & { readonly state: S };
/** What a line of history says beside what happened. */
export type Details = Pick<RunEvent, 'node' | 'token' | 'note'>;

/** The answer to a wish that has no arrow. */
export function no(refused: MoveRefusal): { readonly refused: MoveRefusal } {
  return { refused };
}

/** The new record with its line of history. */
export function told(run: RunRecord | null, next: RunRecord, what: string, details: Details): Stepped {
  const event = { atMs: next.updatedAtMs, what, from: run?.state ?? 'none', to: next.state } as const;
  return { next, event: { ...event, attempt: next.attempt, ...details } };
}

/** What every state has; an alarm is about one state, and does not go on to the next. */
export function based(run: RunRecord, atMs: number, change: Partial<RunBase> = {}): RunBase {
  return {
    task: run.task,
    key: run.key,
    id: run.id,
    attempt: run.attempt,
    takeovers: run.takeovers,
    trigger: run.trigger,
    ...(run.scheduledForMs === undefined ? {} : { scheduledForMs: run.scheduledForMs }),
    ...(run.keyed === undefined ? {} : { keyed: run.keyed }),
    ...(run.input === undefined ? {} : { input: run.input }),
    createdAtMs: run.createdAtMs,
    updatedAtMs: atMs,
    ...(run.lastFault === undefined ? {} : { lastFault: run.lastFault }),
    ...change,
  };
}

/** Who wrote it, for the history. */
export function workerOf(by: Worker): Details {
  return { node: by.node, token: by.lock.token };
}

/** A fault as one line of history. */
export function noteOf(fault: RunFault): string {
  return `${fault.name}: ${fault.message}`;
}

/** Only the parts of a result that are there. */
export function kept(value: KeptValue): KeptValue {
  return {
    ...(value.value === undefined ? {} : { value: value.value }),
    ...(value.valueOmitted ? { valueOmitted: true } : {}),
  };
}

/** Whether a compensation stands in the way of everything else. */
export function compensationOpen(run: RunRecord): boolean {
  return run.state === 'failed' && (run.compensation === 'due' || run.compensation === 'error');
}

/** Refuses whoever does not hold a newer grant of the record's lock. */
export function unlessNewer(
  run: Pick<In<'running'>, 'lock'>,
  by: Worker,
): { readonly refused: MoveRefusal } | undefined {
  if (by.lock.backend !== run.lock.backend) return no('other-backend');
  return BigInt(by.lock.token) > BigInt(run.lock.token) ? undefined : no('stale-token');
}

/** Back to pending as if it were new: by the next caller, or by a person. */
export function again(
  run: RunRecord,
  what: string,
  trigger: RunBase['trigger'],
  atMs: number,
  extra: { readonly input?: string | undefined; readonly details?: Details } = {},
): Stepped {
  if (compensationOpen(run)) return no('compensation-due');
  const input = extra.input === undefined ? {} : { input: extra.input };
  const base = based(run, atMs, { attempt: 0, takeovers: 0, trigger, ...input });
  return told(run, { ...base, state: 'pending', availableAtMs: atMs }, what, extra.details ?? {});
}

/** `reason` of a pending record whose node gave it up when it closed. */
export const HANDED_BACK = 'handed-back';

/** Back to pending, with the attempt that was cut off not counted. */
export function uncounted(
  run: In<'running'>,
  reason: typeof HANDED_BACK | 'crashed',
  atMs: number,
  change: Partial<RunBase>,
  details: Details,
): Stepped {
  const base = based(run, atMs, { attempt: Math.max(run.attempt - 1, 0), ...change });
  return told(run, { ...base, state: 'pending', availableAtMs: atMs, reason }, reason, details);
}

/** What a move to `failed` says about the compensation. */
export type Compensating = Worker | 'nobody-yet' | 'none';

/** Failed, with a compensation due where the task has one. The worker who wrote it goes on with it at once. */
export function failed(
  run: RunRecord,
  what: string,
  atMs: number,
  end: { readonly fault: RunFault; readonly compensating: Compensating; readonly details: Details },
): Stepped {
  const { fault, compensating } = end;
  const due = compensating === 'none' ? {} : { compensation: 'due' as const };
  const worker = typeof compensating === 'object' ? { lock: compensating.lock, node: compensating.node } : {};
  const anew = compensating === 'none' ? {} : { takeovers: 0 };
  const base = based(run, atMs, { lastFault: fault, alarmed: true, ...anew });
  return told(
    run,
    { ...base, state: 'failed', finishedAtMs: atMs, fault, ...due, ...worker },
    what,
    end.details,
  );
}

/** Failed as before, with the compensation closed and nobody working on it any more. */
export function closed(
  run: In<'failed'>,
  compensation: 'done' | 'error' | 'waived',
  atMs: number,
): RunRecord {
  const base = based(run, atMs, run.alarmed ? { alarmed: true } : {});
  return { ...base, state: 'failed', finishedAtMs: run.finishedAtMs, fault: run.fault, compensation };
}

/** On hold until a person decides. */
export function held(
  run: RunRecord,
  reason: string,
  atMs: number,
  extra: { readonly fault?: RunFault; readonly details?: Details } = {},
): Stepped {
  const fault = extra.fault === undefined ? {} : { lastFault: extra.fault };
  const base = based(run, atMs, { alarmed: true, ...fault });
  const next: RunRecord = { ...base, state: 'on-hold', sinceMs: atMs, reason };
  return told(run, next, 'held', { note: reason, ...extra.details });
}
