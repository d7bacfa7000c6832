/** Does one of the things that a process must not do. */
import { EventEmitter } from 'node:events';
import type { WorkerScope } from '@guard/testing';

export type Fault =
  | 'rejection'
  | 'exception'
  | 'listeners'
  | 'timer'
  | 'throw'
  | 'lingers'
  | 'exit'
  | 'hidden rejection'
  | 'hidden exception'
  | 'late';

/** What a careless program does: whatever goes wrong, it goes on. */
function hideEverything(): void {
  process.removeAllListeners();
  process.on('unhandledRejection', () => undefined);
  process.on('uncaughtException', () => undefined);
  process.send = () => true;
}

export default async function bad({ input }: WorkerScope<Fault>): Promise<string> {
  switch (input) {
    case 'rejection':
      void Promise.reject(new Error('nobody waits for me'));
      break;
    case 'exception':
      setTimeout(() => {
        throw new Error('nobody catches me');
      }, 1);
      break;
    case 'listeners': {
      const emitter = new EventEmitter();
      for (let count = 0; count < 11; count++) emitter.on('x', () => undefined);
      break;
    }
    case 'timer':
      setTimeout(() => undefined, 2 ** 31);
      break;
    case 'throw':
      throw new Error('thrown by the worker');
    case 'lingers':
      setInterval(() => undefined, 1_000);
      return 'returned';
    case 'hidden rejection':
      hideEverything();
      void Promise.reject(new Error('nobody waits for me'));
      break;
    case 'hidden exception':
      hideEverything();
      setTimeout(() => {
        throw new Error('nobody catches me');
      }, 1);
      break;
    case 'late':
      hideEverything();
      setTimeout(() => void Promise.reject(new Error('too late for everybody')), 50);
      return 'returned';
    case 'exit':
      process.exitCode = 3;
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  return 'returned';
}
