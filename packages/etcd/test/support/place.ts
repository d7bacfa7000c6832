/**
 * One etcd for a spec file, and connections to it. It starts when the first case asks for it: cases that run side by
 * side do not wait for hooks.
 */
import { startEtcd, type EtcdGroup } from '@guard/testing/servers';
import { Etcd3 } from 'etcd3';
import type { EtcdClient } from '../../src/index.js';

// The client takes a picture of the stack at every call, and the runner asks for a hundred frames of it.
Error.stackTraceLimit = 10;

let nodes: 1 | 3 = 1;
let starting: Promise<EtcdGroup> | undefined;

/** For a spec file whose cases are to run on a cluster. */
export function onThreeNodes(): void {
  nodes = 3;
}

export function server(): Promise<EtcdGroup> {
  return (starting ??= startEtcd({ nodes, onDisk: false }));
}

export async function stopServer(): Promise<void> {
  await (await starting)?.stop();
}

/** A first connection, further ones on demand, and an end for all of them. */
export async function placeOf<T extends { close(): Promise<void> }>(
  make: (client: EtcdClient) => T,
): Promise<{ readonly first: T; connect(): Promise<T>; cleanup(): Promise<void> }> {
  const { urls } = await server();
  const clients: Etcd3[] = [];
  const made: T[] = [];
  const connect = (): Promise<T> => {
    const client = new Etcd3({ hosts: [...urls] });
    clients.push(client);
    const one = make(client);
    made.push(one);
    return Promise.resolve(one);
  };
  const first = await connect();
  const cleanup = async (): Promise<void> => {
    await Promise.all(made.map((one) => one.close()));
    for (const client of clients) client.close();
  };
  return { first, connect, cleanup };
}
