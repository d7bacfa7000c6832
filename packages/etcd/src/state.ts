/**
 * `etcdState`: versioned entries on etcd. A version is the revision of the write, which etcd never gives twice. Every
 * write is one transaction: the compare, the put and the fence are one step. A ttl is a lease of its own that is never
 * kept alive, so etcd alone judges when an entry is over.
 */
import {
  FENCE_KEPT_MS,
  GuardError,
  systemClock,
  type Clock,
  type StateChange,
  type StatePage,
  type StateStore,
  type StateWrite,
  type StoredEntry,
  type Subscription,
  type WriteAnswer,
} from '@guard/core';
import { checkEtcdOptions, EtcdConnection, SENDING_MS, type EtcdClient } from './connection.js';
import { EntryReads } from './entry-reads.js';
import { FadingLeases, underLiveLeases } from './fading-leases.js';
import { StateWatch } from './state-watch.js';
import { tokenOf } from './state-value.js';
import { FOREVER, stagesOf, writeStep, type WriteParts } from './statements/state-write.js';
import { apart, found, together, type Answer, type Step } from './statements/txn.js';
import { bytesOf } from './step-size.js';
import { WatchStream } from './watch-stream.js';

/** A write, with what earlier rounds told of it. */
interface Wish {
  readonly write: StateWrite;
  readonly known: Pick<WriteParts, 'present' | 'fenceLease' | 'outlived'>;
  readonly rounds: number;
}

/** A write that was not carried out, because it took something for granted that is not so. */
interface Asked {
  readonly ask: 'presence' | 'lease';
  /** The lease that the entry stands under. */
  readonly lease: string;
}

const MAX_ROUNDS = 8;
const NOTHING_KNOWN = { present: true, fenceLease: undefined, outlived: undefined };
const RESTLESS = 'the entry came and went as often as the write was sent';

/** Options of `etcdState`. */
export interface EtcdStateOptions {
  /** Names the cluster, as for `etcdLocks`. Default `'etcd'`. */
  readonly cluster?: string;
  /** Its wall time is what the store calls now. For tests. Default: the system's clock. */
  readonly clock?: Clock;
}

const MAX_BATCH = 32;
/** The server takes 1.5 MiB in one request, with what it adds itself: who asks. */
const MAX_REQUEST_BYTES = 1_540_000;
const TTL_SHARED_MS = 1_000;
const FENCE_SHARED_MS = 600_000;

/**
 * A state store on etcd, over an `Etcd3` client of the library etcd3, or a namespace of one.
 *
 * @throws GuardError `invalid-argument`: not such a client, or an option that is not valid.
 */
export function etcdState(client: EtcdClient, options: EtcdStateOptions = {}): StateStore {
  checkEtcdOptions('etcdState', options);
  return new EtcdState(new EtcdConnection(client, SENDING_MS.state), options);
}

class EtcdState implements StateStore {
  readonly name: string;
  readonly traits = { maxBatch: MAX_BATCH, push: true, atomicBatch: true, ttlGranularityMs: 2_500 };
  private readonly clock: Clock;
  private readonly ttls: FadingLeases;
  private readonly fences: FadingLeases;
  private readonly watches = new Set<StateWatch>();
  private readonly stream: WatchStream;
  private readonly reads: EntryReads;
  private closed = false;

  constructor(
    private readonly connection: EtcdConnection,
    { cluster = 'etcd', clock = systemClock }: EtcdStateOptions,
  ) {
    this.name = `etcd://${cluster}/${connection.prefix}`;
    this.clock = clock;
    this.stream = new WatchStream(connection, clock);
    this.reads = new EntryReads(connection);
    this.ttls = new FadingLeases(connection, clock, TTL_SHARED_MS);
    this.fences = new FadingLeases(connection, clock, FENCE_SHARED_MS);
  }

  /** etcd has no clock that a client can read: this machine's. */
  now(): Promise<number> {
    return Promise.resolve(this.clock.now().wallMs);
  }

  read(keys: readonly string[]): Promise<readonly (StoredEntry | null)[]> {
    return this.reads.read(keys);
  }

  async write(writes: readonly StateWrite[]): Promise<readonly WriteAnswer[]> {
    const leases = [this.ttls, this.fences];
    const wishes = writes.map((write) => ({ write, known: NOTHING_KNOWN, rounds: 0 }));
    return inParts(wishes, (rest) => underLiveLeases(leases, () => this.writeSome(rest)));
  }

  async scan(prefix: string, cursor: string | undefined, limit: number): Promise<StatePage> {
    const range = this.connection.names.entriesBelow(prefix, cursor);
    const { kvs, more } = await this.connection.range({ ...range, keys_only: true, limit });
    const keys = kvs.map(({ key }) => this.connection.names.entryKey(key));
    const entries = (await this.reads.readSpan(keys)).filter((entry) => entry !== null);
    const last = keys.at(-1);
    return more && last !== undefined ? { entries, cursor: last } : { entries };
  }

  async watch(prefix: string, listener: (change: StateChange) => void): Promise<Subscription> {
    if (this.closed) throw new GuardError('closed', `the state on ${this.name} was closed`);
    const parts = { store: this, clock: this.clock, prefix, listener };
    const watch = new StateWatch(this.stream, this.connection.names, parts);
    this.watches.add(watch);
    const close = (): void => {
      this.watches.delete(watch);
      watch.close();
    };
    try {
      await watch.open();
    } catch (error) {
      close();
      throw error;
    }
    return { close: async () => close() };
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const watch of this.watches) watch.close();
    this.watches.clear();
    this.stream.close();
  }

  /** Writes the first of them, as many as fit into one request. */
  private async writeSome(wishes: readonly Wish[]): Promise<readonly WriteAnswer[]> {
    const parts = await Promise.all(wishes.map((wish) => this.partsOf(wish)));
    const steps = fitting(parts);
    const { response, resent } = await this.connection.txn(together(steps));
    const told = apart(response, steps.length).map((answer, n) =>
      answerOf(answer, parts[n]!, response.header.revision, resent),
    );
    const asked = told.flatMap((one, n) => ('status' in one ? [] : [n]));
    if (asked.length === 0) return told as WriteAnswer[];
    const next = await Promise.all(asked.map((n) => this.learn(wishes[n]!, told[n] as Asked)));
    const again = await inParts(next, (rest) => this.writeSome(rest));
    asked.forEach((n, place) => (told[n] = again[place]!));
    return told as WriteAnswer[];
  }

  /** What a write needs to know before it is sent again: the answer told it. */
  private async learn({ write, known, rounds }: Wish, { ask, lease }: Asked): Promise<Wish> {
    if (rounds === MAX_ROUNDS) throw new Error(RESTLESS);
    const again = { write, rounds: rounds + 1 };
    if (ask === 'presence') return { ...again, known: { ...known, present: !known.present } };
    const { grantedTTL } = await this.connection.timeToLive(lease);
    const fenceLease = await this.fenceLease(Math.max(0, Number(grantedTTL)) * 1_000);
    return { ...again, known: { ...known, fenceLease, outlived: lease } };
  }

  private async partsOf({ write, known }: Wish): Promise<WriteParts> {
    const { names } = this.connection;
    const { key, value, ttl } = write;
    const lives = typeof ttl === 'number' && value !== null;
    const [lease, fenceLease] = await Promise.all([
      value === null ? this.fences.lease(FENCE_KEPT_MS) : lives ? this.ttls.lease(ttl) : FOREVER,
      lives ? this.fenceLease(ttl) : known.fenceLease,
    ]);
    return {
      ...{ entry: names.entry(key), fence: names.fence(key), deletion: names.deletion(key) },
      ...{ ...known, write, lease, fenceLease },
    };
  }

  /** Few different lengths, so that few leases serve all fences. */
  private fenceLease(ttlMs: number): Promise<string> {
    let ms = FENCE_KEPT_MS;
    while (ms < ttlMs + FENCE_KEPT_MS) ms *= 2;
    return this.fences.lease(ms);
  }
}

function answerOf(answer: Answer, parts: WriteParts, revision: string, resent: boolean): WriteAnswer | Asked {
  let at = answer;
  for (const stage of stagesOf(parts.write)) {
    const [kv] = found(at.responses[0]);
    if (stage === 'decided') {
      if (at.succeeded) return { status: 'written', version: revision };
      return { status: 'conflict', version: kv?.mod_revision ?? null, ...(resent ? { resent } : undefined) };
    }
    if (at.succeeded) {
      if (stage === 'again') return { status: 'written', version: kv!.mod_revision };
      if (stage === 'fenced') return { status: 'fenced', token: tokenOf(kv!.value) };
      return { ask: stage, lease: kv?.lease ?? FOREVER };
    }
    at = at.responses[0]!.response_txn;
  }
  return { status: 'failed', cause: new Error('etcd answered a write in no way that is known') };
}

/** The steps of the first writes, as many as the server takes in one request. */
function fitting(parts: readonly WriteParts[]): readonly Step[] {
  const steps: Step[] = [];
  let bytes = 0;
  for (const each of parts) {
    const step = writeStep(each);
    bytes += bytesOf(step);
    if (bytes > MAX_REQUEST_BYTES && steps.length > 0) break;
    steps.push(step);
  }
  return steps;
}

/** Sends what is left until nothing is: each call answers to as many as it took, and to one at least. */
async function inParts<I, A>(
  items: readonly I[],
  send: (rest: readonly I[]) => Promise<readonly A[]>,
): Promise<A[]> {
  const answers: A[] = [];
  while (answers.length < items.length) answers.push(...(await send(items.slice(answers.length))));
  return answers;
}
