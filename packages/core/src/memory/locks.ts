/**
 * Locks of one process, and the executable specification of the lock port: what this file does, every backend does.
 *
 * One decision shaped it: a key has a grant exactly while it is held. A release or an expiry that somebody meets hands
 * the lock to the first live ticket in the same step, or leaves the key free; so a free key has no queue that a
 * newcomer could pass (L2). Its entry stays for the next claim until a sweep removes it: a map that each lock enters
 * and leaves is built anew all the time, and memory still does not grow with the number of keys that were ever used.
 * What must outlive the entries, that tokens grow (S2), is one number for the whole backend.
 */
import type { Clock } from '../port/clock.js';
import type {
  AtOnce,
  Claim,
  ClaimAnswer,
  Granted,
  Holder,
  LeaseRef,
  LockBackend,
  LockInfo,
  LockQuery,
  LockTraits,
  Notice,
  Release,
  ReleaseAnswer,
  Renewal,
  RenewAnswer,
  Subscription,
} from '../port/lock-backend.js';
import { systemClock } from '../runtime/clock.js';
import { FreshMap } from '../value/fresh-map.js';
import type { Instant } from '../value/instant.js';
import { nextToken } from '../value/token.js';
import { compareBytes } from '../value/byte-order.js';
import { checkOptions } from '../value/options.js';
import { Notices } from './notices.js';
import { headCount, refresh, type Ticket } from './tickets.js';
import { Tombstones } from './tombstones.js';

/** Options of the memory lock backend. */
export interface MemoryLocksOptions {
  /** Expiry follows its monotonic time, tokens its wall time. Default: the system's clock. */
  readonly clock?: Clock;
}

/**
 * A lock backend in the memory of this process: exclusion among everything that shares the returned object, and
 * nobody else. Several guards may share one; `close()` frees nothing, because nothing was opened, so one guard that
 * closes leaves the others as they are.
 *
 * @throws GuardError `invalid-argument`: an option that does not exist.
 */
export function memoryLocks(options: MemoryLocksOptions = {}): LockBackend {
  checkOptions('memoryLocks options', options, ['clock']);
  return new MemoryLocks(options.clock ?? systemClock);
}

/** The grant of a held key. Replaced, never revived, when it ends (S5). */
interface Grant {
  readonly claim: string;
  readonly session: string;
  readonly holder: Holder;
  token: bigint;
  /** On the monotonic clock; the lease is live before it. */
  untilMs: number;
}

/** A key that is held, or was lately. */
interface Entry {
  /** `undefined` while the key is free; then nobody waits for it either. */
  grant: Grant | undefined;
  /** By claim id, in the order in which they came. Most keys never have one. */
  queue: FreshMap<string, Ticket> | undefined;
}

type Held = Entry & { grant: Grant };

/** Below this many entries nobody looks for leases that expired unmet, or for keys that nobody uses any more. */
const SWEEP_FROM = 1_024;

const CANCELLED: ClaimAnswer = { status: 'cancelled' };
const RENEWED: RenewAnswer = { status: 'renewed' };
const RELEASED: ReleaseAnswer = { status: 'released' };
const LOST = { status: 'lost' } as const;

class MemoryLocks implements LockBackend {
  readonly name = 'memory';
  readonly traits: LockTraits = {
    fifo: true,
    push: true,
    floor: true,
    // The margin is never below 50 ms: half of the shortest lease is left to work in.
    minTtlMs: 100,
    ttlGranularityMs: 1,
    // About a millisecond of work; a longer batch would keep timers waiting.
    maxBatch: 1_024,
  };

  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #tombstones = new Tombstones();
  readonly #notices = new Notices();
  /** The largest token of any key: it keeps tokens growing over keys whose entry is long gone (S2). */
  #largest = 0n;
  #sweepAt = SWEEP_FROM;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  acquire(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]> {
    const now = this.#clock.now();
    const answers: ClaimAnswer[] = [];
    for (const claim of claims) answers.push(this.#acquire(claim, now));
    return Promise.resolve(answers);
  }

  renew(renewals: readonly Renewal[]): Promise<readonly RenewAnswer[]> {
    const now = this.#clock.now();
    return Promise.resolve(renewals.map((renewal) => this.#renew(renewal, now)));
  }

  release(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    const now = this.#clock.now();
    const answers: ReleaseAnswer[] = [];
    for (const release of releases) answers.push(this.#giveBack(release, now));
    return Promise.resolve(answers);
  }

  atOnce(): AtOnce {
    return {
      acquire: (claim) => this.#acquire(claim, this.#clock.now()),
      release: (release) => this.#giveBack(release, this.#clock.now()),
    };
  }

  inspect(query: LockQuery): Promise<readonly LockInfo[]> {
    const now = this.#clock.now();
    if ('keys' in query) return Promise.resolve(query.keys.map((key) => this.#info(key, now)));
    const { prefix, after, limit } = query;
    const below = [...this.#entries.keys()].filter((key) => key.startsWith(prefix));
    const infos = below
      .filter((key) => after === undefined || compareBytes(key, after) > 0)
      .sort(compareBytes)
      .map((key) => this.#info(key, now));
    return Promise.resolve(infos.filter((info) => info.held).slice(0, limit));
  }

  subscribe(session: string, onNotice: (notice: Notice) => void): Promise<Subscription> {
    return Promise.resolve(this.#notices.open(session, onNotice));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #acquire(claim: Claim, now: Instant): ClaimAnswer {
    if (this.#tombstones.size > 0 && this.#tombstones.covers(claim.id, now.monoMs)) return CANCELLED;
    const held = this.#settle(claim.key, now);
    if (held === undefined) return this.#grantFree(claim, now);
    if (held.grant.claim === claim.id) return this.#grantAgain(held.grant, claim, now);
    return claim.wait ? this.#enqueue(held, claim, now) : this.#refuse(held, claim, now);
  }

  #grantFree(claim: Claim, now: Instant): Granted {
    const grant = this.#mint(claim, claim.ttlMs, now);
    const entry = this.#entries.get(claim.key);
    if (entry === undefined) this.#enter(claim.key, grant, now);
    else entry.grant = grant;
    return { status: 'granted', token: grant.token };
  }

  /** A re-sent acquire. The lease starts anew, but a longer one that `extend` made stays: its holder believes it. */
  #grantAgain(grant: Grant, claim: Claim, now: Instant): Granted {
    grant.untilMs = Math.max(grant.untilMs, now.monoMs + claim.ttlMs);
    if (claim.floor !== undefined && claim.floor > grant.token) {
      grant.token = claim.floor;
      if (claim.floor > this.#largest) this.#largest = claim.floor;
    }
    return { status: 'granted', token: grant.token };
  }

  #enqueue(held: Held, claim: Claim, now: Instant): ClaimAnswer {
    const queue = (held.queue ??= new FreshMap<string, Ticket>());
    const ahead = queue.has(claim.id) ? refresh(queue, claim, now.monoMs) : headCount(queue, now.monoMs);
    const fresh = !queue.has(claim.id);
    if (fresh) queue.set(claim.id, { claim, untilMs: now.monoMs + claim.ticketTtlMs });
    return { status: 'queued', ahead, minted: held.grant.token, fresh };
  }

  #refuse(held: Held, claim: Claim, now: Instant): ClaimAnswer {
    held.queue?.delete(claim.id);
    return { status: 'busy', holder: held.grant.holder, expiresInMs: leftMs(held.grant.untilMs, now) };
  }

  #renew(renewal: Renewal, now: Instant): RenewAnswer {
    const held = this.#settle(renewal.key, now);
    if (held === undefined || !names(renewal, held.grant)) return LOST;
    held.grant.untilMs = Math.max(held.grant.untilMs, now.monoMs + renewal.ttlMs);
    return RENEWED;
  }

  #giveBack(release: Release, now: Instant): ReleaseAnswer {
    return release.cancel ? this.#cancel(release, now) : this.#release(release, now);
  }

  #release(ref: LeaseRef, now: Instant): ReleaseAnswer {
    const held = this.#settle(ref.key, now);
    if (held === undefined || !names(ref, held.grant)) return LOST;
    this.#handOver(ref.key, held, now);
    return RELEASED;
  }

  #cancel(cancel: Extract<Release, { cancel: true }>, now: Instant): ReleaseAnswer {
    const held = this.#settle(cancel.key, now);
    if (cancel.tombstoneMs > 0) {
      this.#tombstones.leave(cancel.claim, now.monoMs + cancel.tombstoneMs, now.monoMs);
    }
    if (held?.grant.claim === cancel.claim) {
      this.#handOver(cancel.key, held, now);
      return RELEASED;
    }
    const hadTicket = held?.queue?.delete(cancel.claim) ?? false;
    return hadTicket || cancel.tombstoneMs > 0 ? RELEASED : LOST;
  }

  #info(key: string, now: Instant): LockInfo {
    const held = this.#settle(key, now);
    if (held === undefined) return { key, held: false, token: this.#largest, waiting: 0 };
    const { claim, session, token, untilMs, holder } = held.grant;
    let waiting = 0;
    for (const ticket of held.queue?.values() ?? []) if (ticket.untilMs > now.monoMs) waiting += 1;
    const lease = { key, claim, token, session };
    return { key, held: true, holder, token, expiresInMs: leftMs(untilMs, now), waiting, lease };
  }

  /** The key's entry with a live lease. Whoever meets an expired lease hands the lock on before anything else. */
  #settle(key: string, now: Instant): Held | undefined {
    const held = this.#entries.get(key);
    if (!isHeld(held)) return undefined;
    if (held.grant.untilMs > now.monoMs) return held;
    this.#notices.send(held.grant.session, { type: 'lost', key, claim: held.grant.claim });
    return this.#handOver(key, held, now);
  }

  /** Makes the first live ticket the holder, for as long as a ticket lives: it shows that it is there by renewing. */
  #handOver(key: string, held: Held, now: Instant): Held | undefined {
    for (const { claim, untilMs } of held.queue?.values() ?? []) {
      held.queue!.delete(claim.id);
      if (untilMs <= now.monoMs) continue;
      held.grant = this.#mint(claim, claim.ticketTtlMs, now);
      const { session, token } = held.grant;
      this.#notices.send(session, { type: 'granted', key, claim: claim.id, token });
      return held;
    }
    (held as Entry).grant = undefined;
    return undefined;
  }

  #mint(claim: Claim, leaseMs: number, now: Instant): Grant {
    this.#largest = nextToken(this.#largest, now.wallMs, claim.floor);
    return {
      claim: claim.id,
      session: claim.session,
      holder: claim.holder,
      token: this.#largest,
      untilMs: now.monoMs + leaseMs,
    };
  }

  #enter(key: string, grant: Grant, now: Instant): void {
    if (this.#entries.size >= this.#sweepAt) this.#sweep(now);
    this.#entries.set(key, { grant, queue: undefined });
  }

  /**
   * Meets the leases that nobody else met, and forgets the keys that are free. Runs when the entries have doubled, so it
   * costs a grant next to nothing.
   */
  #sweep(now: Instant): void {
    for (const key of this.#entries.keys()) {
      if (this.#settle(key, now) === undefined) this.#entries.delete(key);
    }
    this.#sweepAt = Math.max(SWEEP_FROM, this.#entries.size * 2);
  }
}

function isHeld(entry: Entry | undefined): entry is Held {
  return entry?.grant !== undefined;
}

/** A claim can be granted more than once (S5), so its token tells the grants apart. */
function names(ref: LeaseRef, grant: Grant): boolean {
  return ref.claim === grant.claim && ref.token === grant.token;
}

function leftMs(untilMs: number, now: Instant): number {
  return Math.max(0, Math.ceil(untilMs - now.monoMs));
}
