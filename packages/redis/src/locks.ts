/**
 * `redisLocks`: locks on one Redis, behind Sentinel, or on a Cluster. Every verb is one script, atomic on the server
 * that owns the lock and safe to send again; time, tokens and the queue are the server's own. What this file adds is
 * the translation between the port and the scripts.
 */
import {
  type Claim,
  type ClaimAnswer,
  type Holder,
  type LockBackend,
  type LockInfo,
  type LockQuery,
  type LockTraits,
  type Notice,
  type Release,
  type ReleaseAnswer,
  type Renewal,
  type RenewAnswer,
  type Subscription,
  parseDuration,
  type Duration,
} from '@guard/core';
import { compareBytes } from './byte-order.js';
import { escapeGlob, type RedisConnection } from './connection.js';
import { CHANNEL_PREFIX, isRecord, keyOf, lockNames, recordStart, tombstoneName } from './names.js';
import { ACQUIRE } from './scripts/acquire.lua.js';
import { INSPECT } from './scripts/inspect.lua.js';
import { RELEASE } from './scripts/release.lua.js';
import { RENEW } from './scripts/renew.lua.js';
import { slotOf } from './slot.js';

/** Options of `redisLocks`. */
export interface RedisLocksOptions {
  /**
   * How long a lock that was given back keeps its last token, so that tokens grow even when the server's clock steps
   * back (S2). Each lock that was used within this time costs one small key. Default 10 minutes.
   */
  readonly keepToken?: Duration;
}

const MAX_BATCH = 64;
const DEFAULT_KEEP: Duration = '10m';

/**
 * A lock backend on Redis.
 *
 * @throws GuardError `invalid-argument`: an option that is not valid.
 */
export function redisLocks(connection: RedisConnection, options: RedisLocksOptions = {}): LockBackend {
  return new RedisLocks(connection, parseDuration('keepToken', options.keepToken ?? DEFAULT_KEEP));
}

class RedisLocks implements LockBackend {
  readonly name: string;
  readonly traits: LockTraits;
  readonly partition?: (key: string) => string;
  private readonly open = new Set<Subscription>();

  constructor(
    private readonly connection: RedisConnection,
    private readonly keepMs: number,
  ) {
    this.name = `redis://${connection.place}`;
    this.traits = {
      fifo: true,
      push: true,
      floor: true,
      minTtlMs: 200,
      ttlGranularityMs: 1,
      maxBatch: MAX_BATCH,
    };
    // In a cluster a script can touch one slot only, and a dead master harms only its own locks.
    if (connection.cluster) this.partition = (key) => String(slotOf(lockNames(key).record));
  }

  async acquire(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    const keys: string[] = [];
    const args: (string | number)[] = [this.keepMs, CHANNEL_PREFIX];
    for (const claim of claims) {
      const names = lockNames(claim.key);
      keys.push(names.record, names.queue, names.tickets, tombstoneName(names, claim.id));
      args.push(claim.id, claim.ttlMs, claim.wait ? 1 : 0, claim.ticketTtlMs, claim.session);
      args.push(digits(claim.floor ?? 0n), JSON.stringify(claim.holder));
    }
    return (await this.run<unknown>(ACQUIRE, keys, args)).map(claimAnswer);
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]> {
    const keys: string[] = [];
    const args: (string | number)[] = [this.keepMs, CHANNEL_PREFIX];
    for (const { key, claim, token, ttlMs } of renewals) {
      const names = lockNames(key);
      keys.push(names.record, names.queue, names.tickets);
      args.push(claim, digits(token), ttlMs);
    }
    const answers = await this.run(RENEW, keys, args);
    return answers.map((answer) => ({ status: answer === 1 ? 'renewed' : 'lost' }));
  }

  async release(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    const keys: string[] = [];
    const args: (string | number)[] = [this.keepMs, CHANNEL_PREFIX];
    for (const release of releases) {
      const names = lockNames(release.key);
      keys.push(names.record, names.queue, names.tickets, tombstoneName(names, release.claim));
      if (release.cancel) args.push(release.claim, '', release.tombstoneMs);
      else args.push(release.claim, digits(release.token), 0);
    }
    const breaks = this.connection.breaks;
    const answers = await this.run(RELEASE, keys, args);
    // The client may have sent it twice by itself; then "lost" may be the echo of our own release.
    const resent = this.connection.breaks !== breaks;
    return answers.map((answer) => {
      if (answer === 1) return { status: 'released' };
      return resent ? { status: 'lost', resent } : { status: 'lost' };
    });
  }

  async inspect(query: LockQuery): Promise<readonly LockInfo[]> {
    return 'keys' in query ? this.inspectKeys(query.keys) : this.inspectBelow(query);
  }

  private async inspectKeys(queried: readonly string[]): Promise<readonly LockInfo[]> {
    const groups = this.grouped(queried);
    const found = new Map<string, LockInfo>();
    for (const group of groups) {
      const names = group.map(lockNames);
      const keys = names.flatMap(({ record, queue, tickets }) => [record, queue, tickets]);
      const answers = await this.run<InspectAnswer>(INSPECT, keys, [this.keepMs, CHANNEL_PREFIX]);
      group.forEach((key, index) => found.set(key, infoOf(key, answers[index]!)));
    }
    return queried.map((key) => found.get(key)!);
  }

  /** Walks all keys of the server: nothing that locks do needs a list, so none is kept for it. */
  private async inspectBelow(
    query: Exclude<LockQuery, { readonly keys: readonly string[] }>,
  ): Promise<readonly LockInfo[]> {
    const { after = '', limit } = query;
    const names = await this.connection.scan(`${escapeGlob(recordStart(query.prefix))}*`);
    const keys = names.filter(isRecord).map(keyOf);
    keys.sort(compareBytes);
    const wanted = keys.filter((key) => compareBytes(key, after) > 0);
    const held: LockInfo[] = [];
    for (let at = 0; at < wanted.length && held.length < limit; at += MAX_BATCH) {
      const infos = await this.inspectKeys(wanted.slice(at, at + MAX_BATCH));
      held.push(...infos.filter((info) => info.held));
    }
    return held.slice(0, limit);
  }

  async subscribe(session: string, onNotice: (notice: Notice) => void): Promise<Subscription> {
    const channel = await this.connection.subscribe(
      CHANNEL_PREFIX + session,
      (message) => {
        const notice = noticeOf(message);
        if (notice !== undefined) onNotice(notice);
      },
      (open) => onNotice({ type: 'gap', open }),
    );
    const subscription: Subscription = {
      close: async () => {
        this.open.delete(subscription);
        await channel.close();
      },
    };
    this.open.add(subscription);
    return subscription;
  }

  async close(): Promise<void> {
    await Promise.all([...this.open].map((subscription) => subscription.close()));
  }

  private async run<T = number>(
    script: typeof ACQUIRE,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<readonly T[]> {
    return (await this.connection.run(script, keys, args)) as readonly T[];
  }

  /** Keys of one script share a slot; without a cluster, a batch is a batch. */
  private grouped(keys: readonly string[]): readonly (readonly string[])[] {
    const unique = [...new Set(keys)];
    if (this.connection.cluster) return unique.map((key) => [key]);
    const groups: string[][] = [];
    for (let at = 0; at < unique.length; at += MAX_BATCH) groups.push(unique.slice(at, at + MAX_BATCH));
    return groups;
  }
}

type InspectAnswer = readonly [string, number, number, string, string, string, number];

function claimAnswer(answer: unknown): ClaimAnswer {
  const [status, first, second, third] = answer as readonly [string, ...unknown[]];
  switch (status) {
    case 'g':
      return { status: 'granted', token: BigInt(first as string) };
    case 'q':
      return { status: 'queued', ahead: Number(first), minted: BigInt(second as string), fresh: third === 1 };
    case 'b':
      return { status: 'busy', holder: JSON.parse(first as string) as Holder, expiresInMs: Number(second) };
    case 'c':
      return { status: 'cancelled' };
    default:
      return { status: 'failed', cause: new Error(`Redis answered ${JSON.stringify(answer)} to an acquire`) };
  }
}

function infoOf(key: string, answer: InspectAnswer): LockInfo {
  const [token, held, expiresInMs, session, claim, holder, waiting] = answer;
  if (held !== 1) return { key, held: false, token: BigInt(token), waiting: 0 };
  return {
    key,
    held: true,
    token: BigInt(token),
    expiresInMs,
    waiting,
    holder: JSON.parse(holder) as Holder,
    lease: { key, claim, token: BigInt(token), session },
  };
}

/** `g|token|claim|record`. Whatever else comes on the channel is not ours. */
function noticeOf(message: string): Notice | undefined {
  const [type, token, claim, ...record] = message.split('|');
  if (type !== 'g' || token === undefined || claim === undefined || !/^\d{19}$/.test(token)) return undefined;
  return { type: 'granted', key: keyOf(record.join('|')), claim, token: BigInt(token) };
}

/** Tokens as the scripts write them: 19 digits, so that texts compare like numbers. */
function digits(token: bigint): string {
  return token.toString().padStart(19, '0');
}
