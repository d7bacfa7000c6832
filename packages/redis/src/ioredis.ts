/**
 * `fromIoredis`: a connection over an ioredis client or cluster (5 or 6) that the application made. Typed by the few
 * members that are used, so that nothing of ioredis is imported and any compatible client fits.
 */
import { GuardError } from '@guard/core';
import { Another } from './another.js';
import { Messages } from './channel.js';
import { checkMode, inWords } from './client-errors.js';
import {
  checkConnectionOptions,
  clusterName,
  DEFAULT_PORT,
  escapeGlob,
  followed,
  isNoScript,
  oncePer,
  placeName,
  PROBE,
  Refusals,
  SCAN_PAGE,
  type Acks,
  type RedisConnection,
  type RedisConnectionOptions,
  type ScriptArgument,
  type ScriptReply,
  type Seed,
} from './connection.js';
import { connectLazy, openLine } from './ioredis-line.js';
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
 * credentials, TLS and retry settings stay in force. Messages come over one duplicate of it, which all connections that
 * are made of it share, and which Guard opens and closes.
 *
 * @throws GuardError `invalid-argument`: not an ioredis client; one that was disconnected, or is in subscriber or monitor
 * mode; one that reads from replicas; one with a key prefix with braces, which would break the hash tags of Guard's keys;
 * or an option that is not valid.
 */
export function fromIoredis(client: IoredisClient, own: RedisConnectionOptions = {}): RedisConnection {
  checkConnectionOptions('fromIoredis', own);
  const options = checkedOptions(client);
  const watched = watchedOnce(client);
  const { messages, refusals, open, waiting } = watched;
  const prefix = options.keyPrefix ?? '';
  // A client that is set not to send again leaves what was unanswered pending for ever.
  const forgets = options.autoResendUnfulfilledCommands === false && client.isCluster !== true;
  const settled = <T>(call: Promise<T>): Promise<T> =>
    forgets ? untilBreak(call, open) : mayBeRefused(client) ? untilBreak(call, waiting) : call;
  // A cluster has one only, and the library forgets another one.
  const database = client.isCluster === true ? 0 : (options.db ?? 0);
  return {
    place: placeName(own, () => whereOf(client, options), database, prefix),
    scope: `${database}:${prefix}`,
    cluster: client.isCluster === true,
    run: (script, keys, args, acks) => {
      const before = watched.breaks;
      const reply = (answer: unknown, confirmed = 0): ScriptReply => {
        const value = refusals.answersIn(answer);
        return { value, resent: watched.breaks !== before, acks: confirmed };
      };
      if (acks !== undefined) {
        const flight = () => settled(runAndWait(client, script, keys, args, acks));
        const probe = () => settled(client.eval(PROBE, 1, keys[0]!));
        return followed(flight, probe).then(([value, n]) => reply(value, n), rethrow);
      }
      // Not async, nor a function of its own that is: every promise on the way costs where nothing else is waited for.
      return settled(client.evalsha(script.sha, keys.length, ...keys, ...args)).then(
        (value) => reply(value),
        (error: unknown) => {
          if (!isNoScript(error)) return rethrow(error);
          return settled(client.eval(script.text, keys.length, ...keys, ...args)).then(
            (value) => reply(value),
            rethrow,
          );
        },
      );
    },
    scan: async (pattern) => {
      await connectLazy(client);
      const nodes = (client.nodes?.('master') ?? [client]) as readonly IoredisClient[];
      if (nodes.length === 0) throw new Error('no member of the cluster is known yet');
      const found = await Promise.all(nodes.map((node) => scanNode(node, escapeGlob(prefix) + pattern)));
      return found.flat().map((name) => name.slice(prefix.length));
    },
    subscribe: (...listener) => messages.subscribe(...listener),
  };
}

function rethrow(error: unknown): never {
  throw inWords(error);
}

interface Options {
  readonly keyPrefix?: string;
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly db?: number;
  readonly name?: string;
  readonly sentinels?: readonly unknown[] | null;
  readonly failoverDetector?: boolean;
  readonly role?: string;
  readonly readOnly?: boolean;
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly redisOptions?: Options;
}

/** What a client shows of its state. */
interface Shown {
  readonly status?: string;
  readonly mode?: string;
}

function checkedOptions(client: IoredisClient): Options {
  const shown = (client ?? {}) as Partial<IoredisClient> & Shown;
  const { evalsha, duplicate, pipeline, on, options: given } = shown;
  const isOne = [evalsha, shown.eval, duplicate, pipeline, on].every((each) => typeof each === 'function');
  if (!isOne || typeof given !== 'object' || given === null) {
    throw new GuardError('invalid-argument', 'fromIoredis takes an ioredis client or cluster');
  }
  checkMode(shown.mode);
  if (shown.status === 'end') {
    throw new GuardError('invalid-argument', 'the client was disconnected: give Guard one that is in use');
  }
  const options: Options = { ...(given as Options).redisOptions, ...given };
  if (/[{}]/.test(String(options.keyPrefix ?? ''))) {
    throw new GuardError('invalid-argument', `the client's keyPrefix must not contain braces`);
  }
  if (options.role === 'slave' || options.readOnly === true) {
    throw new GuardError('invalid-argument', 'the client reads from replicas; Guard needs one of the master');
  }
  return options;
}

const MAY_NOT = /^(NOPERM|NOAUTH|WRONGPASS)/;

/** What is known of a client, by one set of listeners however many connections are made of it. */
class Watched {
  breaks = 0;
  readonly refusals = new Refusals();
  readonly messages: Messages;
  /** Calls that no client sends again, so that a break ends them. */
  readonly open = new Set<(error: Error) => void>();
  /**
   * A cluster client whose user may not ask for the cluster keeps what it is given for when it may, and tells nobody
   * why: what waits in it is rejected with what the members say.
   */
  readonly waiting = new Set<(error: Error) => void>();

  constructor(client: IoredisClient) {
    const another = new Another();
    this.messages = new Messages((terms) => openLine(client as never, terms, another));
    client.on('close', () => {
      this.breaks += 1;
      rejectAll(this.open, new Error('the connection broke before the answer'));
      // It was told of a fail-over, and its own connection for messages does not ask: see `openLine`.
      if ((client.options as Options).failoverDetector === true) this.messages.broke();
    });
    client.on('-node', () => (this.breaks += 1));
    client.on('node error', (error: Error) => {
      if (mayBeRefused(client) && MAY_NOT.test(error.message)) rejectAll(this.waiting, error);
    });
  }
}

const watchedOnce = oncePer((client: IoredisClient) => new Watched(client));

function mayBeRefused(client: IoredisClient): boolean {
  return client.isCluster === true && (client as { readonly status?: string }).status !== 'ready';
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
  if (options.sentinels && options.name !== undefined) return options.name;
  return options.path ?? `${options.host ?? 'localhost'}:${options.port ?? DEFAULT_PORT}`;
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
