/**
 * `fromIoredis`: a connection over an ioredis client or cluster (5 or 6) that the application made. Typed by the few
 * members that are used, so that nothing of ioredis is imported and any compatible client fits.
 */
import { GuardError, systemRandom } from '@guard/core';
import { keepSubscribed, type Line } from './channel.js';
import {
  checkConnectionOptions,
  clusterName,
  DEFAULT_PORT,
  escapeGlob,
  isNoScript,
  placeName,
  SCAN_PAGE,
  type Acks,
  type Channel,
  type RedisConnection,
  type RedisConnectionOptions,
  type ScriptArgument,
  type ScriptReply,
  type Seed,
} from './connection.js';
import type { Script } from './scripts/script.js';
import { strangeAnswer } from './strange-answer.js';

/** What is used of an ioredis `Redis` or `Cluster`. */
export interface IoredisClient {
  readonly isCluster?: boolean;
  readonly options: object;
  evalsha(sha: string, keyCount: number, ...rest: ScriptArgument[]): Promise<unknown>;
  eval(text: string, keyCount: number, ...rest: ScriptArgument[]): Promise<unknown>;
  pipeline(commands: unknown[][]): { exec(): Promise<[error: Error | null, result: unknown][] | null> };
  scan(
    cursor: string,
    match: 'MATCH',
    pattern: string,
    count: 'COUNT',
    size: number,
  ): Promise<[string, string[]]>;
  duplicate(...args: never[]): unknown;
  nodes?(role: 'all' | 'master'): readonly unknown[];
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
}

/**
 * A connection over an ioredis client, which stays the application's: Guard never closes it. Its key prefix, database,
 * credentials, TLS and retry settings stay in force. Notices come over one duplicate of it, which Guard opens and
 * closes.
 *
 * @throws GuardError `invalid-argument`: not an ioredis client; one that reads from replicas; one with a key prefix with
 * braces, which would break the hash tags of Guard's keys; or an option that is not valid.
 */
export function fromIoredis(client: IoredisClient, own: RedisConnectionOptions = {}): RedisConnection {
  checkConnectionOptions('fromIoredis', own);
  const options = checkedOptions(client);
  let breaks = 0;
  const open = new Set<(error: Error) => void>();
  const broke = (): void => {
    breaks += 1;
    rejectAll(open, new Error('the connection broke before the answer'));
  };
  client.on('close', broke);
  client.on('-node', () => (breaks += 1));
  const prefix = options.keyPrefix ?? '';
  // A client that is set not to send again leaves what was unanswered pending for ever.
  const forgets = options.autoResendUnfulfilledCommands === false && client.isCluster !== true;
  const refused = refusals(client);
  const settled = <T>(call: Promise<T>): Promise<T> =>
    forgets ? untilBreak(call, open) : refused.mayCome() ? untilBreak(call, refused.open) : call;
  return {
    place: placeName(own, () => whereOf(client, options), options.db ?? 0, prefix),
    scope: `${options.db ?? 0}:${prefix}`,
    cluster: client.isCluster === true,
    run: (script, keys, args, acks) => {
      const before = breaks;
      const reply = (value: unknown, confirmed = 0): ScriptReply => {
        return { value, resent: breaks !== before, acks: confirmed };
      };
      if (acks !== undefined) {
        return settled(runAndWait(client, script, keys, args, acks)).then(([value, n]) => reply(value, n));
      }
      // Not async, nor a function of its own that is: every promise on the way costs where nothing else is waited for.
      return settled(client.evalsha(script.sha, keys.length, ...keys, ...args)).then(
        (value) => reply(value),
        (error: unknown) => {
          if (!isNoScript(error)) throw error;
          return settled(client.eval(script.text, keys.length, ...keys, ...args)).then((value) =>
            reply(value),
          );
        },
      );
    },
    scan: async (pattern) => {
      const nodes = (client.nodes?.('master') ?? [client]) as readonly IoredisClient[];
      const found = await Promise.all(nodes.map((node) => scanNode(node, escapeGlob(prefix) + pattern)));
      return found.flat().map((name) => name.slice(prefix.length));
    },
    subscribe: (channel, onMessage, onState) =>
      keepSubscribed((line) => openLine(client, line), channel, onMessage, onState),
  };
}

interface Options {
  readonly keyPrefix?: string;
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly db?: number;
  readonly name?: string;
  readonly role?: string;
  readonly readOnly?: boolean;
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly redisOptions?: Options;
}

function checkedOptions(client: IoredisClient): Options {
  if (typeof client?.evalsha !== 'function' || typeof client.duplicate !== 'function') {
    throw new GuardError('invalid-argument', 'fromIoredis takes an ioredis client or cluster');
  }
  const given = client.options as Options;
  const options = { ...given.redisOptions, ...given };
  if (/[{}]/.test(String(options.keyPrefix ?? ''))) {
    throw new GuardError('invalid-argument', `the client's keyPrefix must not contain braces`);
  }
  if (options.role === 'slave' || options.readOnly === true) {
    throw new GuardError('invalid-argument', 'the client reads from replicas; Guard needs one of the master');
  }
  return options;
}

const MAY_NOT = /^(NOPERM|NOAUTH|WRONGPASS)/;

/**
 * A cluster client whose user may not ask for the cluster keeps what it is given for when it may, and tells nobody why:
 * what waits in it is rejected with what the members say.
 */
function refusals(client: IoredisClient): { mayCome(): boolean; readonly open: Set<(error: Error) => void> } {
  const open = new Set<(error: Error) => void>();
  const { isCluster = false } = client;
  const mayCome = (): boolean => isCluster && (client as { readonly status?: string }).status !== 'ready';
  client.on('node error', (error: Error) => {
    if (mayCome() && MAY_NOT.test(error.message)) rejectAll(open, error);
  });
  return { mayCome, open };
}

/** Rejects all calls that are open, and forgets them: those that the client lost never settle by themselves (L3). */
function rejectAll(open: Set<(error: Error) => void>, error: Error): void {
  for (const reject of open) reject(error);
  open.clear();
}

/** Settles with the call, or is rejected by whoever finds it in `open`. */
function untilBreak<T>(call: Promise<T>, open: Set<(error: Error) => void>): Promise<T> {
  return new Promise((resolve, reject) => {
    open.add(reject);
    const settle =
      <V>(end: (value: V) => void) =>
      (value: V): void => {
        open.delete(reject);
        end(value);
      };
    call.then(settle(resolve), settle(reject));
  });
}

/** An address only: nothing that lets anybody in. */
function whereOf(client: IoredisClient, options: Options): string {
  if (client.isCluster) return clusterName((client as { startupNodes?: readonly Seed[] }).startupNodes ?? []);
  return options.name ?? options.path ?? `${options.host ?? 'localhost'}:${options.port ?? DEFAULT_PORT}`;
}

/** WAIT counts what its own connection wrote, so both go down one connection, one right after the other. */
async function runAndWait(
  client: IoredisClient,
  script: Script,
  keys: readonly string[],
  args: readonly ScriptArgument[],
  { replicas, timeoutMs }: Acks,
): Promise<[value: unknown, acks: number]> {
  const send = async (command: 'evalsha' | 'eval', text: string): Promise<[unknown, number]> => {
    const commands = [
      [command, text, keys.length, ...keys, ...args],
      ['wait', replicas, timeoutMs],
    ];
    const [ran, waited] = (await client.pipeline(commands).exec()) ?? [];
    const error = ran?.[0] ?? waited?.[0];
    if (error) throw error;
    return [ran?.[1], Number(waited?.[1])];
  };
  try {
    return await send('evalsha', script.sha);
  } catch (error) {
    if (!isNoScript(error)) throw error;
    return send('eval', script.text);
  }
}

async function scanNode(node: IoredisClient, pattern: string): Promise<string[]> {
  const names = new Set<string>();
  let cursor = '0';
  do {
    const [next, page] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_PAGE);
    // An answer of another kind would be followed for ever.
    if (!Array.isArray(page)) throw strangeAnswer('a scan', next);
    for (const name of page) names.add(name);
    cursor = next;
  } while (cursor !== '0');
  return [...names];
}

interface Duplicable {
  duplicate(overrides: object): Subscriber;
}

interface Subscriber {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each client has its own types of events
  on(event: string, listener: (...args: any[]) => void): unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  disconnect(): void;
  readonly status?: string;
  readonly stream?: { unref?(): void; destroy?(): unknown };
}

/** Settings that are the application's for its commands, and would keep a connection of Guard's own from its work. */
const LINE_SETTINGS = {
  lazyConnect: true,
  enableOfflineQueue: true,
  enableReadyCheck: true,
  enableAutoPipelining: false,
  autoResubscribe: false,
  retryStrategy: () => null,
  reconnectOnError: null,
};

async function openLine(
  client: IoredisClient,
  { channel, onMessage, onBroken, background, signal }: Line,
): Promise<Channel> {
  const subscriber = anyNode(client).duplicate(LINE_SETTINGS);
  // What is wrong is told by the rejections below, and by the end of the connection.
  subscriber.on('error', () => undefined);
  subscriber.on('message', (from: string, message: string) => {
    if (from === channel) onMessage(message);
  });
  const unref = (): void => subscriber.stream?.unref?.();
  if (background) subscriber.on('connect', unref);
  const giveUp = (): void => end(subscriber);
  signal.addEventListener('abort', giveUp);
  try {
    await subscriber.connect();
    await subscriber.subscribe(channel);
  } catch (error) {
    end(subscriber);
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
  // Waiting keeps the process alive by itself; a stream that nobody waits on does not (L5).
  unref();
  let open = true;
  subscriber.on('close', () => {
    if (open) onBroken();
    open = false;
  });
  return {
    close: async () => {
      open = false;
      end(subscriber);
    },
  };
}

/** ioredis waits for the end of a connection that has ended already, and for one of a server that hangs (L5). */
function end(subscriber: Subscriber): void {
  if (subscriber.status === 'end') return;
  subscriber.disconnect();
  subscriber.stream?.destroy?.();
}

/** Messages reach every member of a cluster, so any one will do: another one each time, as one may be gone. */
function anyNode(client: IoredisClient): Duplicable {
  if (client.nodes === undefined || !client.isCluster) return client as unknown as Duplicable;
  const nodes = client.nodes('all') as readonly (Duplicable & { readonly status?: string })[];
  const ready = nodes.filter(({ status }) => status === 'ready' || status === 'wait');
  const among = ready.length > 0 ? ready : nodes;
  const node = among[Math.floor(systemRandom.fraction() * among.length)];
  if (node === undefined) throw new Error('no member of the cluster is known yet');
  return node;
}
