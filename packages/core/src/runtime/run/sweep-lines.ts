/**
 * Occurrences that wait for their turn: those of one task run one after another, oldest first, on however many nodes
 * sweep. So a sweep goes through them as one line for each task, and only the head of a line can be overdue.
 */
import type { RunRecord, StoredRun } from '../../machine/run-record.js';
import type { Clock } from '../../port/clock.js';
import type { RunEngine } from './run-engine.js';
import type { RunHost } from './run-host.js';
import type { TaskDefinition } from './run-task.js';

/** Runs of one task, oldest first. */
export interface Line {
  readonly line: readonly StoredRun[];
  readonly task: TaskDefinition;
  /** This node made them. */
  readonly mine?: boolean;
}

/** Goes through a line. Where a run does not get its lock none behind it is tried: a later sweep goes on with them. */
export async function goThrough(host: RunHost, engine: RunEngine, { line, task, mine }: Line): Promise<void> {
  for (const stored of line) {
    if (host.stopSignal.aborted || !(await engine.adopt(stored, task, mine))) return;
  }
}

/** The lines of one sweep. */
export class Lines {
  private readonly waiting = new Map<string, StoredRun[]>();
  private readonly busy = new Set<string>();

  /** Somebody works on this run. */
  runs(run: RunRecord): void {
    if (run.keyed !== true) this.busy.add(run.task);
  }

  /** Puts a run into its line; `false`: it needs none. */
  takes(stored: StoredRun): boolean {
    const { run } = stored;
    if (run.state !== 'pending' || run.scheduledForMs === undefined || run.keyed === true) return false;
    const line = this.waiting.get(run.task);
    if (line === undefined) this.waiting.set(run.task, [stored]);
    else line.push(stored);
    return true;
  }

  /** Whether a run of this task holds the lock that its line waits for. */
  isBusy(task: string): boolean {
    return this.busy.has(task);
  }

  has(task: string): boolean {
    return this.waiting.has(task);
  }

  /** Each line, oldest instant first. */
  sorted(): readonly (readonly [task: string, line: readonly StoredRun[]])[] {
    const instantOf = ({ run }: StoredRun): number => run.scheduledForMs ?? 0;
    return [...this.waiting].map(([task, line]) => {
      return [task, line.sort((a, b) => instantOf(a) - instantOf(b))] as const;
    });
  }
}

/** Which run is the head of a line, and since when this node has seen it there with nothing in its way. */
export class Heads {
  private readonly seen = new Map<string, { readonly key: string; readonly sinceMonoMs: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly patienceMs: number,
  ) {}

  isStuck({ task, key }: RunRecord, isBusy: boolean): boolean {
    const { monoMs } = this.clock.now();
    const before = this.seen.get(task);
    if (isBusy) this.seen.delete(task);
    else if (before?.key !== key) this.seen.set(task, { key, sinceMonoMs: monoMs });
    else return monoMs - before.sinceMonoMs >= this.patienceMs;
    return false;
  }

  /** Forgets tasks whose line is empty. */
  keep(lines: Lines): void {
    for (const task of this.seen.keys()) if (!lines.has(task)) this.seen.delete(task);
  }
}
