/**
 * The attempts that go on on this node, each until its promise has settled, however late. So a node knows its strays:
 * work that still executes although its lock was lost, or left to run out because it did not heed its signal. Nothing
 * begins on this node beside a stray under the same lock: the lock cannot say any more that the work runs, but this
 * node can. That bounds the work that hangs here, too: one for each lock.
 */
import type { RunRecord } from '../../machine/run-record.js';
import type { Clock } from '../../port/clock.js';
import { GuardError } from '../../value/error.js';
import { fullKey, joinParts } from '../../value/key.js';
import { pause } from '../flight/pause.js';
import type { ActiveRun } from './active-run.js';
import type { Attempt } from './run-attempt.js';

interface Entry {
  readonly run: ActiveRun;
  readonly attempt: Attempt;
}

/** What names a run and its lock. */
type Named = Pick<RunRecord, 'task' | 'key' | 'keyed'>;

/** Full key of the lock of a run: of its own key, or of its task. */
export function lockKeyOf(namespace: string, run: Named): string {
  return fullKey(namespace, 'task', joinParts(run.keyed ? [run.task, run.key] : [run.task]));
}

/** The attempts of one node, by the full key of their lock. */
export class ActiveRuns {
  private readonly entries = new Map<string, Set<Entry>>();

  constructor(private readonly namespace: string) {}

  /** Remembers an attempt until its work has settled. */
  add(run: ActiveRun, attempt: Attempt): void {
    const { key } = run.by.lock;
    const entry = { run, attempt };
    const under = this.entries.get(key) ?? new Set();
    this.entries.set(key, under.add(entry));
    void attempt.settled.then(() => {
      under.delete(entry);
      if (under.size === 0 && this.entries.get(key) === under) this.entries.delete(key);
    });
  }

  /** Whether this node works on the run under a lock that it holds, or under none by the task's own wish. */
  works(run: Named): boolean {
    return this.entriesOf(run).some((entry) => !isStray(entry));
  }

  /** The work on this run that goes on here without its lock. */
  strayOf(run: Named): ActiveRun | undefined {
    return this.entriesOf(run).find(isStray)?.run;
  }

  /** Whether work goes on here that had this lock, and has it no more. */
  hasStray(lockKey: string): boolean {
    return this.strayUnder(lockKey) !== undefined;
  }

  /** Waits so long for strays under this lock to settle; `false`: one still goes on. */
  async cleared(clock: Clock, lockKey: string, waitMs: number, signal: AbortSignal): Promise<boolean> {
    const endMonoMs = clock.now().monoMs + waitMs;
    for (let stray = this.strayUnder(lockKey); stray !== undefined; stray = this.strayUnder(lockKey)) {
      const leftMs = endMonoMs - clock.now().monoMs;
      if (leftMs <= 0 || signal.aborted) return false;
      const waits = new AbortController();
      const stop = (): void => waits.abort();
      signal.addEventListener('abort', stop);
      void stray.attempt.settled.then(stop);
      await pause(clock, leftMs, waits.signal);
      signal.removeEventListener('abort', stop);
    }
    return true;
  }

  /** The grace is over: tells all of them to stop. */
  cutAll(cause: unknown): void {
    for (const { run } of this.all()) {
      const { task, key } = run;
      const message = `the guard is closed: run ${key} of ${task} did not end within the grace, and was told to stop`;
      run.cut('shutdown', new GuardError('closed', message, { key, reason: 'grace-over', cause }));
    }
  }

  /** Gives up waiting for those that have not settled: their leases run out. */
  letGoAll(): void {
    for (const { attempt } of this.all()) attempt.letGo();
  }

  private strayUnder(lockKey: string): Entry | undefined {
    const under = this.entries.get(lockKey);
    return under === undefined ? undefined : [...under].find(isStray);
  }

  private entriesOf(run: Named): readonly Entry[] {
    const under = this.entries.get(lockKeyOf(this.namespace, run));
    if (under === undefined) return [];
    return [...under].filter((entry) => entry.run.task === run.task && entry.run.key === run.key);
  }

  private all(): readonly Entry[] {
    return [...this.entries.values()].flatMap((under) => [...under]);
  }
}

/** A run without a lock by its task's own wish is none: it waived that nothing goes on beside it. */
function isStray({ run: { lock } }: Entry): boolean {
  return lock !== undefined && !lock.isHeld();
}
