/**
 * A process that takes and gives back locks as it is told, and writes down when it believes to hold one. It takes
 * `hold <key> <ttlMs>` and `release`, and `hammer <keys>`: locks for a moment, over and over, until it hears `end`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuard, type Lock } from '@guard/core';
import { SharedHoldLog, type WorkerMain } from '@guard/testing';
import { Etcd3 } from 'etcd3';
import { etcdLocks } from '../../src/index.js';

/** Where it works, and as whom it writes. */
export interface HolderInput {
  readonly urls: readonly string[];
  readonly namespace: string;
  readonly log: string;
  readonly name: string;
}

const main: WorkerMain<HolderInput, string[]> = async ({ input, tell, hear }) => {
  const client = new Etcd3({ hosts: [...input.urls] });
  const locks = etcdLocks(client);
  const guard = createGuard({ locks, namespace: input.namespace, grace: '1s' });
  const log = new SharedHoldLog(input.log);
  const faults: string[] = [];
  let held: Lock | undefined;
  let loops = Promise.resolve();
  let ended = false;

  function enter(lock: Lock, holder: string): void {
    log.enter(holder, lock);
    lock.signal.addEventListener('abort', () => log.add('lost', holder, lock.key));
  }

  async function leave(lock: Lock, holder: string): Promise<string> {
    if (lock.isHeld()) log.add('exit', holder, lock.key);
    return lock.release();
  }

  async function hammer(key: string): Promise<void> {
    const holder = `${input.name} on ${key}`;
    while (!ended) {
      try {
        const lock = await guard.acquire(key, { ttl: '2s', wait: '20s' });
        enter(lock, holder);
        await sleep(2);
        if (lock.isHeld()) log.add('held', holder, key);
        await leave(lock, holder);
      } catch (error) {
        faults.push(String(error));
      }
    }
  }

  await tell('ready');
  for (;;) {
    const [what, ...words] = (await hear<string>()).split(' ') as [string, ...string[]];
    if (what === 'hold') {
      held = await guard.acquire(words[0]!, { ttl: Number(words[1]), wait: '30s' });
      enter(held, input.name);
      await tell(held.isHeld() ? 'held' : 'lost');
    } else if (what === 'release') {
      await tell(await leave(held!, input.name));
    } else if (what === 'hammer') {
      loops = Promise.all(words.map(hammer)).then(() => undefined);
    } else break;
  }
  ended = true;
  await loops;
  await guard.close();
  await locks.close();
  client.close();
  return faults;
};

export default main;
