/**
 * `redisState`: versioned entries on Redis. Every write is one script on the entry's own server: the compare, the set,
 * the fence and the message to watchers are one step. On a single server (or behind Sentinel) an index lists the keys
 * in order, in the same step; in a cluster no step can span two slots, so a listing walks the servers' keys instead.
 */
import {
  FENCE_KEPT_MS,
  type StateChange,
  type StatePage,
  type StateStore,
  type StateWrite,
  type StoredEntry,
  type Subscription,
  type WriteAnswer,
} from '@guard/core';
import { compareBytes } from './byte-order.js';
import { escapeGlob, type RedisConnection, type ScriptArgument } from './connection.js';
import { STATE_CHANNEL, STATE_INDEX, entryKeyOf, entryName, entryStart } from './names.js';
import { FORGET, NOW, PAGE, READ } from './scripts/state-read.lua.js';
import { WRITE, WRITE_UNINDEXED } from './scripts/state-write.lua.js';
import { StateWatch } from './state-watch.js';

const MAX_BATCH = 64;
/** How many keys of one page are read in one step. */
const READ_AT_ONCE = 64;

/** A state store on Redis. */
export function redisState(connection: RedisConnection): StateStore {
  return new RedisState(connection);
}

class RedisState implements StateStore {
  readonly name: string;
  readonly traits: StateStore['traits'];
  private readonly watches = new Set<StateWatch>();

  constructor(private readonly connection: RedisConnection) {
    this.name = `redis://${connection.place}`;
    this.traits = {
      maxBatch: connection.cluster ? 1 : MAX_BATCH,
      push: true,
      atomicBatch: !connection.cluster,
    };
  }

  async now(): Promise<number> {
    return Number(await this.connection.run(NOW, [entryName('')], [])) / 1_000;
  }

  async read(keys: readonly string[]): Promise<readonly (StoredEntry | null)[]> {
    const step = this.connection.cluster ? 1 : READ_AT_ONCE;
    const entries: (StoredEntry | null)[] = [];
    for (let at = 0; at < keys.length; at += step)
      entries.push(...(await this.readSome(keys.slice(at, at + step))));
    return entries;
  }

  async write(writes: readonly StateWrite[]): Promise<readonly WriteAnswer[]> {
    const { cluster, breaks } = this.connection;
    const names = writes.map(({ key }) => entryName(key));
    const args = [FENCE_KEPT_MS, STATE_CHANNEL, ...writes.flatMap(argumentsOf)];
    const answers = (await (cluster
      ? this.connection.run(WRITE_UNINDEXED, names, args)
      : this.connection.run(WRITE, [STATE_INDEX, ...names], args))) as readonly (readonly [string, string])[];
    // The client may have sent it twice by itself; then a conflict may be with our own write, overwritten since.
    const resent = this.connection.breaks !== breaks;
    return answers.map((answer) => answerOf(answer, resent));
  }

  async scan(prefix: string, cursor: string | undefined, limit: number): Promise<StatePage> {
    const keys = this.connection.cluster
      ? await this.walk(prefix, cursor, limit)
      : await this.page(prefix, cursor, limit);
    const entries = await this.read(keys);
    await this.forgetGone(keys, entries);
    const page = entries.filter((entry) => entry !== null);
    const last = keys.at(-1);
    return keys.length < limit || last === undefined ? { entries: page } : { entries: page, cursor: last };
  }

  async watch(prefix: string, listener: (change: StateChange) => void): Promise<Subscription> {
    const watch = new StateWatch(this, this.connection, prefix, listener);
    await watch.open();
    this.watches.add(watch);
    return {
      close: async () => {
        this.watches.delete(watch);
        await watch.close();
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.watches].map((watch) => watch.close()));
    this.watches.clear();
  }

  private async readSome(keys: readonly string[]): Promise<readonly (StoredEntry | null)[]> {
    const answers = (await this.connection.run(READ, keys.map(entryName), [])) as readonly (readonly [
      string?,
      string?,
      number?,
    ])[];
    return keys.map((key, index) => {
      const [value, version, expiresInMs] = answers[index] ?? [];
      if (value === undefined || version === undefined) return null;
      return {
        key,
        value,
        version,
        ...(expiresInMs === undefined || expiresInMs < 0 ? undefined : { expiresInMs }),
      };
    });
  }

  private async page(prefix: string, cursor: string | undefined, limit: number): Promise<readonly string[]> {
    const from = cursor === undefined ? `[${prefix}` : `(${cursor}`;
    // No byte of UTF-8 is 0xff, so nothing that starts with the prefix sorts after it.
    const to = Buffer.concat([Buffer.from(`[${prefix}`), Buffer.from([0xff])]);
    return (await this.connection.run(PAGE, [STATE_INDEX], [from, to, limit])) as readonly string[];
  }

  /** All names of all servers, in order: nothing in a cluster keeps an order of keys across its slots. */
  private async walk(prefix: string, cursor: string | undefined, limit: number): Promise<readonly string[]> {
    const names = await this.connection.scan(`${escapeGlob(entryStart(prefix))}*`);
    const keys = names.map(entryKeyOf).sort(compareBytes);
    const from = cursor === undefined ? keys : keys.filter((key) => compareBytes(key, cursor) > 0);
    return from.slice(0, limit);
  }

  /** Keys of expired entries leave the index when somebody meets them. */
  private async forgetGone(keys: readonly string[], entries: readonly (StoredEntry | null)[]): Promise<void> {
    if (this.connection.cluster) return;
    const gone = keys.filter((_, index) => entries[index] === null);
    for (const key of gone) await this.connection.run(FORGET, [STATE_INDEX, entryName(key)], [key]);
  }
}

function argumentsOf({ key, value, expect, writeId, ttl, fence }: StateWrite): ScriptArgument[] {
  const [what, version] =
    typeof expect === 'object' ? ['v', expect.version] : [expect === 'absent' ? 'a' : '*', ''];
  const ttlArgument = ttl === 'keep' ? 'k' : ttl === 'none' ? 'n' : ttl;
  const act = value === null ? 'd' : 'p';
  const token = (fence?.token ?? 0n).toString().padStart(19, '0');
  return [key, act, value ?? '', what, version, writeId, ttlArgument, fence?.lock ?? '', token];
}

function answerOf([status, text]: readonly [string, string], resent: boolean): WriteAnswer {
  switch (status) {
    case 'w':
      return { status: 'written', version: text };
    case 'f':
      return { status: 'fenced', token: BigInt(text) };
    case 'c':
      return { status: 'conflict', version: text === '' ? null : text, ...(resent ? { resent } : undefined) };
    default:
      return { status: 'failed', cause: new Error(`Redis answered ${status} to a write`) };
  }
}
