/** What a client of node-redis was made with, wherever its library keeps it; and what of that Guard cannot work with. */
import { GuardError } from '@guard/core';
import { checkMode } from './client-errors.js';
import { clusterName, DEFAULT_PORT, type Seed } from './connection.js';

/** Options of a client that leads to one server. */
interface ClientOptions {
  readonly url?: string;
  readonly database?: number;
  readonly keyPrefix?: string;
  readonly readonly?: boolean;
  readonly RESP?: number;
  readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string };
}

/** Options of a client that leads to a cluster. */
interface ClusterOptions {
  readonly rootNodes?: readonly Seed[];
  readonly useReplicas?: boolean;
  readonly defaults?: ClientOptions;
}

/** What a client, a cluster or a sentinel shows of itself. */
interface Shown {
  readonly evalSha?: unknown;
  readonly eval?: unknown;
  readonly multi?: unknown;
  readonly on?: unknown;
  readonly duplicate?: unknown;
  readonly isPubSubActive?: boolean;
  readonly options?: ClientOptions;
  readonly commandOptions?: unknown;
  readonly _self?: object;
  readonly _keyPrefix?: string;
  readonly _options?: ClusterOptions;
  readonly nodeClient?: unknown;
  readonly getMasterNode?: unknown;
  readonly execAsPipeline?: unknown;
  readonly idleClients?: unknown;
}

/** Where a client leads. */
export interface Destination {
  /** An address only: nothing that lets anybody in. */
  readonly where: () => string;
  readonly database: string;
  /** What the library puts before the names of all keys. */
  readonly prefix: string;
}

/** @throws GuardError `invalid-argument`, saying what the client is instead. */
export function destinationOf(client: unknown): Destination {
  const shown = checkedClient(client);
  const behindSentinel = isSentinel(shown) ? nodeOptionsOf(shown) : undefined;
  const options = behindSentinel ?? (isCluster(shown) ? {} : (shown.options ?? {}));
  // A sentinel client has a prefix of its own, and hands its commands to clients that may have one too.
  const own = isCluster(shown) || isSentinel(shown) ? (shown._keyPrefix ?? '') : '';
  const prefix = (options.keyPrefix ?? '') + own;
  if (/[{}]/.test(prefix)) throw refused(`the client's keyPrefix must not contain braces`);
  if (options.readonly === true) {
    throw refused('the client reads from replicas; Guard needs one of the master');
  }
  if (isCluster(shown)) checkMembers(shown._options ?? {});
  return { where: () => whereOf(shown, options), database: databaseOf(options), prefix };
}

/**
 * A connection that was made for a replica sent READONLY, and the library keeps it as it is when that replica is made a
 * master. Made a replica once more it would run the scripts on its old copy, where all others are sent on to the master.
 */
function checkMembers({ useReplicas, defaults }: ClusterOptions): void {
  if (useReplicas !== true && defaults?.readonly !== true) return;
  const option = useReplicas === true ? 'useReplicas' : 'defaults.readonly';
  throw refused(
    `the cluster client is made with ${option}, and would read old copies after fail-overs; give Guard a client without it`,
  );
}

const NO_CLIENT = 'fromNodeRedis takes a node-redis client, cluster or sentinel';

function checkedClient(client: unknown): Shown {
  const shown = (client ?? {}) as Shown;
  if (typeof shown.execAsPipeline === 'function') {
    throw refused('fromNodeRedis takes the client itself, not what its multi() returns');
  }
  if (typeof shown.evalSha !== 'function' || typeof shown.eval !== 'function') throw refused(NO_CLIENT);
  if (typeof shown.duplicate === 'function') {
    if (typeof shown.multi !== 'function' || typeof shown.on !== 'function') throw refused(NO_CLIENT);
    // By the newer protocol a client that subscribes can do everything else as well.
    if (shown.isPubSubActive === true && shown.options?.RESP === 2) checkMode('subscriber');
    return shown;
  }
  if (isSentinel(shown)) {
    throw refused('a sentinel client of node-redis 5 cannot be duplicated; use the one of node-redis 6');
  }
  if ('idleClients' in shown) {
    throw refused('fromNodeRedis takes no pool of node-redis: hand in a client of createClient');
  }
  throw refused('fromNodeRedis takes the client itself, not what its legacy() returns');
}

export function isCluster(client: object): boolean {
  return typeof (client as Shown).nodeClient === 'function';
}

function isSentinel(client: Shown): boolean {
  return typeof client.getMasterNode === 'function';
}

/**
 * The options of the clients behind a sentinel, which shows them to nobody but to the class of its duplicates: so a
 * duplicate is made of a class that only looks at them.
 */
function nodeOptionsOf(sentinel: Shown): ClientOptions {
  let seen: { readonly nodeClientOptions?: ClientOptions } = {};
  const look = function (options: typeof seen): void {
    seen = options;
  };
  const looking = Object.create(sentinel, { constructor: { value: look } }) as object;
  (sentinel.duplicate as (this: object) => unknown).call(Object.create(looking) as object);
  return seen.nodeClientOptions ?? {};
}

/** A sentinel client does not show the name of its master. */
function whereOf(client: Shown, { url, socket }: ClientOptions): string {
  if (isCluster(client)) return clusterName(client._options?.rootNodes ?? []);
  if (isSentinel(client)) return 'sentinel';
  const parsed = url === undefined ? undefined : new URL(url);
  const host = socket?.path ?? socket?.host ?? parsed?.hostname ?? 'localhost';
  return socket?.path === undefined ? `${host}:${socket?.port ?? (parsed?.port || DEFAULT_PORT)}` : host;
}

function databaseOf({ url, database }: ClientOptions): string {
  const inUrl = url === undefined ? '' : new URL(url).pathname.slice(1);
  return String(database ?? (inUrl || 0));
}

function refused(message: string): GuardError {
  return new GuardError('invalid-argument', message);
}
