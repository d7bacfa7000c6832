/** Worker processes of the cases of one file: those that are still there after a case are ended. */
import { join } from 'node:path';
import { startWorker, type WorkerOptions, type WorkerProcess } from '@guard/testing';

const children = new Set<WorkerProcess>();

/** Starts one of the files in `process/`. */
export function startChild<O = unknown>(
  script: string,
  input: object,
  options: WorkerOptions = {},
): WorkerProcess<O> {
  const child = startWorker<O>(join(__dirname, '../process', script), { ...options, input });
  children.add(child);
  void child.ended.then(() => children.delete(child));
  return child;
}

/** Ends the children that are still there. */
export async function endChildren(): Promise<void> {
  await Promise.all([...children].map((child) => child.kill()));
}
