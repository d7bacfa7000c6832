/**
 * What the cases of a state store work with: keys of their own, single operations instead of batches, a fresh write id
 * for every wish.
 */
import {
  systemRandom,
  type Clock,
  type StateStore,
  type StateWrite,
  type StoredEntry,
  type WriteAnswer,
} from '@guard/core';
import type { VirtualClock } from '../../clock/virtual-clock.js';
import { assert, expectStatus } from '../assert.js';
import { slackMs, type ContractCase, type Profile } from '../runner.js';
import { timelineOf, type Timeline } from '../timeline.js';

/** One place where state is kept, made for one case. */
export interface StatePlace {
  readonly store: StateStore;
  /**
   * A further, independent connection to the same place; for a store in memory the same object. `clock`: where the
   * adapter has timers of its own, they run on this clock, which can be stopped like a process.
   */
  connect(clock?: Clock): Promise<StateStore>;
  /** The clock that the place runs on, where that is a virtual one. Default: the real time. */
  readonly clock?: VirtualClock;
  /** Closes the connections, and removes what only the adapter knows how to find. */
  cleanup(): Promise<void>;
}

/** What a state store can do. */
export type StateTraits = StateStore['traits'];

/** A case about a state store. */
export type StateCase = ContractCase<StateKit, StateTraits>;

/** What a write may say beside its key and value. */
export type WriteWish = Partial<Omit<StateWrite, 'key' | 'value'>>;

/** The stage of one case. */
export class StateKit {
  readonly store: StateStore;
  readonly time: Timeline;
  readonly profile: Profile;
  /** The ttl that cases work with. */
  readonly ttlMs: number;
  readonly prefix = `contract-${systemRandom.id()}/state/`;
  readonly #place: StatePlace;
  #second: StateStore | undefined;

  constructor(place: StatePlace, profile: Profile) {
    this.#place = place;
    this.store = place.store;
    this.time = timelineOf(place.clock);
    this.profile = profile;
    this.ttlMs = profile === 'quick' && !this.time.virtual ? 1_000 : 3_000;
  }

  /** How late an answer about time may be. Some stores count ttls in whole seconds. */
  get slackMs(): number {
    const { ttlGranularityMs = 0 } = this.store.traits;
    return slackMs(this.time) + Math.max(ttlGranularityMs, this.time.virtual ? 0 : 1_000);
  }

  /** A second connection to the same place; always the same one. */
  async second(): Promise<StateStore> {
    return (this.#second ??= await this.#place.connect());
  }

  /** One more connection to the same place, for a case that closes it. In memory the same object. */
  connect(): Promise<StateStore> {
    return this.#place.connect();
  }

  /** A full key of this case alone. */
  key(name = 'k'): string {
    return `${this.prefix}${name}`;
  }

  /** A write, by default of whatever is there, keeping its ttl. */
  wish(key: string, value: unknown, over: WriteWish = {}): StateWrite {
    const text = value === null ? null : JSON.stringify(value);
    return { key, value: text, expect: 'any', writeId: systemRandom.id(), ttl: 'keep', ...over };
  }

  async send(write: StateWrite, on: StateStore = this.store): Promise<WriteAnswer> {
    const [answer, ...more] = await on.write([write]);
    assert.ok(answer !== undefined && more.length === 0, 'one write, one answer');
    return answer;
  }

  /** A write that must be applied; its version. */
  async put(key: string, value: unknown, over?: WriteWish, on?: StateStore): Promise<string> {
    const answer = await this.send(this.wish(key, value, over), on);
    return expectStatus(answer, 'written', `a write of ${key}`).version;
  }

  /** A write that must be refused because of what is there. */
  async conflict(key: string, value: unknown, over?: WriteWish, on?: StateStore): Promise<string | null> {
    const answer = await this.send(this.wish(key, value, over), on);
    return expectStatus(answer, 'conflict', `a stale write of ${key}`).version;
  }

  async get(key: string, on: StateStore = this.store): Promise<StoredEntry | null> {
    const [entry, ...more] = await on.read([key]);
    assert.ok(entry !== undefined && more.length === 0, 'one key, one answer');
    return entry;
  }

  /** The value that is there, parsed; `undefined` for nothing. */
  async value(key: string, on?: StateStore): Promise<unknown> {
    const entry = await this.get(key, on);
    return entry === null ? undefined : JSON.parse(entry.value);
  }

  /** Lets an entry with `ttlMs`, written just now, run out for certain. */
  expire(ttlMs = this.ttlMs): Promise<void> {
    return this.time.pass(ttlMs + this.slackMs);
  }

  /** All pages below a prefix. */
  async scanAll(prefix: string, limit: number, on: StateStore = this.store): Promise<StoredEntry[]> {
    const found: StoredEntry[] = [];
    let cursor: string | undefined;
    do {
      const page = await on.scan(prefix, cursor, limit);
      assert.ok(page.entries.length <= limit, `a page of ${page.entries.length} for a limit of ${limit}`);
      found.push(...page.entries);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  close(): Promise<void> {
    return this.#place.cleanup();
  }
}
