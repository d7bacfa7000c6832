/** What the parts of the run engine share. */
import type { GuardEvents } from '../../api/event.js';
import type { Worker } from '../../machine/run-move.js';
import type { RunNode, RunRecord } from '../../machine/run-record.js';
import { NO_TOKEN } from '../../machine/run.js';
import type { Clock, Random } from '../../port/clock.js';
import type { LockInfo } from '../../port/lock-backend.js';
import { type ActiveRuns, lockKeyOf } from './active-runs.js';
import type { BackendClock } from './backend-clock.js';
import type { LockOutages } from './lock-outages.js';
import type { Events } from '../events.js';
import type { HeldLock, LockService } from '../lock/lock-service.js';
import type { RunBook } from './run-book.js';
import type { TaskRegistry } from './run-task.js';

const INSPECTED_AT_ONCE = 100;

/** The surroundings of one guard's runs. */
export interface RunHost {
  readonly namespace: string;
  readonly locks: LockService;
  readonly lockOutages: LockOutages;
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

/** Those of these runs that are running and on which nobody works any more, as their locks say. */
export async function orphansOf(host: RunHost, runs: readonly RunRecord[]): Promise<ReadonlySet<RunRecord>> {
  const { locks, namespace } = host;
  const tokens = new Map<RunRecord, bigint>();
  for (const run of runs) {
    // Without a lock nobody can tell; with another backend's, not from here.
    const isOurs = run.state === 'running' && run.lock.backend === locks.backendName;
    if (isOurs && run.lock.token !== NO_TOKEN) tokens.set(run, BigInt(run.lock.token));
  }
  const keys = new Set([...tokens.keys()].map((run) => lockKeyOf(namespace, run)));
  const infos = await inspectAll(locks, [...keys]);
  const isOrphan = ([run, token]: [RunRecord, bigint]): boolean => {
    const info = infos.get(lockKeyOf(namespace, run));
    return info?.held !== true || info.token !== token;
  };
  return new Set([...tokens].filter(isOrphan).map(([run]) => run));
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
