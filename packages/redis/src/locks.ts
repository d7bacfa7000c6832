/**
 * `redisLocks`: locks on one Redis, behind Sentinel, or on a Cluster. Every verb is one script, atomic on the server
 * that owns the lock and safe to send again; time, tokens and the queue are the server's own. What this file adds is
 * the translation between the port and the scripts.
 */
import {
  checkOptions,
  invalidArgument,
  parseDuration,
  type Claim,
  type ClaimAnswer,
  type Duration,
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
} from '@guard/core';
import { claimAnswer, digits, infoOf, noticeOf, type InspectAnswer } from './answers.js';
import { compareBytes } from './byte-order.js';
import { checkConnection, type Acks, type RedisConnection, type ScriptReply } from './connection.js';
import { CHANNEL_PREFIX, claimKeys, keyOf, lockKeys, recordPattern } from './names.js';
import { ACQUIRE } from './scripts/acquire.lua.js';
import { INSPECT } from './scripts/inspect.lua.js';
import { RELEASE } from './scripts/release.lua.js';
import { RENEW } from './scripts/renew.lua.js';
import { tagOf } from './slot.js';
import { Unconfirmed } from './unconfirmed.js';

/** Options of `redisLocks`. */
export interface RedisLocksOptions {
  /**
   * How long a lock that was given back keeps its last token, so that tokens grow even when the server's clock steps
   * back (S2). Each lock that was used within this time costs one small key. Default 10 minutes.
   */
  readonly keepToken?: Duration;
  /**
   * Grants and renewals count only once so many replicas have them, so that a fail-over to one of these replicas loses
   * none (S1). Where they do not confirm in time, a grant is undone and the claim is told why (`unavailable`). Default:
   * none; the server's own word counts.
   */
  readonly acks?: RedisAcks;
}

/** How many replicas have to confirm. */
export interface RedisAcks {
  /** At least 1. More than there are: nothing is ever granted. */
  readonly replicas: number;
  /**
   * How long they are waited for, at most. Other commands on the same connection wait as long, so a client of its own
   * is best. Default 500 ms.
   */
  readonly timeoutMs?: Duration;
}

const MAX_BATCH = 64;
/** A script of so many renewals takes the server some two milliseconds. */
const MAX_RENEW = 256;
const DEFAULT_KEEP: Duration = '10m';
const DEFAULT_ACKS_MS = 500;

/**
 * A lock backend on Redis.
 *
 * @throws GuardError `invalid-argument`: not a connection, such as a client that was not wrapped; or an option that is
 * not valid.
 */
export function redisLocks(connection: RedisConnection, options: RedisLocksOptions = {}): LockBackend {
  checkConnection('redisLocks', connection);
  checkOptions('redisLocks', options, ['keepToken', 'acks']);
  const keepMs = parseDuration('keepToken', options.keepToken ?? DEFAULT_KEEP);
  return new RedisLocks(connection, keepMs, checkedAcks(options.acks));
}

function checkedAcks(acks: RedisAcks | undefined): Acks | undefined {
  if (acks === undefined) return undefined;
  checkOptions('acks', acks, ['replicas', 'timeoutMs']);
  const { replicas, timeoutMs = DEFAULT_ACKS_MS } = acks;
  if (!Number.isSafeInteger(replicas) || replicas < 1) {
    throw invalidArgument('acks.replicas', replicas, 'must be a whole number from 1 on');
  }
  return { replicas, timeoutMs: parseDuration('acks.timeoutMs', timeoutMs) };
}

class RedisLocks implements LockBackend {
  readonly name: string;
  readonly traits: LockTraits = {
    fifo: true,
    push: true,
    floor: true,
    minTtlMs: 200,
    ttlGranularityMs: 1,
    maxBatch: MAX_BATCH,
    maxRenew: MAX_RENEW,
  };
  readonly partition?: (key: string) => string;
  private readonly open = new Set<Subscription>();

  constructor(
    private readonly connection: RedisConnection,
    private readonly keepMs: number,
    private readonly acks: Acks | undefined,
  ) {
    this.name = `redis://${connection.place}`;
    // In a cluster a script can touch one slot only, and a dead master harms only its own locks.
    if (connection.cluster) this.partition = tagOf;
  }

  async acquire(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    const keys = claimKeys(claims.map(({ key, id }) => ({ key, claim: id })));
    const args: (string | number)[] = [this.keepMs, CHANNEL_PREFIX];
    for (const claim of claims) {
      args.push(claim.id, claim.ttlMs, claim.wait ? 1 : 0, claim.ticketTtlMs, claim.session);
      args.push(digits(claim.floor ?? 0n), JSON.stringify(claim.holder));
    }
    const reply = await this.connection.run(ACQUIRE, keys, args, this.acks);
    const answers = (reply.value as readonly unknown[]).map(claimAnswer);
    const why = this.unconfirmed(reply);
    return why === undefined ? answers : why.undone(claims, answers, (taken) => this.release(taken));
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]> {
    const keys = lockKeys(renewals.map(({ key }) => key));
    const args: (string | number)[] = [this.keepMs, CHANNEL_PREFIX];
    for (const { claim, token, ttlMs } of renewals) args.push(claim, digits(token), ttlMs);
    const reply = await this.connection.run(RENEW, keys, args, this.acks);
    const why = this.unconfirmed(reply);
    return (reply.value as readonly unknown[]).map((answer) => {
      if (Number(answer) !== 1) return { status: 'lost' };
      // Not confirmed: it may or may not outlive a fail-over, so it is asked for again until the lease is over.
      return why === undefined ? { status: 'renewed' } : why.answer();
    });
  }

  async release(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    const keys = claimKeys(releases);
    const args: (string | number)[] = [this.keepMs, CHANNEL_PREFIX];
    for (const release of releases) {
      if (release.cancel) args.push(release.claim, '', release.tombstoneMs);
      else args.push(release.claim, digits(release.token), 0);
    }
    const { value, resent } = await this.connection.run(RELEASE, keys, args);
    return (value as readonly unknown[]).map((answer) => {
      if (Number(answer) === 1) return { status: 'released' };
      // The client may have sent it twice by itself; then "lost" may be the echo of our own release.
      return resent ? { status: 'lost', resent } : { status: 'lost' };
    });
  }

  async inspect(query: LockQuery): Promise<readonly LockInfo[]> {
    return 'keys' in query ? this.inspectKeys(query.keys) : this.inspectBelow(query);
  }

  private async inspectKeys(queried: readonly string[]): Promise<readonly LockInfo[]> {
    const found = new Map<string, LockInfo>();
    const ask = async (group: readonly string[]): Promise<void> => {
      const { value } = await this.connection.run(INSPECT, lockKeys(group), [this.keepMs, CHANNEL_PREFIX]);
      const answers = value as readonly InspectAnswer[];
      group.forEach((key, index) => found.set(key, infoOf(key, answers[index]!)));
    };
    await Promise.all(this.grouped(queried).map(ask));
    return queried.map((key) => found.get(key)!);
  }

  /** Walks all keys of the server: nothing that locks do needs a list, so none is kept for it. */
  private async inspectBelow(
    query: Exclude<LockQuery, { readonly keys: readonly string[] }>,
  ): Promise<readonly LockInfo[]> {
    const { prefix, after = '', limit } = query;
    const names = await this.connection.scan(recordPattern(prefix));
    const keys = names.map(keyOf).filter((key) => key !== undefined && key.startsWith(prefix)) as string[];
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
        if (notice === undefined) return;
        // No replica has confirmed the hand-over yet: the claim asks for its lock, and that answer waits for them.
        onNotice(this.acks === undefined ? notice : { type: 'gap', open: true });
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

  private unconfirmed({ acks: confirmed }: ScriptReply): Unconfirmed | undefined {
    if (this.acks === undefined || confirmed >= this.acks.replicas) return undefined;
    return new Unconfirmed(this.acks, confirmed);
  }

  /** Keys of one script share a slot; without a cluster, a batch is a batch. */
  private grouped(keys: readonly string[]): readonly (readonly string[])[] {
    const groups = new Map<string, string[]>();
    for (const key of new Set(keys)) {
      const name = this.partition?.(key) ?? '';
      const group = groups.get(name) ?? [];
      groups.set(name, group);
      group.push(key);
    }
    return [...groups.values()].flatMap((group) => {
      const pieces: string[][] = [];
      for (let at = 0; at < group.length; at += MAX_BATCH) pieces.push(group.slice(at, at + MAX_BATCH));
      return pieces;
    });
  }
}
