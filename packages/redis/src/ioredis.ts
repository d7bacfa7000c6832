/**
 * `fromIoredis`: a connection over an ioredis client or cluster (5 or 6) that the application made. Typed by the few
 * members that are used, so that nothing of ioredis is imported and any compatible client fits.
 */
import { GuardError } from '@guard/core';
import {
  escapeGlob,
  isNoScript,
  SCAN_PAGE,
  type Channel,
  type RedisConnection,
  type ScriptArgument,
} from './connection.js';

/** What is used of an ioredis `Redis` or `Cluster`. */
export interface IoredisClient {
  readonly isCluster?: boolean;
  readonly options: object;
  evalsha(sha: string, keyCount: number, ...rest: ScriptArgument[]): Promise<unknown>;
  eval(text: string, keyCount: number, ...rest: ScriptArgument[]): Promise<unknown>;
  scan(
    cursor: string,
    match: 'MATCH',
    pattern: string,
    count: 'COUNT',
    size: number,
  ): Promise<[string, string[]]>;
  duplicate(...args: never[]): unknown;
  nodes?(role: 'master'): readonly unknown[];
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
}

interface Subscriber {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
  subscribe(channel: string): Promise<unknown>;
  disconnect(): void;
}

/**
 * A connection over an ioredis client, which stays the application's: Guard never closes it. Its key prefix, database,
 * credentials, TLS and retry settings stay in force. Notices come over one duplicate of it, which Guard opens and
 * closes.
 *
 * @throws GuardError `invalid-argument`: not an ioredis client, or a key prefix with braces, which would break the
 * hash tags of Guard's keys.
 */
export function fromIoredis(client: IoredisClient): RedisConnection {
  if (typeof client?.evalsha !== 'function' || typeof client.duplicate !== 'function') {
    throw new GuardError('invalid-argument', 'fromIoredis takes an ioredis client or cluster');
  }
  const options = optionsOf(client);
  if (/[{}]/.test(options.keyPrefix ?? '')) {
    throw new GuardError('invalid-argument', `the client's keyPrefix must not contain braces`);
  }
  let breaks = 0;
  client.on('close', () => (breaks += 1));
  client.on('-node', () => (breaks += 1));
  return {
    place: placeOf(client, options),
    cluster: client.isCluster === true,
    get breaks() {
      return breaks;
    },
    run: async (script, keys, args) => {
      try {
        return await client.evalsha(script.sha, keys.length, ...keys, ...args);
      } catch (error) {
        if (!isNoScript(error)) throw error;
        return client.eval(script.text, keys.length, ...keys, ...args);
      }
    },
    scan: async (pattern) => {
      const prefix = options.keyPrefix ?? '';
      const nodes = (client.nodes?.('master') ?? [client]) as readonly IoredisClient[];
      const found = await Promise.all(nodes.map((node) => scanNode(node, escapeGlob(prefix) + pattern)));
      return found.flat().map((name) => name.slice(prefix.length));
    },
    subscribe: (channel, onMessage, onState) => listen(client, channel, onMessage, onState),
  };
}

interface Options {
  readonly keyPrefix?: string;
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly db?: number;
  readonly name?: string;
  readonly redisOptions?: Options;
}

function optionsOf(client: IoredisClient): Options {
  const options = client.options as Options;
  return { ...options.redisOptions, ...options };
}

/** Address and database only: nothing that lets anybody in. */
function placeOf(client: IoredisClient, options: Options): string {
  if (client.isCluster) return `cluster/${options.keyPrefix ?? ''}`;
  const where = options.name ?? options.path ?? `${options.host ?? 'localhost'}:${options.port ?? 6379}`;
  return `${where}/${options.db ?? 0}/${options.keyPrefix ?? ''}`;
}

async function scanNode(node: IoredisClient, pattern: string): Promise<string[]> {
  const names = new Set<string>();
  let cursor = '0';
  do {
    const [next, page] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_PAGE);
    for (const name of page) names.add(name);
    cursor = next;
  } while (cursor !== '0');
  return [...names];
}

async function listen(
  client: IoredisClient,
  channel: string,
  onMessage: (message: string) => void,
  onState: (open: boolean) => void,
): Promise<Channel> {
  const subscriber = client.duplicate() as Subscriber;
  let isOpen = false;
  // The client reconnects and subscribes again by itself; an error on the way is told by the state.
  subscriber.on('error', () => undefined);
  subscriber.on('message', (from: string, message: string) => {
    if (isOpen && from === channel) onMessage(message);
  });
  subscriber.on('close', () => {
    if (isOpen) onState(false);
  });
  subscriber.on('ready', () => {
    if (isOpen)
      void subscriber.subscribe(channel).then(
        () => onState(true),
        () => undefined,
      );
  });
  try {
    await subscriber.subscribe(channel);
  } catch (error) {
    subscriber.disconnect();
    throw error;
  }
  isOpen = true;
  return {
    close: async () => {
      isOpen = false;
      subscriber.disconnect();
    },
  };
}
