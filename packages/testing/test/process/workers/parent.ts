import { spawn } from 'node:child_process';
import type { WorkerScope } from '@guard/testing';

/** Leaves a process behind that lives longer than this one, and holds its error stream open. */
export default async function parent({ tell }: WorkerScope): Promise<void> {
  const child = spawn('sleep', ['60'], { stdio: 'inherit' });
  await tell(child.pid);
  await new Promise(() => undefined);
}
