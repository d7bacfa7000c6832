/**
 * What the backend really did with every lock. After each operation the backend is asked who holds the key, at the
 * same instant, so that this book knows every grant without a second implementation of the backend; and each entry
 * must follow from the one before it by the operation that lies between them.
 */
import type { Claim, ClaimAnswer, LockInfo, Release, ReleaseAnswer, Renewal, RenewAnswer } from '@guard/core';
import type { Stage } from '../stage.js';

/** An operation that the backend carried out, with its answer. */
export type Executed =
  | { readonly verb: 'acquire'; readonly op: Claim; readonly answer: ClaimAnswer }
  | { readonly verb: 'renew'; readonly op: Renewal; readonly answer: RenewAnswer }
  | { readonly verb: 'release'; readonly op: Release; readonly answer: ReleaseAnswer };

/** A grant as the book knows it. */
export interface KnownGrant {
  readonly claim: string;
  readonly token: bigint;
  /** On the backend's clock; up to a millisecond late, because that is how exactly a backend tells it. */
  readonly untilMs: number;
}

const TOLD_MS = 1;

/** All grants of one simulation. */
export class Grants {
  readonly #stage: Stage;
  readonly #serverMs: () => number;
  readonly #known = new Map<string, KnownGrant>();
  readonly #largest = new Map<string, bigint>();
  readonly #tombstones = new Map<string, number>();
  /** Grants that the backend forgot: their holders may believe in them for a while [S1-assumption]. */
  readonly #forgotten = new Set<string>();

  /** `serverMs`: the backend's monotonic time. */
  constructor(stage: Stage, serverMs: () => number) {
    this.#stage = stage;
    this.#serverMs = serverMs;
  }

  /** Whether the backend keeps this very grant now, or is excused for having forgotten it. */
  keeps(key: string, token: bigint): boolean {
    const known = this.#known.get(key);
    if (known?.token === token && known.untilMs > this.#serverMs()) return true;
    return this.#forgotten.has(`${key}#${token}`);
  }

  /** Whether the backend keeps this very grant for sure. */
  surelyKeeps(key: string, token: bigint): boolean {
    const known = this.#known.get(key);
    return known?.token === token && known.untilMs - TOLD_MS > this.#serverMs();
  }

  wasForgotten(key: string, token: bigint): boolean {
    return this.#forgotten.has(`${key}#${token}`);
  }

  /** The backend forgets everything. */
  forget(): void {
    for (const [key, { token }] of this.#known) this.#forgotten.add(`${key}#${token}`);
    this.#known.clear();
    this.#tombstones.clear();
  }

  /** Books an operation. `info`: what the backend says about the key right after it. Answers a new holder's claim. */
  executed(done: Executed, info: LockInfo): string | undefined {
    const { key } = done.op;
    const before = this.#known.get(key);
    const after = this.#grantOf(info);
    this.#checkChange(done, before, after);
    this.#checkAnswer(done, after, before);
    if (after === undefined) this.#known.delete(key);
    else this.#known.set(key, after);
    if (after === undefined || (before?.claim === after.claim && before.token === after.token))
      return undefined;
    const largest = this.#largest.get(key) ?? 0n;
    if (after.token > largest) this.#largest.set(key, after.token);
    return after.claim;
  }

  #grantOf({ lease, expiresInMs = 0 }: LockInfo): KnownGrant | undefined {
    if (lease === undefined) return undefined;
    return { claim: lease.claim, token: lease.token, untilMs: this.#serverMs() + expiresInMs };
  }

  #checkChange(done: Executed, before: KnownGrant | undefined, after: KnownGrant | undefined): void {
    const nowMs = this.#serverMs();
    const { key } = done.op;
    if (before !== undefined && after?.claim === before.claim && after.token === before.token) {
      if (before.untilMs <= nowMs)
        this.#broken('S5', `${key}: an expired lease was revived by ${show(done)}`);
      if (after.untilMs < before.untilMs - TOLD_MS)
        this.#broken('S5', `${key}: the lease was shortened by ${before.untilMs - after.untilMs} ms`);
      return;
    }
    if (before !== undefined && before.untilMs - TOLD_MS > nowMs && !ends(done, before, after)) {
      this.#broken('S3', `${key}: ${show(done)} took the lock from ${before.claim} (token ${before.token})`);
    }
    const largest = this.#largest.get(key) ?? 0n;
    if (after === undefined || after.token > largest) return;
    if (this.#stage.plan.beyondAssumptions) this.#stage.journal.count('a token went back');
    else this.#broken('S2', `${key}: token ${after.token} was granted after ${largest}`);
  }

  #checkAnswer(done: Executed, after: KnownGrant | undefined, before: KnownGrant | undefined): void {
    switch (done.verb) {
      case 'acquire':
        return this.#checkAcquire(done.op, done.answer, after);
      case 'renew':
        return this.#checkRenew(done.op, done.answer, after);
      case 'release':
        return this.#checkRelease(done.op, done.answer, before);
    }
  }

  #checkAcquire(claim: Claim, answer: ClaimAnswer, after: KnownGrant | undefined): void {
    const { key } = claim;
    const buried = (this.#tombstones.get(claim.id) ?? 0) > this.#serverMs();
    if (buried !== (answer.status === 'cancelled'))
      this.#broken('S4', `${key}: ${answer.status} for a claim that ${buried ? 'was' : 'was not'} given up`);
    if (answer.status === 'granted') {
      if (after?.claim !== claim.id || after.token !== answer.token)
        this.#broken('S6', `${key}: "granted" to ${claim.id}, which does not hold the lock`);
      else this.#checkLength('S1', key, after, claim.ttlMs);
    }
    if ((answer.status === 'busy' || answer.status === 'queued') && (!after || after.claim === claim.id))
      this.#broken('S6', `${key}: "${answer.status}" to ${claim.id}, and nobody else holds the lock`);
    const { beyondAssumptions } = this.#stage.plan;
    if (answer.status === 'queued' && !beyondAssumptions && answer.minted < (this.#largest.get(key) ?? 0n))
      this.#broken('S2', `${key}: a ticket is told ${answer.minted}, below ${this.#largest.get(key)}`);
  }

  #checkRenew(renewal: Renewal, { status }: RenewAnswer, after: KnownGrant | undefined): void {
    const { key, claim, token } = renewal;
    const own = after?.claim === claim && after.token === token;
    if (status === 'renewed' && !own)
      this.#broken('S3', `${key}: "renewed" to ${claim}, which does not hold it`);
    if (status === 'lost' && own) this.#broken('S6', `${key}: "lost" to ${claim}, which holds it`);
    if (status === 'renewed' && own) this.#checkLength('S1', key, after, renewal.ttlMs);
  }

  #checkRelease(release: Release, { status }: ReleaseAnswer, before: KnownGrant | undefined): void {
    const { key } = release;
    const surelyHeld = before !== undefined && before.untilMs - TOLD_MS > this.#serverMs();
    const own = before?.claim === release.claim && (release.cancel || before.token === release.token);
    if (status === 'lost' && own && surelyHeld)
      this.#broken('S6', `${key}: "lost" to ${release.claim}, which holds the lock`);
    if (!release.cancel && status === 'released' && !own)
      this.#broken('S3', `${key}: "released" to ${release.claim}, which does not hold the lock`);
    if (!release.cancel || release.tombstoneMs === 0 || status === 'failed') return;
    const untilMs = this.#serverMs() + release.tombstoneMs;
    this.#tombstones.set(release.claim, Math.max(untilMs, this.#tombstones.get(release.claim) ?? 0));
  }

  /** "In this very step the backend set the lease to at least its now + ttl." */
  #checkLength(promise: 'S1', key: string, grant: KnownGrant, ttlMs: number): void {
    const shortMs = this.#serverMs() + ttlMs - grant.untilMs;
    if (shortMs > 0.001) this.#broken(promise, `${key}: an answered lease is ${shortMs} ms short`);
  }

  #broken(promise: 'S1' | 'S2' | 'S3' | 'S4' | 'S5' | 'S6', message: string): void {
    this.#stage.journal.broken(promise, `the backend: ${message}`);
  }
}

/** Whether the operation is its holder's own end of this grant, or raises the token of its claim to a floor. */
function ends({ verb, op }: Executed, grant: KnownGrant, after: KnownGrant | undefined): boolean {
  if (verb === 'release') return op.claim === grant.claim && (op.cancel === true || op.token === grant.token);
  return verb === 'acquire' && op.id === grant.claim && after?.claim === op.id && after.token === op.floor;
}

/** An operation in a few words. */
export function show({ verb, op, answer }: Executed): string {
  const claim = verb === 'acquire' ? op.id : op.claim;
  const kind = verb === 'release' && op.cancel ? 'cancel' : verb;
  const token = answer.status === 'granted' ? ` ${answer.token}` : '';
  return `${kind} ${op.key} by ${claim}: ${answer.status}${token}`;
}
