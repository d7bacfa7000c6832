/** A whole program of an application that is shut down in good order: guard, adapter and client, whatever the network does. */
import { setTimeout as pause } from 'node:timers/promises';
import { createGuard } from '@guard/core';
import type { WorkerMain } from '@guard/testing';
import { Etcd3 } from 'etcd3';
import { etcdLocks } from '../../src/index.js';

/** Where it works. */
export interface CloseInput {
  readonly url: string;
  readonly namespace: string;
}

const main: WorkerMain<CloseInput> = async ({ input: { url, namespace }, tell, hear }) => {
  const client = new Etcd3({ hosts: [url] });
  const locks = etcdLocks(client);
  const guard = createGuard({ locks, namespace, grace: '300ms' });
  await guard.acquire('k', { ttl: '2s' });
  // The first renewal has opened the stream of keep-alives, and the second one finds no network.
  await pause(900);
  await tell('holds');
  await hear();
  await pause(900);
  await guard.close();
  await locks.close();
  client.close();
  process.channel?.unref();
};
export default main;
