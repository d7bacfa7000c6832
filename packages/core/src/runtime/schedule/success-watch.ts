/**
 * Watches that a task completes now and then. Nothing is written while all is well: only when a node has seen no
 * success for `alarmAfter` it asks the store for the last one, and one compare-and-set decides which node tells.
 */
import type { StoredTask } from '../../port/run-store.js';
import { emit, type RunHost } from '../run/run-host.js';
import { writeTask } from './task-book.js';

/** The watch of one task on one node. */
export class SuccessWatch {
  private seenMs: number | undefined;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly host: RunHost,
    private readonly task: string,
    private readonly alarmAfterMs: number | undefined,
  ) {
    this.unsubscribe = host.events.on('run-completed', ({ run }) => {
      if (run.task === task && run.state === 'completed') this.seenMs = run.finishedAtMs;
    });
  }

  end(): void {
    this.unsubscribe();
  }

  /** Raises the alarm, once in the cluster for each time without success. */
  async look(stored: StoredTask | null): Promise<void> {
    const { alarmAfterMs, host, task } = this;
    const definition = stored?.record.definition;
    if (alarmAfterMs === undefined || stored === null || definition === undefined) return;
    const { record } = stored;
    if (record.paused !== undefined) return;
    const beforeMs = host.time.estimate() - alarmAfterMs;
    if (definition.sinceMs > beforeMs || (this.seenMs ?? -Infinity) > beforeMs) return;
    this.seenMs = await this.lastSuccess();
    if ((this.seenMs ?? -Infinity) > beforeMs) return;
    const alarm = `no success since ${this.seenMs ?? definition.sinceMs}`;
    if (record.alarm === alarm) return;
    const lastSuccessMs = this.seenMs === undefined ? {} : { lastSuccessMs: this.seenMs };
    if (!(await writeTask(host, stored, { ...record, ...lastSuccessMs, alarm }))) return;
    const lastSuccess = this.seenMs === undefined ? {} : { lastSuccess: new Date(this.seenMs) };
    emit(host, 'alarm', { task, reason: 'no-success', ...lastSuccess });
  }

  private async lastSuccess(): Promise<number | undefined> {
    const { host, task } = this;
    const query = { task, states: ['completed'], limit: 1 } as const;
    const page = await host.book.asked((store) => store.list(host.namespace, query));
    const [newest] = page.runs;
    return newest?.run.state === 'completed' ? newest.run.finishedAtMs : undefined;
  }
}
