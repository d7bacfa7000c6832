/** The records of tasks in the run store: read, and written by compare-and-set with a `writeId` of their own (S4). */
import type { TaskRecord } from '../../machine/task-record.js';
import type { StoredTask } from '../../port/run-store.js';
import type { RunHost } from '../run/run-host.js';

/** What a task's record is now. */
export function readTask(host: RunHost, task: string): Promise<StoredTask | null> {
  return host.book.asked((store) => store.task(host.namespace, task));
}

/**
 * Writes the record that follows the one that was read; `false`: somebody was faster. Where the answer was lost, the
 * record tells; where it does not tell the fault is thrown, and whoever looks next goes on from what is there.
 */
export async function writeTask(
  host: RunHost,
  stored: StoredTask | null,
  next: TaskRecord,
): Promise<boolean> {
  const writeId = host.random.id();
  const expected = stored?.version ?? null;
  try {
    const version = await host.book.asked((store) =>
      store.putTask(host.namespace, expected, { ...next, writeId }),
    );
    return version !== null;
  } catch (error) {
    const there = await readTask(host, next.task).catch(() => undefined);
    if (there?.record.writeId === writeId) return true;
    throw error;
  }
}
