/**
 * A stage for single runs: several "processes" over one lock backend and one run store in memory, each with its own
 * network, and time in hand. What reaches the stores is counted there (C5).
 */
import {
  createGuard,
  kvRuns,
  memoryLocks,
  memoryState,
  type Guard,
  type GuardEvents,
  type GuardOptions,
  type LockBackend,
  type RunRecord,
  type RunStore,
} from '@guard/core';
import {
  faultyBackend,
  type FaultyBackend,
  faultyState,
  type FaultyState,
  SeededRandom,
  VirtualClock,
} from '@guard/testing';

/** One process: a guard, the network to its backends, and every event it told. */
export interface Process {
  readonly guard: Guard;
  readonly locks: FaultyBackend;
  readonly state: FaultyState;
  readonly trips: { readonly locks: string[]; readonly runs: string[] };
  readonly told: readonly Told[];
  /** Names of the events, each with what tells them apart. */
  readonly names: () => string[];
  /** The process is gone: nothing it sends arrives, and nothing arrives at it. */
  kill(): void;
}

/** One event. */
export interface Told {
  readonly event: string;
  readonly payload: unknown;
}

const EVENTS: readonly (keyof GuardEvents)[] = [
  ...([
    'run-started',
    'run-completed',
    'run-failed',
    'run-skipped',
    'run-taken-over',
    'run-expired',
  ] as const),
  ...(['run-on-hold', 'run-refused', 'run-long', 'run-unguarded', 'alarm', 'error'] as const),
  ...(['schedule-conflict', 'clock-skew', 'loop-lag'] as const),
];

/** Options of a process. */
export interface ProcessOptions extends Partial<GuardOptions> {
  /** Whether the store creates records as running in one step. Default: it does. */
  readonly createRunning?: boolean;
}

/** Shared backends and a clock. */
export class Stage {
  readonly clock = new VirtualClock();
  readonly random: SeededRandom;
  readonly locks: LockBackend = memoryLocks({ clock: this.clock });
  readonly state = memoryState({ clock: this.clock });
  readonly store: RunStore = kvRuns(this.state);
  readonly processes: Process[] = [];

  constructor(seed?: number) {
    this.random = new SeededRandom(seed);
  }

  process(options: ProcessOptions = {}): Process {
    const { createRunning = true, ...rest } = options;
    const locks = faultyBackend(rest.locks ?? this.locks, { clock: this.clock });
    const state = faultyState(this.state, { clock: this.clock });
    const trips = { locks: [] as string[], runs: [] as string[] };
    const random = new SeededRandom(this.random.integer(1, 1_000_000));
    const guard = createGuard({
      clock: this.clock,
      random,
      node: { label: `node-${this.processes.length + 1}` },
      ...rest,
      locks: countedLocks(locks.backend, trips.locks),
      runs: rest.runs ?? countedRuns(kvRuns(state.store), trips.runs, createRunning),
    });
    const told: Told[] = [];
    for (const event of EVENTS) guard.on(event, (payload) => told.push({ event, payload }));
    const process: Process = {
      guard,
      locks,
      state,
      trips,
      told,
      names: () => told.map(nameOf),
      kill: () => {
        locks.cut();
        state.cut();
      },
    };
    this.processes.push(process);
    return process;
  }

  /** The record as it is stored. */
  async record(task: string, key: string, namespace = 'default'): Promise<RunRecord | undefined> {
    return (await this.store.get(namespace, { task, key }))?.run;
  }

  /** What happened to a run, in one word each. */
  async history(task: string, key: string): Promise<string[]> {
    return (await this.store.events('default', { task, key })).map(({ what }) => what);
  }

  /** Every record, newest first. */
  async records(): Promise<readonly RunRecord[]> {
    const page = await this.store.list('default', { limit: 1_000 });
    return page.runs.map(({ run }) => run);
  }

  /** Ends what is still open, so that no test leaves timers to the next one. */
  async close(): Promise<void> {
    for (const { locks, state } of this.processes) {
      locks.heal();
      state.heal();
    }
    const closing = Promise.all(this.processes.map(({ guard }) => guard.close()));
    await this.clock.advance(200_000);
    await closing;
  }
}

/** How a promise stands: for asking whether something has settled yet. */
export interface Watched<T> {
  value?: T;
  error?: unknown;
  settled: boolean;
}

/** Watches a promise. */
export function watch<T>(promise: Promise<T>): Watched<T> {
  const seen: Watched<T> = { settled: false };
  promise.then(
    (value) => Object.assign(seen, { value, settled: true }),
    (error: unknown) => Object.assign(seen, { error, settled: true }),
  );
  return seen;
}

/** A promise with its ends outside. */
export class Gate<T = void> {
  open!: (value: T) => void;
  fail!: (error: unknown) => void;
  readonly promise = new Promise<T>((resolve, reject) => {
    this.open = resolve;
    this.fail = reject;
  });
}

/** Work that ends when the clock says so. */
export function sleep(clock: VirtualClock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(resolve, ms);
    signal?.addEventListener('abort', () => {
      timer.cancel();
      reject(signal.reason as Error);
    });
  });
}

function nameOf({ event, payload }: Told): string {
  const detail = payload as { reason?: string; run?: RunRecord };
  if (event === 'alarm' || event === 'run-skipped') return `${event} ${detail.reason}`;
  return event;
}

function countedLocks(backend: LockBackend, trips: string[]): LockBackend {
  const counted = <A extends unknown[], R>(name: string, call: (...args: A) => R) => {
    return (...args: A): R => {
      trips.push(name);
      return call(...args);
    };
  };
  return {
    ...backend,
    acquire: counted('acquire', (claims) => backend.acquire(claims)),
    renew: counted('renew', (renewals) => backend.renew(renewals)),
    release: counted('release', (releases) => backend.release(releases)),
    inspect: counted('inspect', (query) => backend.inspect(query)),
  };
}

function countedRuns(store: RunStore, trips: string[], createRunning: boolean): RunStore {
  return new Proxy(store, {
    get: (target, name: keyof RunStore) => {
      if (name === 'traits') return { createRunning };
      const value = target[name];
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        trips.push(name);
        return (value as (...args: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}
