/**
 * `fromNodeRedis`: a connection over a node-redis client, cluster or sentinel (5 or 6) that the application made. Typed
 * by the few members that are used, so that nothing of node-redis is imported and any compatible client fits.
 */
import { GuardError, systemClock } from '@guard/core';
import { Another } from './another.js';
import { Messages } from './channel.js';
import { inWords, NOT_CONNECTED } from './client-errors.js';
import {
  checkConnectionOptions,
  escapeGlob,
  oncePer,
  placeName,
  Refusals,
  SCAN_PAGE,
  type RedisConnection,
  type RedisConnectionOptions,
} from './connection.js';
import { openLine } from './node-redis-line.js';
import { destinationOf, isCluster } from './node-redis-options.js';
import { nodeRedisScripts, type NodeRedisCommands, type ScriptAnswer } from './node-redis-scripts.js';

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

/** What a cluster has beside the commands. */
interface ClusterMembers {
  readonly masters?: readonly unknown[];
  readonly nodeClient?: (this: NodeRedisClient, node: unknown) => unknown;
}

/** Whatever of these a client tells, answers may be to the second sending of a command. */
const BREAKS = ['error', 'reconnecting', 'topology-change', 'client-error', 'node-error', 'node-disconnect'];

/**
 * A connection over a node-redis client, which stays the application's: Guard never closes it. Connect it before use: a
 * call with one that never was rejects at once (`invalid-argument`).
 * Its key prefix, database, credentials, TLS and retry settings stay in force. Messages come over one duplicate of it,
 * which all connections that are made of it share, and which Guard opens and closes.
 *
 * @throws GuardError `invalid-argument`: not a node-redis client; one in subscriber mode; one that reads from replicas, also a cluster made with
 * `useReplicas`; one with a key prefix with braces, which would break the hash tags of Guard's keys; or an option that is
 * not valid.
 */
export function fromNodeRedis(client: NodeRedisClient, own: RedisConnectionOptions = {}): RedisConnection {
  checkConnectionOptions('fromNodeRedis', own);
  const { where, database, prefix } = destinationOf(client);
  const watched = watchedOnce((client as { readonly _self?: NodeRedisClient })._self ?? client);
  const { messages, refusals } = watched;
  const runScript = nodeRedisScripts(client, () => (watched.breaks += 1));
  return {
    place: placeName(own, where, database, prefix),
    scope: `${database}:${prefix}`,
    cluster: isCluster(client),
    run: async (script, keys, args, acks) => {
      if (!watched.wasOpen) await watched.mustBeOpen();
      const before = watched.breaks;
      let answer: ScriptAnswer;
      try {
        answer = await runScript(script, keys, args, acks);
      } catch (error) {
        throw inWords(error);
      }
      return {
        value: refusals.answersIn(answer.value),
        resent: watched.breaks !== before,
        acks: answer.acks,
      };
    },
    scan: async (pattern) => {
      const names = await scanAll(client, escapeGlob(prefix) + pattern);
      return names.map((name) => name.slice(prefix.length));
    },
    subscribe: (...listener) => messages.subscribe(...listener),
  };
}

/** What is known of a client, by one set of listeners however many connections are made of it. */
class Watched {
  breaks = 0;
  readonly refusals = new Refusals();
  readonly messages: Messages;
  /** It was connected once: what it says later is told by itself, as it may be connected again. */
  wasOpen: boolean;

  constructor(private readonly client: NodeRedisClient) {
    this.wasOpen = isOpen(client);
    const another = new Another();
    this.messages = new Messages((terms) => openLine(client, terms, another));
    for (const event of BREAKS) client.on(event, () => (this.breaks += 1));
  }

  /** @throws GuardError `invalid-argument`: it is not even being connected, and no waiting mends that. */
  async mustBeOpen(): Promise<void> {
    // Some say that they are being connected a moment later.
    if (!isOpen(this.client)) await new Promise<void>((resolve) => systemClock.yield(resolve));
    this.wasOpen = isOpen(this.client);
    if (!this.wasOpen) throw new GuardError('invalid-argument', NOT_CONNECTED);
  }
}

function isOpen(client: NodeRedisClient): boolean {
  return (client as { readonly isOpen?: boolean }).isOpen !== false;
}

const watchedOnce = oncePer((client: NodeRedisClient) => new Watched(client));

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
