/**
 * `redisState`: versioned entries on Redis. Every write is one script on the entry's own server: the compare, the set,
 * the fence, the index and the message to watchers are one step. On a single server (or behind Sentinel) one index
 * lists all keys in order; in a cluster no step can span two slots, so each tag has its own, and a listing merges them.
 */
import {
  FENCE_KEPT_MS,
  GuardError,
  systemClock,
  type StateChange,
  type StateFeedParts,
  type StatePage,
  type StateStore,
  type StateWrite,
  type StoredEntry,
  type Subscription,
  type WriteAnswer,
} from '@guard/core';
import { compareBytes } from './byte-order.js';
import { checkConnection, checkNoOptions, type RedisConnection, type ScriptArgument } from './connection.js';
import { endsName, entryName, INDEX_PER_TAG, ONE_INDEX, stateChannel, type StateIndex } from './names.js';
import { FORGET, NOW, PAGE, READ } from './scripts/state-read.lua.js';
import { WRITE } from './scripts/state-write.lua.js';
import { tagOf } from './slot.js';
import { StateWatch } from './state-watch.js';
import { listed, strangeAnswer } from './strange-answer.js';

const MAX_BATCH = 64;

/**
 * A state store on Redis.
 *
 * @throws GuardError `invalid-argument`: not a connection, such as a client that was not wrapped; or an option, of which
 * it has none.
 */
export function redisState(connection: RedisConnection, ...none: readonly []): StateStore {
  checkConnection('redisState', connection);
  checkNoOptions('redisState', none);
  return new RedisState(connection);
}

class RedisState implements StateStore {
  readonly name: string;
  readonly traits: StateStore['traits'];
  readonly partition?: (key: string) => string;
  private readonly channel: string;
  private readonly index: StateIndex;
  private readonly watches = new Set<StateWatch>();
  private timeAsked = 0;
  private closed = false;

  constructor(private readonly connection: RedisConnection) {
    this.name = `redis://${connection.place}`;
    this.traits = { maxBatch: MAX_BATCH, push: true, atomicBatch: !connection.cluster };
    this.channel = stateChannel(connection.scope);
    this.index = connection.cluster ? INDEX_PER_TAG : ONE_INDEX;
    // As for locks: a script can touch one slot only, and a dead master harms only its own entries.
    if (connection.cluster) this.partition = tagOf;
  }

  /** In a cluster any master may tell: always the same one, and another where that has not answered. */
  async now(): Promise<number> {
    const unanswered = this.timeAsked;
    this.timeAsked += 1;
    const { value } = await this.connection.run(NOW, [entryName(String(unanswered))], []);
    // Another question may have gone on to the next one meanwhile.
    this.timeAsked = Math.min(this.timeAsked, unanswered);
    if (!/^\d+$/.test(String(value))) throw strangeAnswer('a question for its time', value);
    return Number(value) / 1_000;
  }

  async read(keys: readonly string[]): Promise<readonly (StoredEntry | null)[]> {
    const entries = new Array<StoredEntry | null>(keys.length).fill(null);
    const ask = async (places: readonly number[]): Promise<void> => {
      const names = places.map((place) => entryName(keys[place]!));
      // A write takes ended keys out of the index of a cluster.
      const index = this.index.of(keys[places[0]!]!);
      if (!this.connection.cluster) names.push(index, endsName(index));
      const { value } = await this.connection.run(READ, names, [places.length]);
      const answers = listed('a read', value, places.length);
      places.forEach((place, at) => (entries[place] = entryOf(keys[place]!, answers[at])));
    };
    await Promise.all(this.grouped(keys).map(ask));
    return entries;
  }

  async write(writes: readonly StateWrite[]): Promise<readonly WriteAnswer[]> {
    const answers = new Array<WriteAnswer>(writes.length);
    const groups = this.grouped(writes.map(({ key }) => key));
    const send = async (places: readonly number[]): Promise<void> => {
      const sent = await this.writeTogether(places.map((place) => writes[place]!));
      places.forEach((place, at) => (answers[place] = sent[at]!));
    };
    if (groups.length === 1) await send(groups[0]!);
    else {
      // One dead master harms only its own entries.
      const failed = (places: readonly number[], cause: unknown): void =>
        places.forEach((place) => (answers[place] = { status: 'failed', cause }));
      await Promise.all(
        groups.map((places) => send(places).catch((cause: unknown) => failed(places, cause))),
      );
    }
    return answers;
  }

  private async writeTogether(writes: readonly StateWrite[]): Promise<readonly WriteAnswer[]> {
    const keys = this.namesOf(writes.map(({ key }) => key));
    const args = [FENCE_KEPT_MS, this.channel, ...writes.flatMap(argumentsOf)];
    const { value, resent } = await this.connection.run(WRITE, keys, args);
    // The client may have sent it twice by itself; then a conflict may be with our own write, overwritten since.
    return listed('a write', value, writes.length).map((answer) => answerOf(answer, resent));
  }

  scan(prefix: string, cursor: string | undefined, limit: number): Promise<StatePage> {
    return this.list(this.index.all, prefix, cursor, limit);
  }

  private async list(
    indexes: readonly string[],
    prefix: string,
    cursor: string | undefined,
    limit: number,
  ): Promise<StatePage> {
    const from = cursor === undefined ? `[${prefix}` : `(${cursor}`;
    // No byte of UTF-8 is 0xff, so nothing that starts with the prefix sorts after it.
    const to = Buffer.concat([Buffer.from(`[${prefix}`), Buffer.from([0xff])]);
    const pages = await Promise.all(
      indexes.map(async (index) => {
        const { value } = await this.connection.run(PAGE, [index], [from, to, limit]);
        if (!Array.isArray(value)) throw strangeAnswer('a listing', value);
        return value as readonly string[];
      }),
    );
    const keys = pages.length === 1 ? pages[0]! : pages.flat().sort(compareBytes).slice(0, limit);
    const entries = await this.read(keys);
    await this.forgetGone(keys, entries);
    const page = entries.filter((entry) => entry !== null);
    const last = keys.at(-1);
    return keys.length < limit || last === undefined ? { entries: page } : { entries: page, cursor: last };
  }

  async watch(prefix: string, listener: (change: StateChange) => void): Promise<Subscription> {
    if (this.closed) throw new GuardError('closed', `the state on ${this.name} was closed`);
    const namespace = prefix.slice(0, prefix.indexOf('/'));
    const storeOf = (index: string): StateFeedParts['store'] => ({
      read: (keys) => this.read(keys),
      scan: (...page) => this.list([index], ...page),
    });
    const parts = { index: this.index, storeOf, clock: systemClock, prefix, listener };
    const watch = new StateWatch(this.connection, this.channel + namespace, parts);
    this.watches.add(watch);
    const close = (): Promise<void> => {
      this.watches.delete(watch);
      return watch.close();
    };
    try {
      await watch.open();
    } catch (error) {
      await close();
      throw error;
    }
    return { close };
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.watches].map((watch) => watch.close()));
    this.watches.clear();
  }

  /** Keys of expired entries leave the index when somebody meets them. */
  private async forgetGone(keys: readonly string[], entries: readonly (StoredEntry | null)[]): Promise<void> {
    const gone = keys.filter((_, index) => entries[index] === null);
    const forget = (key: string): Promise<unknown> => this.connection.run(FORGET, this.namesOf([key]), [key]);
    await Promise.all(gone.map(forget));
  }

  /** Entries that one index lists, and before them what lists them. */
  private namesOf(keys: readonly string[]): readonly string[] {
    const index = this.index.of(keys[0]!);
    return [index, endsName(index), ...keys.map(entryName)];
  }

  /** Places in `keys` that one script can serve together. */
  private grouped(keys: readonly string[]): readonly (readonly number[])[] {
    const open = new Map<string, number[]>();
    const groups: number[][] = [];
    keys.forEach((key, place) => {
      const index = this.index.of(key);
      let group = open.get(index);
      if (group === undefined || group.length === MAX_BATCH) {
        group = [];
        open.set(index, group);
        groups.push(group);
      }
      group.push(place);
    });
    return groups;
  }
}

type ReadAnswer = readonly [] | readonly [value: string, version: string, msLeft: number | string];

function entryOf(key: string, answer: unknown): StoredEntry | null {
  if (!Array.isArray(answer)) throw strangeAnswer('a read', answer);
  const [value, version, msLeft] = answer as unknown as ReadAnswer;
  if (value === undefined || version === undefined) return null;
  const expiresInMs = Number(msLeft);
  return { key, value, version, ...(expiresInMs < 0 ? undefined : { expiresInMs }) };
}

function argumentsOf({ key, value, expect, writeId, ttl, fence }: StateWrite): ScriptArgument[] {
  const [what, version] =
    typeof expect === 'object' ? ['v', expect.version] : [expect === 'absent' ? 'a' : '*', ''];
  const ttlArgument = ttl === 'keep' ? 'k' : ttl === 'none' ? 'n' : ttl;
  const act = value === null ? 'd' : 'p';
  const token = (fence?.token ?? 0n).toString().padStart(19, '0');
  return [key, act, value ?? '', what, version, writeId, ttlArgument, fence?.lock ?? '', token];
}

function answerOf(answer: unknown, resent: boolean): WriteAnswer {
  const [status, text] = (Array.isArray(answer) ? answer : []) as readonly (string | undefined)[];
  if (text === undefined) return { status: 'failed', cause: strangeAnswer('a write', answer) };
  switch (status) {
    case 'w':
      return { status: 'written', version: text };
    case 'f':
      return { status: 'fenced', token: BigInt(text) };
    case 'c':
      return { status: 'conflict', version: text === '' ? null : text, ...(resent ? { resent } : undefined) };
    default:
      return { status: 'failed', cause: strangeAnswer('a write', answer) };
  }
}
