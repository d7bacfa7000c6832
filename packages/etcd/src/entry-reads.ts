/**
 * Reads of state entries. A client bears 4 MB in one message, and a value may be one of them, so entries that nothing is
 * known of are read three at a time. Entries that follow each other, as a listing finds them, are first asked for on the
 * condition that all of them are small, many at a time.
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

/** Reads entries over one connection. */
export class EntryReads {
  constructor(private readonly connection: EtcdConnection) {}

  /** In the order of the keys; `null` where nothing is. */
  async read(keys: readonly string[]): Promise<(StoredEntry | null)[]> {
    return this.withTimes(keys, await this.readKeys(keys));
  }

  /** The same for keys that follow each other in the store. */
  async readSpan(keys: readonly string[]): Promise<(StoredEntry | null)[]> {
    const kvs = await inTurns(chunksOf(keys, SMALL_AT_ONCE), READS_IN_FLIGHT, (chunk) =>
      this.readSmall(chunk),
    );
    return this.withTimes(keys, kvs.flat());
  }

  private async readSmall(keys: readonly string[]): Promise<(IKeyValue | undefined)[]> {
    const [first, last] = [keys[0], keys.at(-1)];
    if (keys.length <= READ_AT_ONCE || first === undefined || last === undefined) return this.readKeys(keys);
    const span = this.connection.names.entriesBetween(first, last);
    const { response } = await this.connection.txn({
      compare: [valuesBelow(span, LARGE_MARK)],
      success: [{ request_range: { ...span, limit: SMALL_AT_ONCE } }],
    });
    const range = response.responses[0]?.response_range;
    // One of them is large, or what came between them meanwhile takes the place of others.
    if (!response.succeeded || range === undefined || range.more) return this.readKeys(keys);
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

  private async withTimes(
    keys: readonly string[],
    kvs: readonly (IKeyValue | undefined)[],
  ): Promise<(StoredEntry | null)[]> {
    const leases = [
      ...new Set(kvs.flatMap((kv) => (kv === undefined || kv.lease === FOREVER ? [] : [kv.lease]))),
    ];
    const left = new Map(
      await inTurns(leases, READS_IN_FLIGHT, async (lease) => [lease, await this.leftMs(lease)] as const),
    );
    return keys.map((key, n) => entryOf(key, kvs[n], left));
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
