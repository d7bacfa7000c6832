/**
 * `fromNodeRedis`: a connection over a node-redis client, cluster or sentinel (5 or 6) that the application made. Typed
 * by the few members that are used, so that nothing of node-redis is imported and any compatible client fits.
 */
import { GuardError } from '@guard/core';
import { keepSubscribed } from './channel.js';
import {
  checkConnectionOptions,
  clusterName,
  DEFAULT_PORT,
  escapeGlob,
  placeName,
  SCAN_PAGE,
  type RedisConnection,
  type RedisConnectionOptions,
  type Seed,
} from './connection.js';
import { openLine } from './node-redis-line.js';
import { nodeRedisScripts, type NodeRedisCommands } from './node-redis-scripts.js';

interface ScanPage {
  readonly cursor: string | number | Buffer;
  readonly keys: readonly (string | Buffer)[];
}

/** What is used of a node-redis client, cluster or sentinel. */
export interface NodeRedisClient extends NodeRedisCommands {
  scan?(cursor: string, options: { readonly MATCH: string; readonly COUNT: number }): Promise<ScanPage>;
  duplicate(...args: never[]): unknown;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
  readonly options?: object;
}

interface Options {
  readonly url?: string;
  readonly database?: number;
  readonly keyPrefix?: string;
  readonly readonly?: boolean;
  readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string };
}

/** What a cluster has beside the commands. */
interface ClusterMembers {
  readonly _options?: { readonly rootNodes?: readonly Seed[] };
  readonly masters?: readonly unknown[];
  readonly nodeClient?: (this: NodeRedisClient, node: unknown) => unknown;
}

/** Whatever of these a client tells, answers may be to the second sending of a command. */
const BREAKS = ['error', 'reconnecting', 'topology-change', 'client-error', 'node-error', 'node-disconnect'];

/**
 * A connection over a node-redis client, which stays the application's: Guard never closes it. Connect it before use.
 * Its key prefix, database, credentials, TLS and retry settings stay in force. Notices come over one duplicate of it,
 * which Guard opens and closes.
 *
 * @throws GuardError `invalid-argument`: not a node-redis client; one that reads from replicas; one with a key
 * prefix with braces, which would break the hash tags of Guard's keys; or an option that is not valid.
 */
export function fromNodeRedis(client: NodeRedisClient, own: RedisConnectionOptions = {}): RedisConnection {
  checkConnectionOptions('fromNodeRedis', own);
  const options = checkedOptions(client);
  let breaks = 0;
  for (const event of BREAKS) client.on(event, () => (breaks += 1));
  const prefix = options.keyPrefix ?? '';
  const runScript = nodeRedisScripts(client, () => (breaks += 1));
  return {
    place: placeName(own, () => whereOf(client, options), databaseOf(options), prefix),
    scope: `${databaseOf(options)}:${prefix}`,
    cluster: isCluster(client),
    run: async (script, keys, args, acks) => {
      const before = breaks;
      const answer = await runScript(script, keys, args, acks);
      return { ...answer, resent: breaks !== before };
    },
    scan: async (pattern) => {
      const names = await scanAll(client, escapeGlob(prefix) + pattern);
      return names.map((name) => name.slice(prefix.length));
    },
    subscribe: (channel, onMessage, onState) =>
      keepSubscribed((line) => openLine(client, line), channel, onMessage, onState),
  };
}

function checkedOptions(client: NodeRedisClient): Options {
  if (typeof client?.evalSha !== 'function') {
    throw new GuardError('invalid-argument', 'fromNodeRedis takes a node-redis client, cluster or sentinel');
  }
  if (typeof client.duplicate !== 'function') {
    const message = 'a sentinel client of node-redis 5 cannot be duplicated; use the one of node-redis 6';
    throw new GuardError('invalid-argument', message);
  }
  const { _keyPrefix: shown } = client as { readonly _keyPrefix?: string };
  const options: Options = { ...(shown === undefined ? {} : { keyPrefix: shown }), ...client.options };
  if (/[{}]/.test(options.keyPrefix ?? '')) {
    throw new GuardError('invalid-argument', `the client's keyPrefix must not contain braces`);
  }
  if (options.readonly === true) {
    throw new GuardError('invalid-argument', 'the client reads from replicas; Guard needs one of the master');
  }
  return options;
}

function isCluster(client: NodeRedisClient): boolean {
  return typeof (client as ClusterMembers).nodeClient === 'function';
}

function isSentinel(client: NodeRedisClient): boolean {
  return typeof (client as { getMasterNode?: unknown }).getMasterNode === 'function';
}

/** An address only: nothing that lets anybody in. A sentinel client does not show the name of its master. */
function whereOf(client: NodeRedisClient, { url, socket }: Options): string {
  if (isCluster(client)) return clusterName((client as ClusterMembers)._options?.rootNodes ?? []);
  if (isSentinel(client)) return 'sentinel';
  const parsed = url === undefined ? undefined : new URL(url);
  const host = socket?.path ?? socket?.host ?? parsed?.hostname ?? 'localhost';
  return socket?.path === undefined ? `${host}:${socket?.port ?? (parsed?.port || DEFAULT_PORT)}` : host;
}

function databaseOf({ url, database }: Options): string {
  const inUrl = url === undefined ? '' : new URL(url).pathname.slice(1);
  return String(database ?? (inUrl || 0));
}

/** Every master in turn where there are several. */
async function scanAll(client: NodeRedisClient, pattern: string): Promise<readonly string[]> {
  const { masters, nodeClient } = client as ClusterMembers;
  if (masters === undefined || nodeClient === undefined) return scanOne(client, pattern);
  const scanNode = async (node: unknown): Promise<readonly string[]> =>
    scanOne((await nodeClient.call(client, node)) as NodeRedisClient, pattern);
  return (await Promise.all(masters.map(scanNode))).flat();
}

async function scanOne(client: NodeRedisClient, pattern: string): Promise<readonly string[]> {
  if (typeof client.scan !== 'function') {
    throw new GuardError('invalid-argument', 'this client cannot list keys: inspect locks by their keys');
  }
  const names = new Set<string>();
  let cursor = '0';
  do {
    const page = await client.scan(cursor, { MATCH: pattern, COUNT: SCAN_PAGE });
    for (const name of page.keys) names.add(String(name));
    cursor = String(page.cursor);
  } while (cursor !== '0');
  return [...names];
}
