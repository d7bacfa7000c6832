/** What the parts of the run engine share. */
import type { GuardEvents } from '../../api/event.js';
import type { Worker } from '../../machine/run-move.js';
import type { RunNode, RunRecord } from '../../machine/run-record.js';
import { NO_TOKEN } from '../../machine/run.js';
import type { Clock, Random } from '../../port/clock.js';
import type { LockInfo } from '../../port/lock-backend.js';
import { GuardError } from '../../value/error.js';
import { fullKey, joinParts } from '../../value/key.js';
import type { ActiveRun } from './active-run.js';
import type { BackendClock } from './backend-clock.js';
import type { Events } from '../events.js';
import type { HeldLock, LockService } from '../lock/lock-service.js';
import type { Attempt } from './run-attempt.js';
import type { RunBook } from './run-book.js';
import type { TaskRegistry } from './run-task.js';

const INSPECTED_AT_ONCE = 100;

/** The surroundings of one guard's runs. */
export interface RunHost {
  readonly namespace: string;
  readonly locks: LockService;
  readonly book: RunBook;
  /** The run store's clock. */
  readonly time: BackendClock;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  readonly node: RunNode;
  readonly tasks: TaskRegistry;
  readonly sweepIntervalMs: number;
  readonly active: ActiveRuns;
  readonly shutdown: Shutdown;
  /** Aborts when the guard begins to close: the runs' `stopSignal`. */
  readonly stopSignal: AbortSignal;
}

/** How far a guard has closed. */
export class Shutdown {
  private readonly controller = new AbortController();
  /** The grace is over: outcomes are not tried to be written any longer. */
  graceOver = false;
  /** Nothing goes on any longer. */
  over = false;

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  begin(reason: unknown): void {
    this.controller.abort(reason);
  }

  endGrace(): void {
    this.graceOver = true;
  }

  end(): void {
    this.over = true;
  }
}

/** The attempts that go on on this node, each until its promise has settled, however late. */
export class ActiveRuns {
  private readonly attempts = new Map<string, { readonly run: ActiveRun; readonly attempt: Attempt }>();

  /** Remembers an attempt until its work has settled. */
  add(run: ActiveRun, attempt: Attempt): void {
    const name = nameOf(run);
    const entry = { run, attempt };
    this.attempts.set(name, entry);
    void attempt.settled.then(() => {
      if (this.attempts.get(name) === entry) this.attempts.delete(name);
    });
  }

  has(run: Pick<RunRecord, 'task' | 'key'>): boolean {
    return this.attempts.has(nameOf(run));
  }

  /** The grace is over: tells all of them to stop. */
  cutAll(cause: unknown): void {
    for (const { run } of this.attempts.values()) {
      const { task, key } = run;
      const message = `the guard is closed: run ${key} of ${task} did not end within the grace, and was told to stop`;
      run.cut('shutdown', new GuardError('closed', message, { key, reason: 'grace-over', cause }));
    }
  }

  /** Gives up waiting for those that have not settled: their leases run out. */
  letGoAll(): void {
    for (const { attempt } of this.attempts.values()) attempt.letGo();
  }
}

/** Full key of the lock of a run: of its own key, or of its task. */
export function lockKeyOf(namespace: string, run: Pick<RunRecord, 'task' | 'key' | 'keyed'>): string {
  return fullKey(namespace, 'task', joinParts(run.keyed ? [run.task, run.key] : [run.task]));
}

/** The mark of this node in a record, under a lock or under none. */
export function workerUnder(host: RunHost, lockKey: string, lock: HeldLock | undefined): Worker {
  const token = lock === undefined ? NO_TOKEN : lock.token.toString();
  return { lock: { backend: host.locks.backendName, key: lockKey, token }, node: host.node };
}

/** What the lock backend knows about these full keys, asked in batches. */
export async function inspectAll(
  locks: LockService,
  keys: readonly string[],
): Promise<ReadonlyMap<string, LockInfo>> {
  const infos = new Map<string, LockInfo>();
  for (let from = 0; from < keys.length; from += INSPECTED_AT_ONCE) {
    for (const info of await locks.inspect(keys.slice(from, from + INSPECTED_AT_ONCE)))
      infos.set(info.key, info);
  }
  return infos;
}

/** Tells of a run that failed or was put on hold; the write that did it marked it as told. */
export function tellEnd(host: RunHost, run: RunRecord, error?: unknown): void {
  if (run.state === 'failed') emit(host, 'run-failed', { run, error });
  if (run.state === 'on-hold') emit(host, 'run-on-hold', { run });
  if (run.state === 'failed' || run.state === 'on-hold') emit(host, 'alarm', { run, reason: run.state });
}

/** Tells an event. */
export function emit<E extends keyof GuardEvents>(host: RunHost, event: E, payload: GuardEvents[E]): void {
  host.events.emit(event, payload);
}

function nameOf(run: Pick<RunRecord, 'task' | 'key'>): string {
  return joinParts([run.task, run.key]);
}
