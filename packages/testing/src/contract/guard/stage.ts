/**
 * The stage of the cases that a guard must stand. What the cases call processes are guards in this one process, each
 * on its own connection to one shared place, with a clock and a gate of its own (`gate.ts`):
 *
 * - SIGSTOP and SIGCONT shut and open the gate. SIGKILL shuts it for ever; nothing is given back.
 * - A busy loop is a shut gate whose opening first runs the code behind the loop.
 * - Cuts, resets, lost replies and a server that is away are played between guard and adapter (`fault/`). What a real
 *   socket, driver or server adds to that is not shown here, but by the adapter's own tests on real servers.
 * - On a virtual clock all processes share one time and the main line of a case advances it; on the real time the same
 *   case runs with the same code, scaled down in the quick profile.
 *
 * Every case ends with what must always be true: no overlap, growing tokens, batches that keep the port's rules, and
 * nothing left behind.
 */
import {
  systemClock,
  systemRandom,
  type Clock,
  type GuardOptions,
  type LockBackend,
  type LockTraits,
  type StateStore,
} from '@guard/core';
import { HoldLog } from '../../check/hold-log.js';
import { SeededRandom } from '../../clock/seeded-random.js';
import type { VirtualClock } from '../../clock/virtual-clock.js';
import { assert, expectNone } from '../assert.js';
import type { ContractCase, Profile } from '../runner.js';
import { timelineOf, type Timeline } from '../timeline.js';
import { Process } from './process.js';

/** The shortest ttl that a guard takes: a lease must leave room for its margin, which is never below 50 ms. */
const MIN_GUARD_TTL_MS = 200;

/** Where the processes of a case meet. */
export interface StagePlace {
  readonly clock?: VirtualClock;
  readonly profile: Profile;
  readonly traits: LockTraits;
  /** Whether the processes take the short cut of a backend that answers at once. */
  readonly atOnce: boolean;
  readonly connectLocks: (clock: Clock) => Promise<LockBackend>;
  readonly connectState: (clock: Clock) => Promise<StateStore>;
}

/** A case about guards. */
export type GuardCase = ContractCase<Stage, LockTraits>;

/** What has become of a promise, without waiting for it. */
export interface Tracked<T> {
  state: 'pending' | 'fulfilled' | 'rejected';
  value?: T;
  error?: unknown;
  /** Settles when the promise does, and never rejects. */
  readonly settled: Promise<void>;
}

/** The stage of one case. */
export class Stage {
  readonly time: Timeline;
  readonly random = new SeededRandom();
  readonly log: HoldLog;
  readonly namespace = `contract-${systemRandom.id()}`;
  readonly #place: StagePlace;
  readonly #processes: Process[] = [];

  constructor(place: StagePlace) {
    this.#place = place;
    this.time = timelineOf(place.clock);
    this.log = new HoldLog(this.time.clock);
  }

  get isQuick(): boolean {
    return this.#place.profile === 'quick';
  }

  get traits(): LockTraits {
    return this.#place.traits;
  }

  /** The shortest ttl that guards take on this adapter. */
  get minTtlMs(): number {
    return Math.max(this.traits.minTtlMs, MIN_GUARD_TTL_MS);
  }

  /**
   * Options for a process that is never stopped: on the real time it has the system's own clock, and with it the
   * circuit breaker that is built in, which is left out where a guard is handed a clock.
   */
  get unstopped(): Partial<GuardOptions> {
    return this.time.virtual ? {} : { clock: systemClock };
  }

  get virtualClock(): VirtualClock | undefined {
    return this.#place.clock;
  }

  /** A ttl of a case: as written, shorter on the real time in the quick profile, never below the adapter's. */
  ttl(asWrittenMs: number): number {
    const scaledMs = this.isQuick && !this.time.virtual ? Math.min(asWrittenMs, 400) : asWrittenMs;
    return Math.max(scaledMs, this.minTtlMs);
  }

  /** How often or how long: as written, less in the quick profile, least on the real time. */
  amount(full: number, quick: number, quickOnRealTime = quick): number {
    if (!this.isQuick) return full;
    return this.time.virtual ? quick : quickOnRealTime;
  }

  /** Starts a process. */
  async process(options: Partial<GuardOptions> = {}): Promise<Process> {
    const process = await Process.start({
      name: `P${this.#processes.length + 1}`,
      namespace: this.namespace,
      clock: this.time.clock,
      // Ids must differ from those of other cases on the same server, and still follow the seed's jitter.
      random: { id: () => systemRandom.id(), fraction: () => this.random.fraction() },
      log: this.log,
      atOnce: this.#place.atOnce,
      connectLocks: this.#place.connectLocks,
      connectState: this.#place.connectState,
      options,
    });
    this.#processes.push(process);
    return process;
  }

  /** Starts several processes. */
  async processes(count: number, options?: Partial<GuardOptions>): Promise<readonly Process[]> {
    const started = [];
    for (let n = 0; n < count; n += 1) started.push(await this.process(options));
    return started;
  }

  /** Lets time pass. Main line only. */
  pass(ms: number): Promise<void> {
    return this.time.pass(ms);
  }

  /** Waits for a promise, which must settle in time. Main line only. */
  until<T>(promise: Promise<T>, withinMs = 30_000, what?: string): Promise<T> {
    return this.time.until(promise, withinMs, what);
  }

  /** Waits for a promise that must reject, and answers the error. Main line only. */
  async failure(promise: Promise<unknown>, withinMs = 30_000, what?: string): Promise<unknown> {
    const tracked = this.track(promise);
    await this.until(tracked.settled, withinMs, what);
    assert.equal(tracked.state, 'rejected', `${what ?? 'the promise'} was fulfilled`);
    return tracked.error;
  }

  /** Follows a promise, so that it can be looked at, and its rejection is seen to. */
  track<T>(promise: Promise<T>): Tracked<T> {
    const settled = promise.then(
      (value) => void Object.assign(tracked, { state: 'fulfilled', value }),
      (error: unknown) => void Object.assign(tracked, { state: 'rejected', error }),
    );
    const tracked: Tracked<T> = { state: 'pending', settled };
    return tracked;
  }

  /** Ends the case: closes every process and looks at what must always be true. */
  async close(): Promise<void> {
    const alive = this.#processes.filter(({ isDead }) => !isDead);
    for (const process of alive) {
      process.heal();
      await process.resume();
    }
    await this.until(Promise.all(alive.map(({ guard }) => guard.close())), 60_000, 'closing the guards');
    const problems = [
      ...this.log.problems(),
      ...this.#processes.flatMap(({ name, locks }) =>
        locks.violations.map((rule) => `${name} broke ${rule}`),
      ),
      ...(await this.#leftLater()),
      ...alive.filter(({ locks }) => locks.openStreams > 0).map(({ name }) => `${name} left a stream open`),
      ...(this.virtualClock?.pendingTimers.ref ? ['a timer is left that keeps the process alive'] : []),
    ];
    expectNone(problems, 'after the case');
  }

  /** A lock that was lost is there for a while yet where leases may end late. */
  async #leftLater(): Promise<string[]> {
    const { ttlGranularityMs } = this.traits;
    const endMs = this.time.now() + (ttlGranularityMs < 100 ? 0 : ttlGranularityMs);
    for (;;) {
      const left = await this.#leftLocks();
      if (left.length === 0 || this.time.now() >= endMs) return left;
      await this.time.pass(100);
    }
  }

  /** Locks that are still held by somebody who is alive. */
  async #leftLocks(): Promise<string[]> {
    const locks = await this.#place.connectLocks(this.time.clock);
    const dead = this.#processes.filter(({ isDead }) => isDead).map(({ name }) => name);
    const held = await locks.inspect({ prefix: `${this.namespace}/`, limit: 100 });
    return held
      .filter(({ holder, waiting }) => waiting > 0 || !dead.includes(holder?.label ?? ''))
      .map(({ key, holder }) => `${key} is still held by ${holder?.label}`);
  }
}
