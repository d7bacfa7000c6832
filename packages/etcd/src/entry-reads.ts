/**
 * Reads of state entries. A client bears 4 MB in one message, and a value may be one of them, so entries that nothing is
 * known of are read three at a time. Entries that follow each other, as a listing finds them, are first asked for on the
 * condition that all of them are small, many at a time. One call has eight requests on their way at most.
 */
import type { StoredEntry } from '@guard/core';
import type { IKeyValue } from 'etcd3';
import type { EtcdConnection } from './connection.js';
import { LARGE_MARK, valueOf } from './state-value.js';
import { FOREVER } from './statements/state-write.js';
import { found, read, valuesBelow } from './statements/txn.js';

const READ_AT_ONCE = 3;
const SMALL_AT_ONCE = 100;
const READS_IN_FLIGHT = 8;
const MAX_ROUNDS = 8;

/** Reads entries over one connection. */
export class EntryReads {
  constructor(private readonly connection: EtcdConnection) {}

  /** In the order of the keys; `null` where nothing is. */
  async read(keys: readonly string[]): Promise<(StoredEntry | null)[]> {
    return this.withTimes(keys, await this.readKeys(keys));
  }

  /** The same for keys that follow each other in the store. */
  async readSpan(keys: readonly string[]): Promise<(StoredEntry | null)[]> {
    const chunks = chunksOf(keys, SMALL_AT_ONCE);
    const small = await inTurns(chunks, READS_IN_FLIGHT, (chunk) => this.readSmall(chunk));
    // Those that may be large in turns of their own: turns within turns would have 64 of them in memory at once.
    const others = await this.readKeys(chunks.filter((_, n) => small[n] === undefined).flat());
    let taken = 0;
    const kvs = chunks.flatMap((chunk, n) => small[n] ?? others.slice(taken, (taken += chunk.length)));
    return this.withTimes(keys, kvs);
  }

  /** `undefined`: they have to be read as if all of them were large. */
  private async readSmall(keys: readonly string[]): Promise<(IKeyValue | undefined)[] | undefined> {
    const [first, last] = [keys[0], keys.at(-1)];
    if (keys.length <= READ_AT_ONCE || first === undefined || last === undefined) return undefined;
    const span = this.connection.names.entriesBetween(first, last);
    const { response } = await this.connection.txn({
      compare: [valuesBelow(span, LARGE_MARK)],
      success: [{ request_range: { ...span, limit: SMALL_AT_ONCE } }],
    });
    const range = response.responses[0]?.response_range;
    // One of them is large, or what came between them meanwhile takes the place of others.
    if (!response.succeeded || range === undefined || range.more) return undefined;
    const byKey = new Map(range.kvs.map((kv) => [this.connection.names.entryKey(kv.key), kv]));
    return keys.map((key) => byKey.get(key));
  }

  private async readKeys(keys: readonly string[]): Promise<(IKeyValue | undefined)[]> {
    const chunks = chunksOf(keys, READ_AT_ONCE);
    return (await inTurns(chunks, READS_IN_FLIGHT, (chunk) => this.readChunk(chunk))).flat();
  }

  private async readChunk(keys: readonly string[]): Promise<(IKeyValue | undefined)[]> {
    const { response } = await this.connection.txn({
      success: keys.map((key) => read(this.connection.names.entry(key))),
    });
    return keys.map((_, n) => found(response.responses[n])[0]);
  }

  /**
   * Times are asked for after the entries were read. Whoever wrote an entry anew in between may have left its old lease
   * to its end: so what is over is read again, and gone only if nobody wrote it meanwhile.
   */
  private async withTimes(
    keys: readonly string[],
    kvs: readonly (IKeyValue | undefined)[],
    round = 0,
  ): Promise<(StoredEntry | null)[]> {
    const left = await this.timesOf(kvs);
    const entries = keys.map((key, n) => entryOf(key, kvs[n], left));
    const over = [...keys.keys()].filter((n) => kvs[n] !== undefined && entries[n] === null);
    if (over.length === 0) return entries;
    if (round === MAX_ROUNDS)
      throw new Error('entries ended and were written anew as often as they were read');
    const newer = await this.readKeys(over.map((n) => keys[n]!));
    const rewritten = newer.map((kv, place) =>
      kv?.mod_revision === kvs[over[place]!]!.mod_revision ? undefined : kv,
    );
    const again = await this.withTimes(
      over.map((n) => keys[n]!),
      rewritten,
      round + 1,
    );
    over.forEach((n, place) => (entries[n] = again[place]!));
    return entries;
  }

  private async timesOf(kvs: readonly (IKeyValue | undefined)[]): Promise<ReadonlyMap<string, number>> {
    const leases = kvs.flatMap((kv) => (kv === undefined || kv.lease === FOREVER ? [] : [kv.lease]));
    const ask = async (lease: string) => [lease, await this.leftMs(lease)] as const;
    return new Map(await inTurns([...new Set(leases)], READS_IN_FLIGHT, ask));
  }

  /** `0`: it is over, or less than a second is left, which the server does not tell apart. */
  private async leftMs(lease: string): Promise<number> {
    return Number((await this.connection.timeToLive(lease)).TTL) * 1_000;
  }
}

function entryOf(
  key: string,
  kv: IKeyValue | undefined,
  left: ReadonlyMap<string, number>,
): StoredEntry | null {
  if (kv === undefined) return null;
  const entry = { key, value: valueOf(kv.value), version: kv.mod_revision };
  const leftMs = left.get(kv.lease);
  if (leftMs === undefined) return entry;
  return leftMs < 0 ? null : { ...entry, expiresInMs: Math.max(leftMs, 1) };
}

function chunksOf(keys: readonly string[], size: number): (readonly string[])[] {
  const chunks: (readonly string[])[] = [];
  for (let at = 0; at < keys.length; at += size) chunks.push(keys.slice(at, at + size));
  return chunks;
}

/** Calls for all items, so many at a time; the answers in the order of the items. */
async function inTurns<I, A>(
  items: readonly I[],
  atOnce: number,
  call: (item: I) => Promise<A>,
): Promise<A[]> {
  const answers: A[] = [];
  for (let at = 0; at < items.length; at += atOnce) {
    answers.push(...(await Promise.all(items.slice(at, at + atOnce).map(call))));
  }
  return answers;
}
