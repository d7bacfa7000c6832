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
import { claimAnswers, digits, infosOf, noticeOf, NO_FLOOR, yesOrNo } from './answers.js';
import { compareBytes } from './byte-order.js';
import { checkConnection, type Acks, type RedisConnection, type ScriptReply } from './connection.js';
import { HolderTexts, padded, proofOf, whatOf } from './lock-fields.js';
import {
  CHANNEL_PREFIX,
  keyOf,
  recordField,
  recordPattern,
  SERVER_SCOPES,
  TAG_SCOPES,
  type LockScopes,
} from './names.js';
import { ACQUIRE } from './scripts/acquire.lua.js';
import { INSPECT } from './scripts/inspect.lua.js';
import { RELEASE } from './scripts/release.lua.js';
import { RENEW } from './scripts/renew.lua.js';
import type { Script } from './scripts/script.js';
import { tagOf } from './slot.js';
import { grantsOf, Unconfirmed, UndoneTokens } from './unconfirmed.js';
import { Subscriptions } from './subscriptions.js';

/** Options of `redisLocks`. */
export interface RedisLocksOptions {
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
const DEFAULT_ACKS_MS = 500;
const MAX_ACKS_MS = 60_000;
const MAX_REPLICAS = 1_000;

/**
 * A lock backend on Redis.
 *
 * @throws GuardError `invalid-argument`: not a connection, such as a client that was not wrapped; or an option that is
 * not valid.
 */
export function redisLocks(connection: RedisConnection, options: RedisLocksOptions = {}): LockBackend {
  checkConnection('redisLocks', connection);
  checkOptions('redisLocks', options, ['acks']);
  return new RedisLocks(connection, checkedAcks(options.acks));
}

function checkedAcks(acks: RedisAcks | undefined): Acks | undefined {
  if (acks === undefined) return undefined;
  checkOptions('acks', acks, ['replicas', 'timeoutMs']);
  const { replicas, timeoutMs = DEFAULT_ACKS_MS } = acks;
  if (!Number.isSafeInteger(replicas) || replicas < 1 || replicas > MAX_REPLICAS) {
    throw invalidArgument('acks.replicas', replicas, `must be a whole number from 1 to ${MAX_REPLICAS}`);
  }
  const waitMs = parseDuration('acks.timeoutMs', timeoutMs);
  // Whatever else is on the connection waits as long.
  if (waitMs > MAX_ACKS_MS) throw invalidArgument('acks.timeoutMs', timeoutMs, 'must be at most a minute');
  return { replicas, timeoutMs: waitMs };
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
  private readonly scopes: LockScopes;
  private readonly holders = new HolderTexts();
  private readonly undone = new UndoneTokens();
  private readonly subscriptions: Subscriptions;

  constructor(
    private readonly connection: RedisConnection,
    private readonly acks: Acks | undefined,
  ) {
    this.name = `redis://${connection.place}`;
    this.subscriptions = new Subscriptions(connection);
    // In a cluster a script can touch one slot only, and a dead master harms only its own locks.
    if (connection.cluster) this.partition = tagOf;
    this.scopes = connection.cluster ? TAG_SCOPES : SERVER_SCOPES;
  }

  async acquire(wanted: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    const claims = this.undone.above(wanted);
    const reply = claims.length === 1 ? await this.acquireOne(claims[0]!) : await this.acquireMany(claims);
    const answers = claimAnswers(reply.value, claims.length);
    this.subscriptions.noteQueued(claims, answers);
    return this.acks === undefined ? answers : this.confirmed(reply, claims, answers);
  }

  private async confirmed(
    reply: ScriptReply,
    claims: readonly Claim[],
    answers: readonly ClaimAnswer[],
  ): Promise<readonly ClaimAnswer[]> {
    const granted = grantsOf(claims, answers);
    const why = this.unconfirmed(reply);
    if (why === undefined) {
      this.undone.forget(granted);
      return answers;
    }
    this.undone.add(granted);
    return why.undone(granted, answers, (taken) => this.giveBack(taken));
  }

  private acquireOne(claim: Claim): Promise<ScriptReply> {
    const { lone } = ACQUIRE;
    return this.connection.run(
      lone,
      this.scopes.lone(claim.key),
      [claim.ttlMs, this.terms(claim)],
      this.acks,
    );
  }

  private acquireMany(claims: readonly Claim[]): Promise<ScriptReply> {
    let fields = '';
    for (const claim of claims) fields += `${recordField(claim.key)}\0${claim.ttlMs}\0${this.terms(claim)}\0`;
    return this.run(ACQUIRE.many, claims, fields, this.acks);
  }

  private terms({ id, wait, ticketTtlMs, session, floor, holder }: Claim): string {
    const least = floor === undefined ? NO_FLOOR : digits(floor);
    return `${least}${wait ? 1 : 0}${padded(ticketTtlMs)}${session}|${id}|${this.holders.of(holder)}`;
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]> {
    let fields = '';
    for (const renewal of renewals)
      fields += `${recordField(renewal.key)}\0${renewal.ttlMs}\0${proofOf(renewal)}\0`;
    const reply = await this.run(RENEW, renewals, fields, this.acks);
    // Not confirmed: it may or may not outlive a fail-over, so it is asked for again until the lease is over.
    const renewed = this.unconfirmed(reply)?.answer() ?? RENEWED;
    return yesOrNo('a renewal', reply.value, renewals.length, renewed, LOST);
  }

  async release(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    this.undone.forget(releases);
    return this.giveBack(releases);
  }

  private async giveBack(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    const { value, resent } =
      releases.length === 1 ? await this.releaseOne(releases[0]!) : await this.releaseMany(releases);
    // The client may have sent it twice by itself; then "lost" may be the echo of our own release.
    const lost = resent ? LOST_OR_ECHO : LOST;
    return yesOrNo<ReleaseAnswer>('a release', value, releases.length, RELEASED, lost);
  }

  private releaseOne(release: Release): Promise<ScriptReply> {
    return this.connection.run(RELEASE.lone, this.scopes.lone(release.key), [whatOf(release)]);
  }

  private releaseMany(releases: readonly Release[]): Promise<ScriptReply> {
    let fields = '';
    for (const release of releases) fields += `${recordField(release.key)}\0${whatOf(release)}\0`;
    return this.run(RELEASE.many, releases, fields);
  }

  async inspect(query: LockQuery): Promise<readonly LockInfo[]> {
    return 'keys' in query ? this.inspectKeys(query.keys) : this.inspectBelow(query);
  }

  private async inspectKeys(queried: readonly string[]): Promise<readonly LockInfo[]> {
    const found = new Map<string, LockInfo>();
    const ask = async (group: readonly string[]): Promise<void> => {
      const fields = group.map((key) => `${recordField(key)}\0`).join('');
      const locks = group.map((key) => ({ key }));
      const { value } = await this.run(INSPECT, locks, fields);
      for (const info of infosOf(group, value)) found.set(info.key, info);
    };
    await Promise.all(this.grouped(queried).map(ask));
    return queried.map((key) => found.get(key)!);
  }

  /** Walks all keys of the server: nothing that locks do needs a list, so none is kept for it. */
  private async inspectBelow(
    query: Exclude<LockQuery, { readonly keys: readonly string[] }>,
  ): Promise<readonly LockInfo[]> {
    const { prefix, after = '', limit } = query;
    // While its slot moves, two masters of a cluster may name a lock.
    const names = [...new Set(await this.connection.scan(recordPattern(prefix)))];
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

  subscribe(session: string, onNotice: (notice: Notice) => void): Promise<Subscription> {
    return this.subscriptions.add(
      CHANNEL_PREFIX + session,
      (message) => {
        const grant = noticeOf(message);
        if (grant === undefined) return;
        const { key, claim } = grant;
        // No replica has confirmed the hand-over yet: the claim asks for its lock, and that answer waits for them.
        onNotice(this.acks === undefined ? grant : { type: 'turn', key, claim });
      },
      (open) => onNotice({ type: 'gap', open }),
    );
  }

  close(): Promise<void> {
    return this.subscriptions.close();
  }

  private run(
    script: Script,
    locks: readonly { readonly key: string }[],
    fields: string,
    acks?: Acks,
  ): Promise<ScriptReply> {
    const { keys, behindGuard } = this.scopes.many(locks);
    return this.connection.run(script, keys, [behindGuard, fields], acks);
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

const RENEWED: RenewAnswer = { status: 'renewed' };
const RELEASED: ReleaseAnswer = { status: 'released' };
const LOST = { status: 'lost' } as const;
const LOST_OR_ECHO: ReleaseAnswer = { status: 'lost', resent: true };
