/**
 * One process of a case: a guard with a connection, a clock and a gate of its own, and the test's hand on all of them.
 */
import {
  createGuard,
  type Clock,
  type Guard,
  type GuardOptions,
  type LockBackend,
  type Random,
  type StateStore,
} from '@guard/core';
import type { HoldLog } from '../../check/hold-log.js';
import { faultyBackend, type FaultyBackend } from '../../fault/faulty-backend.js';
import { faultyState, type FaultyState } from '../../fault/faulty-state.js';
import { Gate, gatedLocks, gatedState, ProcessClock } from './gate.js';

/** What a lock handle shows to the log. */
interface Held {
  readonly key: string;
  readonly token: bigint;
  readonly signal: AbortSignal;
  isHeld(): boolean;
}

/** What a process is made of. */
export interface ProcessParts {
  readonly name: string;
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: HoldLog;
  /** Whether it is answered at once while nothing is in the way. */
  readonly atOnce: boolean;
  /** Open connections of this process; `clock` is for timers of their own. */
  readonly connectLocks: (clock: Clock) => Promise<LockBackend>;
  readonly connectState: (clock: Clock) => Promise<StateStore>;
  readonly options: Partial<GuardOptions>;
}

/** A process of a case. */
export class Process {
  readonly name: string;
  readonly guard: Guard;
  readonly clock: Clock;
  /** Faults between this process and its lock backend, and what it sent. */
  readonly locks: FaultyBackend;
  /** Faults between this process and its state store, and what it sent. */
  readonly state: FaultyState;
  /** Whether it was killed. */
  isDead = false;
  readonly #gate: Gate;
  readonly #log: HoldLog;
  readonly #held = new Map<Held, string>();
  #unblock: (() => void) | undefined;
  #grants = 0;

  private constructor(parts: ProcessParts, gate: Gate, locks: FaultyBackend, state: FaultyState) {
    this.name = parts.name;
    this.clock = new ProcessClock(parts.clock, gate);
    this.locks = locks;
    this.state = state;
    this.#gate = gate;
    this.#log = parts.log;
    this.guard = createGuard({
      locks: gatedLocks(locks.backend, gate),
      state: gatedState(state.store, gate),
      namespace: parts.namespace,
      node: { label: parts.name },
      clock: this.clock,
      random: parts.random,
      ...parts.options,
    });
  }

  /** Starts a process. */
  static async start(parts: ProcessParts): Promise<Process> {
    const gate = new Gate();
    const own = new ProcessClock(parts.clock, gate);
    const locks = faultyBackend(await parts.connectLocks(own), {
      clock: parts.clock,
      atOnce: parts.atOnce,
    });
    const state = faultyState(await parts.connectState(own), { clock: parts.clock });
    return new Process(parts, gate, locks, state);
  }

  /** Lets time pass inside a loop of this process; stands still while it is stopped. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.setTimer(resolve, ms));
  }

  /** SIGSTOP. */
  pause(): void {
    for (const [{ key }, holder] of this.#held) this.#log.add('paused', holder, key);
    this.#gate.shut();
  }

  /** SIGCONT. */
  async resume(): Promise<void> {
    if (!this.isDead) await this.#gate.open();
  }

  /** SIGKILL: nothing of it ever runs again, and nothing is given back. */
  kill(): void {
    this.pause();
    this.isDead = true;
  }

  /**
   * A busy loop in the middle of the work: the process stands still until `unblock`, and then the code behind the
   * loop runs before any overdue timer does.
   */
  block(): Promise<void> {
    this.pause();
    return new Promise((resolve) => (this.#unblock = resolve));
  }

  /** The end of the busy loop. */
  async unblock(): Promise<void> {
    this.#unblock?.();
    // The code behind the loop goes as far as it gets without an answer from outside.
    for (let n = 0; n < 20; n += 1) await Promise.resolve();
    await this.resume();
  }

  /** The server is away for this process until `heal`. */
  down(): void {
    this.locks.down();
    this.state.down();
  }

  /** Ends all faults of this process. */
  heal(): void {
    this.locks.heal();
    this.state.heal();
  }

  /** Logs a grant, and its loss when that comes. */
  enter<L extends Held>(lock: L): L {
    const holder = `${this.name}#${(this.#grants += 1)}`;
    this.#log.enter(holder, lock);
    // What is answered at once may come to code that still ran when the process was stopped.
    if (this.#gate.isShut) this.#log.add('paused', holder, lock.key);
    this.#held.set(lock, holder);
    lock.signal.addEventListener('abort', () => this.#leave('lost', lock), { once: true });
    return lock;
  }

  /** Looks whether the lock is held; a yes is logged as a belief. */
  look(lock: Held): boolean {
    const isHeld = lock.isHeld();
    const holder = this.#held.get(lock);
    if (isHeld && holder !== undefined) this.#log.add('held', holder, lock.key);
    return isHeld;
  }

  /** Logs that a release begins. */
  exit(lock: Held): void {
    this.#leave('exit', lock);
  }

  #leave(type: 'exit' | 'lost', lock: Held): void {
    const holder = this.#held.get(lock);
    if (holder !== undefined && this.#held.delete(lock)) this.#log.add(type, holder, lock.key);
  }
}
