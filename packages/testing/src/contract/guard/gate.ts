/**
 * What stands for a process that can be stopped: everything that would run code of it goes through its gate. While the
 * gate is shut no timer of the process fires and no answer or notice reaches it, as with SIGSTOP; both clocks go on.
 * Requests that were sent before are carried out, and requests by code that still ran are sent when the gate opens.
 * When it opens, overdue timers come first and then what arrived, in the order of Node's event loop.
 */
import {
  systemClock,
  type Clock,
  type Instant,
  type LockBackend,
  type Notice,
  type StateStore,
  type Timer,
  type TimerOptions,
} from '@guard/core';

/** The gate of one process. */
export class Gate {
  #timers: (() => void)[] = [];
  #arrivals: (() => void)[] = [];
  #state: 'open' | 'shut' | 'opening' = 'open';

  get isShut(): boolean {
    return this.#state === 'shut';
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  shut(): void {
    this.#state = 'shut';
  }

  /** Opens the gate; afterwards everything that was held back has happened. */
  async open(): Promise<void> {
    if (this.#state !== 'shut') return;
    this.#state = 'opening';
    await this.#drain(this.#timers);
    await this.#drain(this.#arrivals);
    if (this.#state === 'opening') this.#state = 'open';
  }

  /** A timer or a yield of the process is due. */
  timer(run: () => void): void {
    if (this.#state === 'shut') this.#timers.push(run);
    else run();
  }

  /** Something arrives at the process. */
  arrival(run: () => void): void {
    if (this.isOpen) run();
    else this.#arrivals.push(run);
  }

  /** A call by the process: it leaves, and its answer arrives, while the gate is open. */
  async call<T>(send: () => Promise<T>): Promise<T> {
    if (!this.isOpen) await this.#opened();
    try {
      return await send();
    } finally {
      if (!this.isOpen) await this.#opened();
    }
  }

  #opened(): Promise<void> {
    return new Promise((resolve) => this.arrival(resolve));
  }

  async #drain(held: (() => void)[]): Promise<void> {
    for (let run = held.shift(); run !== undefined && this.#state === 'opening'; run = held.shift()) {
      run();
      await new Promise<void>((resolve) => systemClock.yield(resolve));
    }
  }
}

/** The clock of a process: the shared time, and timers behind its gate. */
export class ProcessClock implements Clock {
  readonly #base: Clock;
  readonly #gate: Gate;

  constructor(base: Clock, gate: Gate) {
    this.#base = base;
    this.#gate = gate;
  }

  now(): Instant {
    return this.#base.now();
  }

  setTimer(run: () => void, delayMs: number, options?: TimerOptions): Timer {
    let cancelled = false;
    const timer = this.#base.setTimer(
      () => this.#gate.timer(() => void (cancelled || run())),
      delayMs,
      options,
    );
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  yield(run: () => void): void {
    this.#base.yield(() => this.#gate.timer(run));
  }
}

/** A lock backend as a process behind a gate has it. */
export function gatedLocks(inner: LockBackend, gate: Gate): LockBackend {
  const atOnce = inner.atOnce?.();
  return {
    name: inner.name,
    traits: inner.traits,
    ...(inner.partition !== undefined && { partition: (key: string) => inner.partition!(key) }),
    acquire: (claims) => gate.call(() => inner.acquire(claims)),
    renew: (renewals) => gate.call(() => inner.renew(renewals)),
    release: (releases) => gate.call(() => inner.release(releases)),
    inspect: (query) => gate.call(() => inner.inspect(query)),
    ...(inner.subscribe !== undefined && {
      subscribe: (session: string, onNotice: (notice: Notice) => void) =>
        gate.call(() => inner.subscribe!(session, (notice) => gate.arrival(() => onNotice(notice)))),
    }),
    // Code that still ran when the process was stopped gets its answer when it goes on.
    ...(atOnce !== undefined && {
      atOnce: () => ({
        acquire: (claim) => (gate.isOpen ? atOnce.acquire(claim) : undefined),
        release: (release) => (gate.isOpen ? atOnce.release(release) : undefined),
      }),
    }),
    close: () => inner.close(),
  };
}

/** A state store as a process behind a gate has it. */
export function gatedState(inner: StateStore, gate: Gate): StateStore {
  return {
    name: inner.name,
    traits: inner.traits,
    ...(inner.partition !== undefined && { partition: (key: string) => inner.partition!(key) }),
    now: () => gate.call(() => inner.now()),
    read: (keys) => gate.call(() => inner.read(keys)),
    write: (writes) => gate.call(() => inner.write(writes)),
    scan: (prefix, cursor, limit) => gate.call(() => inner.scan(prefix, cursor, limit)),
    watch: (prefix, listener) =>
      gate.call(() => inner.watch(prefix, (change) => gate.arrival(() => listener(change)))),
    close: () => inner.close(),
  };
}
