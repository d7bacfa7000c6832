/**
 * Watches that a task completes now and then. Nothing is written while all is well: only when a node has seen no
 * success for `alarmAfter` it asks the store for the last one, and one compare-and-set decides which node tells.
 */
import type { StoredTask } from '../../port/run-store.js';
import { emit, type RunHost } from '../run/run-host.js';
import type { TaskSchedule } from '../run/run-task.js';
import { readTask, writeTask } from './task-book.js';

/** The watch of one task on one node. */
export class SuccessWatch {
  private seenMs: number | undefined;
  private askedAtMonoMs = -Infinity;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly host: RunHost,
    private readonly task: string,
    private readonly schedule: TaskSchedule,
  ) {
    this.unsubscribe = host.events.on('run-completed', ({ run }) => {
      if (run.task === task && run.state === 'completed') this.seenMs = run.finishedAtMs;
    });
  }

  end(): void {
    this.unsubscribe();
  }

  /**
   * Raises the alarm, once in the cluster for each time without success. It needs the run store alone: no lock, and no
   * node that could plan or run anything.
   */
  async look(): Promise<void> {
    const { host, schedule } = this;
    if (schedule.alarmAfterMs === undefined) return;
    const beforeMs = host.time.estimate() - schedule.alarmAfterMs;
    if ((this.seenMs ?? -Infinity) > beforeMs || this.askedJustNow()) return;
    const stored = await readTask(host, this.task);
    const definition = stored?.record.definition;
    if (stored === null || definition?.hash !== schedule.definition.hash) return;
    const { paused, resumed } = stored.record;
    // Before that it could not succeed: the time counts from the end of a pause, as from a new schedule.
    if (paused !== undefined || Math.max(definition.sinceMs, resumed?.atMs ?? -Infinity) > beforeMs) return;
    this.seenMs = await this.lastSuccess();
    if ((this.seenMs ?? -Infinity) <= beforeMs) await this.raise(stored, definition.sinceMs);
  }

  private async raise(stored: StoredTask, sinceMs: number): Promise<void> {
    const { host, task, seenMs } = this;
    const { record } = stored;
    const alarm = `no success since ${seenMs ?? sinceMs}`;
    if (record.alarm === alarm) return;
    const lastSuccessMs = seenMs === undefined ? {} : { lastSuccessMs: seenMs };
    if (!(await writeTask(host, stored, { ...record, ...lastSuccessMs, alarm }))) return;
    const lastSuccess = seenMs === undefined ? {} : { lastSuccess: new Date(seenMs) };
    emit(host, 'alarm', { task, reason: 'no-success', ...lastSuccess });
  }

  /** A schedule may be looked at every second: the store is not asked about its successes so often. */
  private askedJustNow(): boolean {
    const { clock, sweepIntervalMs } = this.host;
    const { monoMs } = clock.now();
    if (monoMs - this.askedAtMonoMs < sweepIntervalMs / 2) return true;
    this.askedAtMonoMs = monoMs;
    return false;
  }

  private async lastSuccess(): Promise<number | undefined> {
    const { host, task } = this;
    const query = { task, states: ['completed'], limit: 1 } as const;
    const page = await host.book.asked((store) => store.list(host.namespace, query));
    const [newest] = page.runs;
    return newest?.run.state === 'completed' ? newest.run.finishedAtMs : undefined;
  }
}
