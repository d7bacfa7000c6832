/**
 * What this adapter needs of a Redis client, and nothing more: scripts and one stream of messages. `fromIoredis` and
 * `fromNodeRedis` make it from the client that the application hands in; neither library is imported here.
 */
import { checkOptions, GuardError, invalidArgument } from '@guard/core';
import type { Script } from './scripts/script.js';
import { UNHEARD } from './scripts/tell.lua.js';

export const DEFAULT_PORT = 6379;
/** As the names of SQL stores: it names fences, also in their tables. */
const MAX_NAME_BYTES = 512;

/** An open subscription. */
export interface Channel {
  close(): Promise<void>;
}

/** An argument of a script. Bytes where a bound is no text. */
export type ScriptArgument = string | number | Buffer;

/** How many replicas have to confirm what a script wrote, and for how long they are waited for. */
export interface Acks {
  readonly replicas: number;
  readonly timeoutMs: number;
}

/** What a script answered, and what is known about how it came. */
export interface ScriptReply {
  readonly value: unknown;
  /**
   * A connection broke meanwhile. A client may send what was unanswered again by itself, so an answer that says
   * "nothing there" across such a moment proves nothing (S4).
   */
  readonly resent: boolean;
  /** How many replicas confirmed it; 0 where none was asked. */
  readonly acks: number;
}

/** Options of `fromIoredis` and `fromNodeRedis`. */
export interface RedisConnectionOptions {
  /**
   * Names what the client leads to, in 1 to 512 bytes of UTF-8. Fences compare tokens of one name only, and a run is taken over only by a guard whose
   * lock backend has the same name, so all nodes name it alike. Default: the address that the client was given; behind
   * Sentinel the name of the master; of a cluster the addresses that the client begins with. Set it where nodes use
   * different addresses for one place, or reach two places by one address.
   */
  readonly name?: string;
}

/** A client as this adapter sees it. Made by `fromIoredis` or `fromNodeRedis`. */
export interface RedisConnection {
  /** Where it leads, for the name of the backend: address and database, no credentials. */
  readonly place: string;
  /** Database and key prefix: channels are shared by all databases of a server, keys are not. */
  readonly scope: string;
  /** Keys of one call must share a slot. */
  readonly cluster: boolean;
  /** Runs a script, by its hash where the server knows it already; with `acks`, waits for replicas in the same flight. */
  run(
    script: Script,
    keys: readonly string[],
    args: readonly ScriptArgument[],
    acks?: Acks,
  ): Promise<ScriptReply>;
  /** Names of all keys that match a glob pattern, without the client's own prefix. Walks everything: for people. */
  scan(pattern: string): Promise<readonly string[]>;
  /**
   * Listens, on a connection that all channels of a client share. `onState(false)`: messages may be lost from now on;
   * `true`: they come again. While `isAwaited`, it is noticed within three seconds that the other end is gone. Default:
   * always.
   */
  subscribe(
    channel: string,
    onMessage: (message: string) => void,
    onState: (open: boolean) => void,
    isAwaited?: () => boolean,
  ): Promise<Channel>;
}

/** An address with which a client of a cluster begins, as the libraries take it. */
export type Seed =
  | string
  | number
  | {
      readonly host?: string;
      readonly port?: number;
      readonly url?: string;
      readonly socket?: { readonly host?: string; readonly port?: number };
    };

/** The name of a cluster by its seeds, in whatever order they are given. Nothing that lets anybody in. */
export function clusterName(seeds: readonly Seed[]): string {
  return [...new Set(seeds.map(addressOf))].sort().join(',');
}

/** The name of a place that `where` is on: address, database and key prefix. */
export function placeName(
  { name }: RedisConnectionOptions,
  where: () => string,
  database: string | number,
  prefix: string,
): string {
  return `${name ?? where()}/${database}/${prefix}`;
}

/** Refuses what `redisLocks` and `redisState` cannot work with; mostly it is the client, which was not wrapped. */
export function checkConnection(of: string, connection: RedisConnection): void {
  const given = connection as Partial<RedisConnection> | null | undefined;
  const isOne =
    typeof given?.run === 'function' &&
    typeof given.subscribe === 'function' &&
    typeof given.place === 'string';
  if (!isOne) {
    const expectation = `of ${of} must be a connection: wrap the client by fromIoredis or fromNodeRedis`;
    throw invalidArgument('connection', connection, expectation);
  }
}

/** Refuses options where there are none: one that is ignored would be believed. */
export function checkNoOptions(of: string, given: readonly unknown[]): void {
  const [options] = given;
  if (options === undefined) return;
  const names = typeof options === 'object' && options !== null ? Object.keys(options) : [];
  if (names.length > 0)
    throw new GuardError('invalid-argument', `${of} has no option '${names[0]}'; it has none`);
  checkOptions(of, options, []);
}

/** Checks the options of a connection. */
export function checkConnectionOptions(of: string, options: RedisConnectionOptions): void {
  checkOptions(of, options, ['name']);
  const { name } = options;
  if (name !== undefined) checkName(name);
}

function checkName(name: unknown): void {
  const isName = typeof name === 'string' && name !== '' && !name.includes('\0') && name.isWellFormed();
  if (isName && Buffer.byteLength(name) <= MAX_NAME_BYTES) return;
  const expectation = `must be well-formed text of 1 to ${MAX_NAME_BYTES} bytes without U+0000`;
  throw invalidArgument('name', name, expectation);
}

function addressOf(seed: Seed): string {
  if (typeof seed === 'number') return `localhost:${seed}`;
  if (typeof seed === 'string') {
    const { hostname, port } = urlOf(seed.includes('://') ? seed : `redis://${seed}`);
    return `${hostname}:${port || DEFAULT_PORT}`;
  }
  if (seed.url !== undefined) return addressOf(seed.url);
  const { host = 'localhost', port = DEFAULT_PORT } = seed.socket ?? seed;
  return `${host}:${port}`;
}

/** What is wrong with an address is not told by repeating it: it may hold a password. */
function urlOf(text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw new GuardError('invalid-argument', 'the client begins with an address that is no URL');
  }
}

/** Whether a server says that it does not know a script: after a restart, a flush, a fail-over. */
export function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/** Asks nothing, of the server that has the key. */
export const PROBE = 'return 1';

/** Members of a cluster disagree about a slot for a moment after it moved. */
const MAX_REDIRECTIONS = 3;

/**
 * Makes a flight that waits for replicas follow its slot. Of a pipeline the libraries hand the `MOVED` out, and their
 * clients keep going to the old master; a lone command they follow, and the client knows the way from then on. So one
 * is sent that does nothing, and the flight once more, whole: nothing of it was carried out, and its `WAIT` has to go
 * down the connection that its script went.
 */
export async function followed<T>(flight: () => Promise<T>, probe: () => Promise<unknown>): Promise<T> {
  for (let redirections = 0; ; redirections += 1) {
    try {
      return await flight();
    } catch (error) {
      if (redirections === MAX_REDIRECTIONS || !isMoved(error)) throw error;
      await probe();
    }
  }
}

function isMoved(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('MOVED');
}

/** What is kept once for each client, however many connections are made of it. */
export function oncePer<C extends object, V>(make: (client: C) => V): (client: C) => V {
  const made = new WeakMap<C, V>();
  return (client) => {
    const known = made.get(client);
    if (known !== undefined) return known;
    const value = make(client);
    made.set(client, value);
    return value;
  };
}

/**
 * Takes answers out of those of scripts whose message was refused. The first such call of a client rejects, which tells
 * the application what is missing: the step is done, and asked for again it is answered with what it did. All others
 * pass.
 */
export class Refusals {
  private told = false;

  answersIn(value: unknown): unknown {
    if (!Array.isArray(value) || value[0] !== UNHEARD) return value;
    if (this.told) return value[2];
    this.told = true;
    const right = `messages are refused, so waiters and watchers learn late: give the user the channels 'guard:*'`;
    throw new Error(`${right} (${String(value[1])})`);
  }
}

/** How many keys one step of a scan looks at. */
export const SCAN_PAGE = 1_000;

/** A text in which no character is a pattern. */
export function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]^-]/g, '\\$&');
}
