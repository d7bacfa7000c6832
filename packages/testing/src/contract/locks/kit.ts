/**
 * What the cases of a lock backend work with: keys and claims of their own, single operations instead of batches, and
 * times that follow the adapter's smallest ttl and granularity.
 */
import {
  systemRandom,
  type AtOnce,
  type Claim,
  type ClaimAnswer,
  type Clock,
  type LeaseRef,
  type LockBackend,
  type LockInfo,
  type LockTraits,
  type Release,
  type ReleaseAnswer,
  type RenewAnswer,
} from '@guard/core';
import type { VirtualClock } from '../../clock/virtual-clock.js';
import { assert, expectStatus } from '../assert.js';
import { slackMs, type ContractCase, type Profile } from '../runner.js';
import { timelineOf, type Timeline } from '../timeline.js';

/** One place where locks are kept, made for one case. */
export interface LockPlace {
  readonly backend: LockBackend;
  /**
   * A further, independent connection to the same place; for a backend in memory the same object. `clock`: where the
   * adapter has timers of its own, they run on this clock, which can be stopped like a process.
   */
  connect(clock?: Clock): Promise<LockBackend>;
  /** The clock that the place runs on, where that is a virtual one. Default: the real time. */
  readonly clock?: VirtualClock;
  /** Closes the connections, and removes what only the adapter knows how to find. */
  cleanup(): Promise<void>;
}

/** A case about a lock backend. */
export type LockCase = ContractCase<LockKit, LockTraits>;

/** A granted claim, as a case holds it. */
export interface Grant {
  readonly claim: Claim;
  readonly token: bigint;
  readonly ref: LeaseRef;
}

/** The stage of one case. */
export class LockKit {
  readonly backend: LockBackend;
  readonly time: Timeline;
  readonly profile: Profile;
  /** The ttl that cases work with: short, and long enough for the adapter. */
  readonly ttlMs: number;
  readonly prefix = `contract-${systemRandom.id()}/lock/`;
  /** Whether single claims and releases take the short cut of the backend instead of batches of one. */
  readonly atOnce: boolean;
  readonly #place: LockPlace;
  #second: LockBackend | undefined;
  /** A claim lives on the connection that first sent it, as a process has one. */
  readonly #homes = new Map<string, LockBackend>();

  constructor(place: LockPlace, profile: Profile, atOnce = false) {
    this.#place = place;
    this.atOnce = atOnce;
    this.backend = place.backend;
    this.time = timelineOf(place.clock);
    this.profile = profile;
    this.ttlMs = Math.max(this.traits.minTtlMs, profile === 'quick' && !this.time.virtual ? 400 : 1_000);
  }

  get traits(): LockTraits {
    return this.backend.traits;
  }

  /** How late an answer about time may be. */
  get slackMs(): number {
    return slackMs(this.time);
  }

  /** A second connection to the same place; always the same one. */
  async second(): Promise<LockBackend> {
    return (this.#second ??= await this.#place.connect());
  }

  /** A full key of this case alone. */
  key(name = 'k'): string {
    return `${this.prefix}${name}`;
  }

  /** A claim with an id of its own and, unless told otherwise, a session of its own. */
  claim(key: string, over: Partial<Claim> = {}): Claim {
    const id = systemRandom.id();
    return {
      key,
      id,
      ttlMs: this.ttlMs,
      wait: false,
      ticketTtlMs: this.ttlMs,
      session: `session-${id}`,
      holder: { label: `node-${id}` },
      ...over,
    };
  }

  async acquire(claim: Claim, on: LockBackend = this.#homeOf(claim.id)): Promise<ClaimAnswer> {
    if (!this.#homes.has(claim.id)) this.#homes.set(claim.id, on);
    if (this.atOnce) return answeredAtOnce(shortCut(on).acquire(claim));
    const [answer, ...more] = await on.acquire([claim]);
    assert.ok(answer !== undefined && more.length === 0, 'one claim, one answer');
    return answer;
  }

  /** A claim that must be granted. */
  async grant(claim: Claim, on?: LockBackend): Promise<Grant> {
    const { token } = expectStatus(await this.acquire(claim, on), 'granted', `acquire of ${claim.key}`);
    assert.equal(typeof token, 'bigint');
    return { claim, token, ref: { key: claim.key, claim: claim.id, token, session: claim.session } };
  }

  /** A waiting claim that must be queued. */
  async queue(claim: Claim, on?: LockBackend): Promise<Claim & { readonly minted: bigint }> {
    const waiting = { ...claim, wait: true };
    const { minted } = expectStatus(await this.acquire(waiting, on), 'queued', `waiting for ${claim.key}`);
    return { ...waiting, minted };
  }

  /** A claim that must be refused because of somebody else. */
  async busy(key: string, on?: LockBackend): Promise<Extract<ClaimAnswer, { status: 'busy' }>> {
    return expectStatus(await this.acquire(this.claim(key), on), 'busy', `a try for ${key}`);
  }

  async renew(ref: LeaseRef, ttlMs = this.ttlMs, on = this.#homeOf(ref.claim)): Promise<RenewAnswer> {
    const [answer, ...more] = await on.renew([{ ...ref, ttlMs }]);
    assert.ok(answer !== undefined && more.length === 0, 'one renewal, one answer');
    return answer;
  }

  async release(ref: LeaseRef, on = this.#homeOf(ref.claim)): Promise<ReleaseAnswer> {
    const { key, claim, token, session } = ref;
    return this.#giveBack({ key, claim, token, session }, on);
  }

  async cancel({ key, id, session }: Claim, tombstoneMs = 60_000): Promise<ReleaseAnswer> {
    return this.#giveBack({ cancel: true, key, claim: id, session, tombstoneMs }, this.#homeOf(id));
  }

  async info(key: string, on: LockBackend = this.backend): Promise<LockInfo> {
    const [info, ...more] = await on.inspect({ keys: [key] });
    assert.ok(info !== undefined && more.length === 0, 'one key, one answer');
    assert.equal(info.key, key);
    return info;
  }

  /** Lets a lease of `ttlMs`, set just now, run out for certain. */
  expire(ttlMs = this.ttlMs): Promise<void> {
    return this.time.pass(ttlMs + this.traits.ttlGranularityMs + this.slackMs);
  }

  /** Different keys of one partition, in the order in which batches are sorted. */
  keysOfOnePartition(count: number): string[] {
    const found = new Map<string, string[]>();
    for (let n = 0; n < count * 50_000; n += 1) {
      const key = this.key(`n${String(n).padStart(8, '0')}`);
      const partition = this.backend.partition?.(key) ?? '';
      const keys = found.get(partition) ?? [];
      found.set(partition, keys);
      if (keys.push(key) === count) return keys;
    }
    throw new Error(`no partition takes ${count} keys`);
  }

  async #giveBack(release: Release, on: LockBackend): Promise<ReleaseAnswer> {
    if (this.atOnce) return answeredAtOnce(shortCut(on).release(release));
    const [answer, ...more] = await on.release([release]);
    assert.ok(answer !== undefined && more.length === 0, 'one release, one answer');
    return answer;
  }

  #homeOf(claim: string): LockBackend {
    return this.#homes.get(claim) ?? this.backend;
  }

  close(): Promise<void> {
    return this.#place.cleanup();
  }
}

/** The short cut of a connection that has one. */
export function shortCut(on: LockBackend): AtOnce {
  const atOnce = on.atOnce?.();
  assert.ok(atOnce !== undefined, 'the suite was told of a short cut, and the backend has none');
  return atOnce;
}

/** What an undisturbed backend answers at once, it always answers. */
export function answeredAtOnce<A>(answer: A | undefined): A {
  assert.ok(answer !== undefined, 'no answer at once');
  return answer;
}

/** Why an adapter without a queue cannot run a case. */
export function unlessFifo(traits: LockTraits): string | undefined {
  return traits.fifo ? undefined : 'the backend keeps no queue (traits.fifo)';
}

/** Why an adapter without notices cannot run a case. */
export function unlessPush(traits: LockTraits): string | undefined {
  return traits.push ? unlessFifo(traits) : 'the backend sends no notices (traits.push)';
}

/** Why an adapter without floors cannot run a case. */
export function unlessFloor(traits: LockTraits): string | undefined {
  return traits.floor ? undefined : 'grants honour no floor (traits.floor)';
}
