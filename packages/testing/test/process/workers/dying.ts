/** Believes to hold a lock, and dies of itself, or of what it is told. */
import { SharedHoldLog, type WorkerScope } from '@guard/testing';

export default async function dying({ input, tell, hear }: WorkerScope<string>): Promise<void> {
  new SharedHoldLog(input).enter('the holder', { key: 'k', token: 1n });
  await tell('entered');
  if ((await hear()) === 'crash') throw new Error('crashed');
  process.kill(process.pid, 'SIGKILL');
}
