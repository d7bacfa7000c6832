/** One connection of Guard's own for messages, beside a node-redis client, cluster or sentinel. */
import type { Another } from './another.js';
import type { Line, LineTerms } from './channel.js';
import { Echoes, type Say } from './echoes.js';

interface Duplicable {
  duplicate(overrides?: object): Subscriber;
  readonly options?: { readonly socket?: object };
}

interface Subscriber {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: Heard): Promise<unknown>;
  unsubscribe(channel: string, listener: Heard): Promise<unknown>;
  ping(): Promise<unknown>;
  destroy(): unknown;
  unref?(): void;
}

type Heard = (message: string, channel: string) => void;

interface Member {
  readonly address?: string;
}

interface Members {
  readonly masters?: readonly Member[];
  readonly replicas?: readonly Member[];
  nodeClient?(node: unknown): unknown;
  /** Of a sentinel: hands out the client of the master that is there now. */
  _execute?<T>(isReadonly: boolean, run: (master: Duplicable) => Promise<T>): Promise<T>;
  getMasterNode?: unknown;
}

/** Opens a connection that ends with its first break. */
export async function openLine(
  client: unknown,
  { onMessage, onBroken, signal }: LineTerms,
  another: Another,
): Promise<Line> {
  const subscriber = await subscriberOf(client as Duplicable & Members, another);
  const echoes = (client as Members).masters === undefined ? undefined : new Echoes();
  const heard: Heard = (message, channel) => {
    if (echoes?.heard(channel, message) !== true) onMessage(channel, message);
  };
  let open = false;
  const broken = (): void => {
    if (open) onBroken();
    open = false;
  };
  subscriber.on('error', broken);
  subscriber.on('end', broken);
  // Waiting keeps the process alive by itself; a stream that nobody waits on does not (L5).
  subscriber.unref?.();
  const giveUp = (): void => void end(subscriber);
  signal.addEventListener('abort', giveUp);
  try {
    if (signal.aborted) throw new Error('the connection was not open in time');
    await subscriber.connect();
    if (echoes !== undefined) await subscriber.subscribe(echoes.channel, heard);
  } catch (error) {
    await end(subscriber);
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
  open = true;
  return {
    subscribe: (channel) => subscriber.subscribe(channel, heard),
    unsubscribe: (channel) => subscriber.unsubscribe(channel, heard),
    ping: () => subscriber.ping(),
    echo: async () => echoes?.ask(mastersOf(client as Members)),
    close: () => {
      open = false;
      return end(subscriber);
    },
  };
}

function mastersOf(client: Members): Say[] {
  const { masters = [] } = client;
  return masters.map((master) => async (channel, text) => {
    const node = (await client.nodeClient?.(master)) as { readonly publish: Say } | undefined;
    return node?.publish(channel, text);
  });
}

/** A connection to the same place; in a cluster to any member, since messages reach every one. */
async function subscriberOf(client: Duplicable & Members, another: Another): Promise<Subscriber> {
  if (client.getMasterNode !== undefined && client._execute !== undefined) {
    return once(await client._execute(false, async (master) => master));
  }
  const { masters, replicas = [] } = client;
  if (client.nodeClient === undefined || masters === undefined) return once(client);
  const node = another.of([...masters, ...replicas], ({ address }) => String(address));
  return once((await client.nodeClient(node)) as Duplicable);
}

/** A duplicate that does not reconnect: what comes after a break is the business of `Messages`, and silence is no break. */
function once(client: Duplicable): Subscriber {
  const { socket } = client.options ?? {};
  if (socket === undefined) return client.duplicate();
  const own = { reconnectStrategy: false, socketTimeout: undefined };
  return client.duplicate({ disableOfflineQueue: false, socket: { ...socket, ...own } });
}

async function end(subscriber: Subscriber): Promise<void> {
  try {
    await subscriber.destroy();
  } catch {
    // It had ended already.
  }
}
