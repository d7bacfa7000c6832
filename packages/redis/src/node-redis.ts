/**
 * `fromNodeRedis`: a connection over a node-redis client or cluster (5 or 6) that the application made. Typed by the
 * few members that are used, so that nothing of node-redis is imported and any compatible client fits.
 */
import { GuardError } from '@guard/core';
import { isNoScript, SCAN_PAGE, type Channel, type RedisConnection } from './connection.js';

interface ScriptCall {
  readonly keys: string[];
  readonly arguments: (string | Buffer)[];
}

interface ScanPage {
  readonly cursor: string | number;
  readonly keys: readonly string[];
}

/** What is used of a node-redis client or cluster. */
export interface NodeRedisClient {
  evalSha(sha: string, call: ScriptCall): Promise<unknown>;
  eval(text: string, call: ScriptCall): Promise<unknown>;
  scan?(cursor: string, options: { readonly MATCH: string; readonly COUNT: number }): Promise<ScanPage>;
  duplicate(...args: never[]): unknown;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
  readonly options?: object;
}

interface Subscriber {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  destroy(): void;
}

/**
 * A connection over a node-redis client, which stays the application's: Guard never closes it. Connect it before use.
 * Notices come over one duplicate of it, which Guard opens and closes.
 *
 * @throws GuardError `invalid-argument`: not a node-redis client.
 */
export function fromNodeRedis(client: NodeRedisClient): RedisConnection {
  if (typeof client?.evalSha !== 'function' || typeof client.duplicate !== 'function') {
    throw new GuardError('invalid-argument', 'fromNodeRedis takes a node-redis client or cluster');
  }
  let breaks = 0;
  client.on('error', () => (breaks += 1));
  client.on('reconnecting', () => (breaks += 1));
  const options = (client.options ?? {}) as Options;
  return {
    place: placeOf(options),
    cluster: options.rootNodes !== undefined,
    get breaks() {
      return breaks;
    },
    run: async (script, keys, args) => {
      const call = {
        keys: [...keys],
        arguments: args.map((arg) => (typeof arg === 'number' ? String(arg) : arg)),
      };
      try {
        return await client.evalSha(script.sha, call);
      } catch (error) {
        if (!isNoScript(error)) throw error;
        return client.eval(script.text, call);
      }
    },
    scan: (pattern) => scanAll(client, pattern),
    subscribe: (channel, onMessage, onState) => listen(client, channel, onMessage, onState),
  };
}

interface Options {
  readonly url?: string;
  readonly database?: number;
  readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string };
  readonly rootNodes?: readonly unknown[];
}

/** Address and database only: nothing that lets anybody in. */
function placeOf({ url, database, socket, rootNodes }: Options): string {
  if (rootNodes !== undefined) return 'cluster/';
  const parsed = url === undefined ? undefined : new URL(url);
  const host = socket?.path ?? socket?.host ?? parsed?.hostname ?? 'localhost';
  const port = socket?.path === undefined ? `:${socket?.port ?? (parsed?.port || 6379)}` : '';
  return `${host}${port}/${database ?? (parsed?.pathname.slice(1) || 0)}/`;
}

async function scanAll(client: NodeRedisClient, pattern: string): Promise<readonly string[]> {
  if (typeof client.scan !== 'function') {
    throw new GuardError(
      'invalid-argument',
      'a node-redis cluster cannot list its keys: inspect locks by their keys',
    );
  }
  const names = new Set<string>();
  let cursor = '0';
  do {
    const page = await client.scan(cursor, { MATCH: pattern, COUNT: SCAN_PAGE });
    for (const name of page.keys) names.add(name);
    cursor = String(page.cursor);
  } while (cursor !== '0');
  return [...names];
}

async function listen(
  client: NodeRedisClient,
  channel: string,
  onMessage: (message: string) => void,
  onState: (open: boolean) => void,
): Promise<Channel> {
  const subscriber = client.duplicate() as Subscriber;
  let isOpen = false;
  let isUp = true;
  // The client reconnects and subscribes again by itself; that messages were lost meanwhile is told by the state.
  subscriber.on('error', () => {
    if (isOpen && isUp) onState(false);
    isUp = false;
  });
  subscriber.on('ready', () => {
    if (isOpen && !isUp) onState(true);
    isUp = true;
  });
  try {
    await subscriber.connect();
    await subscriber.subscribe(channel, (message) => {
      if (isOpen) onMessage(message);
    });
  } catch (error) {
    subscriber.destroy();
    throw error;
  }
  isOpen = true;
  return {
    close: async () => {
      isOpen = false;
      subscriber.destroy();
    },
  };
}
