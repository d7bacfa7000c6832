/**
 * A whole program of an application: it leaves a stream open that nobody waits for, waits for a word, and is done without
 * closing anything, or only its own clients.
 */
import { createGuard } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { Etcd3 } from 'etcd3';
import { etcdLocks, etcdState } from '../../src/index.js';

/** Where it works, and what it leaves open. */
export interface IdleInput {
  readonly urls: readonly string[];
  readonly namespace: string;
  readonly leaves: 'a watch' | 'an inbox and keep-alives';
  readonly closes: boolean;
}

const main: WorkerMain<IdleInput> = async ({ input, tell, hear }) => {
  const clients = [0, 1].map(() => new Etcd3({ hosts: [...input.urls] }));
  const [one, other] = clients.map((client) =>
    createGuard({ locks: etcdLocks(client), state: etcdState(client), namespace: input.namespace }),
  );
  if (input.leaves === 'a watch') {
    const heard = new Promise<void>((resolve) => {
      void one!.state.watch('w', () => resolve()).then(() => other!.state.set('w', 1));
    });
    await heard;
  } else {
    const held = await other!.acquire('k', { ttl: '2s' });
    const waiting = one!.acquire('k', { ttl: '2s', wait: '20s' });
    while ((await other!.inspect('k')).waiting === 0);
    await held.release();
    const taken = await waiting;
    await taken.extend('3s');
    await taken.release();
  }
  await tell('idle');
  await hear();
  if (input.closes) for (const client of clients) client.close();
  process.channel?.unref();
};
export default main;
