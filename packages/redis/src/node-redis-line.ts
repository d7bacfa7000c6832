/** One connection of Guard's own for messages, beside a node-redis client, cluster or sentinel. */
import { systemRandom } from '@guard/core';
import type { Line } from './channel.js';
import type { Channel } from './connection.js';

interface Duplicable {
  duplicate(overrides?: object): Subscriber;
  readonly options?: { readonly socket?: object };
}

interface Subscriber {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  destroy(): unknown;
  unref?(): void;
}

interface Members {
  readonly masters?: readonly unknown[];
  readonly replicas?: readonly unknown[];
  nodeClient?(node: unknown): unknown;
  /** Of a sentinel: hands out the client of the master that is there now. */
  _execute?<T>(isReadonly: boolean, run: (master: Duplicable) => Promise<T>): Promise<T>;
  getMasterNode?: unknown;
}

/** Opens a connection that ends with its first break, and subscribes on it. */
export async function openLine(
  client: unknown,
  { channel, onMessage, onBroken, background, signal }: Line,
): Promise<Channel> {
  const subscriber = await subscriberOf(client as Duplicable & Members);
  let open = false;
  const broken = (): void => {
    if (open) onBroken();
    open = false;
  };
  subscriber.on('error', broken);
  subscriber.on('end', broken);
  if (background) subscriber.unref?.();
  let giveUp: () => void = () => undefined;
  const givenUp = new Promise<never>((_resolve, reject) => {
    giveUp = () => reject(new Error('the connection was not open in time'));
  });
  signal.addEventListener('abort', giveUp);
  try {
    await Promise.race([connected(subscriber, channel, onMessage), givenUp]);
  } catch (error) {
    await end(subscriber);
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
  open = true;
  // Waiting keeps the process alive by itself; a stream that nobody waits on does not (L5).
  subscriber.unref?.();
  return {
    close: () => {
      open = false;
      return end(subscriber);
    },
  };
}

async function connected(
  subscriber: Subscriber,
  channel: string,
  onMessage: (message: string) => void,
): Promise<void> {
  await subscriber.connect();
  await subscriber.subscribe(channel, onMessage);
}

/** A connection to the same place; in a cluster to any member, since messages reach every one. */
async function subscriberOf(client: Duplicable & Members): Promise<Subscriber> {
  if (client.getMasterNode !== undefined && client._execute !== undefined) {
    return once(await client._execute(false, async (master) => master));
  }
  const { masters, replicas = [] } = client;
  if (client.nodeClient === undefined || masters === undefined) return once(client);
  const nodes = [...masters, ...replicas];
  const node = nodes[Math.floor(systemRandom.fraction() * nodes.length)];
  if (node === undefined) throw new Error('no member of the cluster is known yet');
  return once((await client.nodeClient(node)) as Duplicable);
}

/** A duplicate that does not reconnect: what comes after a break is the business of `keepSubscribed`. */
function once(client: Duplicable): Subscriber {
  const { socket } = client.options ?? {};
  if (socket === undefined) return client.duplicate();
  return client.duplicate({ disableOfflineQueue: false, socket: { ...socket, reconnectStrategy: false } });
}

async function end(subscriber: Subscriber): Promise<void> {
  try {
    await subscriber.destroy();
  } catch {
    // It had ended already.
  }
}
