/** Believes to hold a lock until it is told that it was lost; looks every few milliseconds. */
import { SharedHoldLog, type WorkerScope } from '@guard/testing';

interface Input {
  readonly file: string;
  readonly token: bigint;
}

export default async function holding({ input, tell, hear }: WorkerScope<Input>): Promise<void> {
  const log = new SharedHoldLog(input.file);
  const holder = `process ${process.pid}`;
  log.enter(holder, { key: 'k', token: input.token });
  const timer = setInterval(() => log.add('held', holder, 'k'), 2);
  await tell('entered');
  await hear();
  clearInterval(timer);
  log.add('exit', holder, 'k');
}
