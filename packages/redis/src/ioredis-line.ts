/** One connection of Guard's own for messages, beside an ioredis client or cluster. */
import { systemClock } from '@guard/core';
import type { Another } from './another.js';
import type { Line, LineTerms } from './channel.js';
import { Echoes, type Say } from './echoes.js';

interface Duplicable {
  duplicate(overrides: object): Subscriber;
}

/** A client of ioredis by the few members that say how its connection goes. */
interface Connecting {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
  disconnect(): void;
  readonly status?: string;
  readonly stream?: { unref?(): void; destroy?(): unknown };
}

interface Subscriber extends Connecting {
  connect(): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  ping(): Promise<unknown>;
  /** Behind Sentinel: what asks sentinels for the master, through clients that it shows to nobody. */
  readonly connector?: { connectToSentinel?: (...args: unknown[]) => Connecting };
}

interface Cluster extends Lazy {
  nodes?(role: 'all' | 'master'): readonly unknown[];
}

interface Lazy {
  readonly isCluster?: boolean;
  readonly status?: string;
  connect?(): Promise<unknown>;
}

/** A cluster client that connects when it is used knows no member before, and asking for its members is no use. */
export async function connectLazy(client: Lazy): Promise<void> {
  if (client.isCluster === true && client.status === 'wait') await client.connect?.();
}

/**
 * Settings that are the application's for its commands, and would keep a connection of Guard's own from its work, or
 * keep it after the work: it is opened once, and what comes after a break is the business of `Messages`.
 */
const LINE_SETTINGS = {
  lazyConnect: true,
  enableOfflineQueue: true,
  enableReadyCheck: true,
  enableAutoPipelining: false,
  autoResubscribe: false,
  retryStrategy: () => null,
  reconnectOnError: null,
  sentinelRetryStrategy: () => null,
  failoverDetector: false,
  disconnectTimeout: 100,
  commandTimeout: undefined,
  socketTimeout: undefined,
};

/** A sentinel that says nothing is passed over, so that another one is asked before the connection is given up. */
const SENTINEL_ANSWERS_WITHIN_MS = 1_000;

/** Opens a connection that ends with its first break. */
export async function openLine(
  client: Duplicable & Cluster,
  { onMessage, onBroken, signal }: LineTerms,
  another: Another,
): Promise<Line> {
  await connectLazy(client);
  const subscriber = anyNode(client, another).duplicate(LINE_SETTINGS);
  // Why it cannot be opened, such as a wrong password, is told here only: its rejections say that it is closed.
  let why: unknown;
  subscriber.on('error', (error: unknown) => (why = error));
  const echoes = client.isCluster === true ? new Echoes() : undefined;
  subscriber.on('message', (channel: string, message: string) => {
    if (echoes?.heard(channel, message) !== true) onMessage(channel, message);
  });
  keepsNothingAlive(subscriber);
  keepSentinelsShort(subscriber, signal);
  const giveUp = (): void => end(subscriber);
  signal.addEventListener('abort', giveUp);
  try {
    await subscriber.connect();
    if (echoes !== undefined) await subscriber.subscribe(echoes.channel);
  } catch (error) {
    end(subscriber);
    throw why ?? error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
  let open = true;
  subscriber.on('close', () => {
    if (open) onBroken();
    open = false;
  });
  return {
    subscribe: (channel) => subscriber.subscribe(channel),
    unsubscribe: (channel) => subscriber.unsubscribe(channel),
    ping: () => subscriber.ping(),
    echo: async () => echoes?.ask(mastersOf(client)),
    close: async () => {
      open = false;
      end(subscriber);
    },
  };
}

/** Waiting keeps the process alive by itself; a stream that nobody waits on does not (L5). */
function keepsNothingAlive(client: Connecting): void {
  client.on('connect', () => client.stream?.unref?.());
}

/** Each question to a sentinel has a connection of its own, and it too keeps nothing alive and is no waste of time. */
function keepSentinelsShort({ connector }: Subscriber, signal: AbortSignal): void {
  const ask = connector?.connectToSentinel;
  if (connector === undefined || ask === undefined) return;
  connector.connectToSentinel = (...args) => {
    const asking = ask.apply(connector, args);
    keepsNothingAlive(asking);
    const disconnect = asking.disconnect.bind(asking);
    const giveUp = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', giveUp);
      end(asking, disconnect);
    };
    const timer = systemClock.setTimer(giveUp, SENTINEL_ANSWERS_WITHIN_MS, { ref: false });
    signal.addEventListener('abort', giveUp);
    return Object.assign(asking, { disconnect: giveUp });
  };
}

/** ioredis waits for the end of a connection that has ended already, and for one of a server that hangs (L5). */
function end(client: Connecting, disconnect = () => client.disconnect()): void {
  if (client.status === 'end') return;
  disconnect();
  client.stream?.destroy?.();
}

function mastersOf(client: Cluster): Say[] {
  const masters = (client.nodes?.('master') ?? []) as readonly { readonly publish: Say }[];
  return masters.map((master) => (channel, text) => master.publish(channel, text));
}

interface Member extends Duplicable {
  readonly status?: string;
  readonly options?: { readonly host?: string; readonly port?: number };
}

function anyNode(client: Duplicable & Cluster, another: Another): Duplicable {
  if (client.nodes === undefined || !client.isCluster) return client;
  const nodes = client.nodes('all') as readonly Member[];
  const ready = nodes.filter(({ status }) => status === 'ready' || status === 'wait');
  return another.of(ready.length > 0 ? ready : nodes, ({ options }) => `${options?.host}:${options?.port}`);
}
