/** `createGuard`: checks the options, fills in the defaults, and puts the parts together. */
import { hostname } from 'node:os';
import type { GuardEvents, GuardListener } from '../api/event.js';
import type { Guard } from '../api/guard.js';
import type { AcquireOptions, Lock, LockSet, LockStatus, TryOptions } from '../api/lock.js';
import type { GuardHealth } from '../api/health.js';
import type { GuardOptions } from '../api/options.js';
import type { Run, RunOptions, RunOutcome, RunsApi, StartOptions, Task, TaskOptions } from '../api/run.js';
import type { TasksApi } from '../api/tasks.js';
import type { StateApi } from '../api/state.js';
import { kvRuns } from '../kv/runs.js';
import type { Clock, Policy, Random } from '../port/clock.js';
import type { RunStore } from '../port/run-store.js';
import { systemClock } from '../runtime/clock.js';
import { Events } from '../runtime/events.js';
import { Locks } from '../runtime/lock/locks.js';
import { defaultPolicy } from '../runtime/flight/outage.js';
import { atMost } from '../runtime/flight/pause.js';
import { systemRandom } from '../runtime/random.js';
import { States } from '../runtime/state/states.js';
import { parseDuration } from '../value/duration.js';
import { GuardError, invalidArgument } from '../value/error.js';
import { checkNamespace, type Key } from '../value/key.js';
import { checkOptions } from '../value/options.js';
import { LockFacade, checkTtl } from './locks.js';
import { checkParts } from './parts.js';
import { Running } from './running.js';
import { createRunFacade, type RunFacade } from './runs.js';
import { StateFacade } from './state.js';

const OPTIONS: readonly (keyof GuardOptions)[] = [
  'locks',
  'state',
  'runs',
  'namespace',
  'node',
  'defaults',
  'sweepInterval',
  'grace',
  'retain',
  'onUnavailable',
  'policy',
  'clock',
  'random',
];
const LONGEST_LABEL = 200;
const KEPT_KEYS_MS = 90 * 86_400_000;
/** After the grace, work that was told to stop has this long to settle. */
const LAST_CALL_MS = 1_000;

/**
 * Makes a guard. Make one per application and close it at the end.
 *
 * @throws GuardError `invalid-argument`: an option is missing, unknown or contradicts another.
 * @example
 * const guard = createGuard({ locks: memoryLocks(), state: memoryState(), namespace: 'billing' });
 * await guard.withLock('settlement:42', async (lock) => settle(lock.token));
 */
export function createGuard(options: GuardOptions): Guard {
  return new GuardImpl(options);
}

class GuardImpl implements Guard {
  readonly namespace: string;
  private readonly clock: Clock;
  private readonly random: Random;
  private readonly events = new Events();
  private readonly running = new Running();
  private readonly locks: Locks;
  private readonly lockFacade: LockFacade;
  private readonly states: States | undefined;
  private readonly stateFacade: StateFacade | undefined;
  private readonly runFacade: RunFacade | undefined;
  private readonly graceMs: number;
  private readonly unavailable = new Set<string>();
  private closing: Promise<void> | undefined;

  constructor(options: GuardOptions) {
    checkOptions('guard options', options, OPTIONS);
    checkParts(options ?? ({} as GuardOptions));
    checkOptions('defaults', options.defaults, ['ttl', 'wait']);
    this.namespace = checkNamespace(options.namespace ?? 'default');
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? systemRandom;
    this.graceMs = parseDuration('grace', options.grace ?? '20s', { minMs: 0 });
    this.events.on('backend-unavailable', ({ backend }) => this.unavailable.add(backend));
    this.events.on('backend-recovered', ({ backend }) => this.unavailable.delete(backend));
    const settings = runSettings(options);
    const policy = (): Policy => options.policy ?? defaultPolicy(this.clock);
    const { clock, random, events } = this;
    this.locks = new Locks({
      backend: options.locks,
      clock,
      random,
      events,
      policy: policy(),
      session: random.id(),
      label: labelOf(options),
    });
    const defaults = {
      namespace: this.namespace,
      ttlMs: checkTtl('defaults.ttl', options.defaults?.ttl ?? '30s', 0, options.locks.traits.minTtlMs),
      waitMs: parseDuration('defaults.wait', options.defaults?.wait ?? '30s', { minMs: 0, infinite: true }),
    };
    this.lockFacade = new LockFacade(this.locks, defaults, events, this.running);
    if (options.state !== undefined) {
      this.states = new States({ store: options.state, clock, random, events, policy: policy() });
      this.stateFacade = new StateFacade(this.states, this.namespace, random, events);
    }
    const runs =
      options.runs ?? (options.state === undefined ? undefined : kvRuns(options.state, { random }));
    if (runs !== undefined) this.runFacade = this.runsOf(runs, options, defaults.ttlMs, policy(), settings);
  }

  get state(): StateApi {
    if (this.stateFacade !== undefined) return this.stateFacade;
    throw new GuardError('invalid-argument', `this guard has no state store: hand one in as 'state'`);
  }

  withLock<T>(key: Key, work: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  withLock<T>(key: Key, options: AcquireOptions, work: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  withLock<T>(key: Key, first: unknown, second?: unknown): Promise<T> {
    return this.lockFacade.withLock(key, first as AcquireOptions, second as () => T);
  }

  acquire(key: Key, options?: AcquireOptions): Promise<Lock> {
    return this.lockFacade.acquire(key, options);
  }

  tryAcquire(key: Key, options?: TryOptions): Promise<Lock | null> {
    return this.lockFacade.tryAcquire(key, options);
  }

  acquireAll(keys: readonly Key[], options?: AcquireOptions): Promise<LockSet> {
    return this.lockFacade.acquireAll(keys, options);
  }

  inspect(key: Key): Promise<LockStatus> {
    return this.lockFacade.inspect(key);
  }

  forceRelease(key: Key, options: { readonly note: string }): Promise<boolean> {
    return this.lockFacade.forceRelease(key, options);
  }

  run<T>(task: string, work: (run: Run) => T | PromiseLike<T>): Promise<RunOutcome<T>>;
  run<T>(task: string, options: RunOptions, work: (run: Run) => T | PromiseLike<T>): Promise<RunOutcome<T>>;
  async run<T>(task: string, ...rest: readonly unknown[]): Promise<RunOutcome<T>> {
    return this.runPart.run(task, ...(rest as [RunOptions, () => T]));
  }

  task<I = void, T = unknown>(
    name: string,
    work: (run: Run, input: I) => T | PromiseLike<T>,
  ): Task<I, Awaited<T>>;
  task<I = void, T = unknown>(
    name: string,
    options: TaskOptions<I>,
    work: (run: Run, input: I) => T | PromiseLike<T>,
  ): Task<I, Awaited<T>>;
  task<I, T>(name: string, ...rest: readonly unknown[]): Task<I, Awaited<T>> {
    return this.runPart.task(name, ...(rest as [TaskOptions<I>, (run: Run, input: I) => T]));
  }

  get runs(): RunsApi {
    return this.runPart.runs;
  }

  get tasks(): TasksApi {
    return this.runPart.tasks;
  }

  async start(options?: StartOptions): Promise<void> {
    return this.runPart.start(options);
  }

  on<E extends keyof GuardEvents>(event: E, listener: GuardListener<E>): () => void {
    return this.events.on(event, listener);
  }

  health(): GuardHealth {
    const node = this.runFacade?.health() ?? {
      state: this.closing === undefined ? 'idle' : 'closed',
      skewMs: undefined,
      missedHeartbeats: 0,
      plans: false,
    };
    return { ...node, unavailable: [...this.unavailable] };
  }

  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  private get runPart(): RunFacade {
    if (this.runFacade !== undefined) return this.runFacade;
    throw new GuardError(
      'invalid-argument',
      `this guard has no run store: hand one in as 'runs', or a 'state'`,
    );
  }

  private runsOf(
    runs: RunStore,
    options: GuardOptions,
    ttlMs: number,
    policy: Policy,
    settings: RunSettings,
  ): RunFacade {
    const { onUnavailable, ...rest } = settings;
    const { clock, random, events, namespace } = this;
    const { minTtlMs } = options.locks.traits;
    return createRunFacade({
      ...{ locks: this.locks, runs, clock, random, namespace, events, policy },
      label: labelOf(options),
      defaults: { ttlMs, minTtlMs, onUnavailable },
      ...rest,
    });
  }

  private async shutDown(): Promise<void> {
    const runs = this.runFacade?.close(this.graceMs) ?? Promise.resolve();
    this.locks.stopClaiming();
    this.locks.closeHandles();
    await atMost(this.clock, this.graceMs, Promise.all([this.running.drained(), runs]));
    // Runs were told to stop: those that do so in time are handed back under their locks.
    await atMost(this.clock, LAST_CALL_MS, runs);
    this.locks.dropAll();
    await atMost(this.clock, LAST_CALL_MS, this.running.drained());
    await Promise.all([this.locks.close(LAST_CALL_MS), this.states?.close(LAST_CALL_MS)]);
  }
}

/** Settings of runs, checked whether or not there is a store for them. */
interface RunSettings {
  readonly onUnavailable: 'throw' | 'skip';
  readonly sweepIntervalMs: number;
  readonly retain: { readonly recordsMs: number; readonly keysMs: number };
}

function runSettings({ onUnavailable = 'throw', sweepInterval, retain }: GuardOptions): RunSettings {
  if (onUnavailable !== 'throw' && onUnavailable !== 'skip') {
    throw invalidArgument('onUnavailable', onUnavailable, `must be 'throw' or 'skip'`);
  }
  const sweepIntervalMs = parseDuration('sweepInterval', sweepInterval ?? '10s', { minMs: 10 });
  return { onUnavailable, sweepIntervalMs, retain: retentionOf(retain) };
}

function retentionOf(retain: GuardOptions['retain']): {
  readonly recordsMs: number;
  readonly keysMs: number;
} {
  checkOptions('retain', retain, ['runs', 'keys']);
  const recordsMs = parseDuration('retain.runs', retain?.runs ?? '30d');
  const keysMs = parseDuration('retain.keys', retain?.keys ?? Math.max(KEPT_KEYS_MS, recordsMs));
  if (keysMs >= recordsMs) return { recordsMs, keysMs };
  throw new GuardError(
    'invalid-argument',
    `retain.keys (${keysMs} ms) must not be shorter than retain.runs (${recordsMs} ms)`,
  );
}

function labelOf(options: GuardOptions): string {
  checkOptions('node', options.node, ['label']);
  const label: unknown = options.node?.label;
  if (label === undefined) return hostname().slice(0, LONGEST_LABEL);
  if (typeof label !== 'string' || label.length > LONGEST_LABEL) {
    throw invalidArgument('node.label', label, `must be a text of at most ${LONGEST_LABEL} characters`);
  }
  return label;
}
