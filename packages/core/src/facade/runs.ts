/**
 * The single-run part of a guard: checks what it is given, registers tasks, and starts and ends the node. Made apart
 * from the guard, so that a guard without a run store has none of it.
 */
import type { GuardHealth } from '../api/health.js';
import type {
  CallOptions,
  Run,
  RunApi,
  RunOptions,
  RunOutcome,
  RunsApi,
  StartOptions,
  Task,
  TaskOptions,
} from '../api/run.js';
import type { Clock, Policy, Random } from '../port/clock.js';
import type { RunStore } from '../port/run-store.js';
import { runOutside } from '../runtime/context.js';
import type { Events } from '../runtime/events.js';
import { closedError } from '../runtime/lock/lock-errors.js';
import type { LockService } from '../runtime/lock/lock-service.js';
import { LockOutages } from '../runtime/run/lock-outages.js';
import { NodePresence } from '../runtime/run/node-presence.js';
import { Outage } from '../runtime/flight/outage.js';
import { RunBook } from '../runtime/run/run-book.js';
import { RunEngine } from '../runtime/run/run-engine.js';
import { callersKey } from '../runtime/run/run-identity.js';
import { ActiveRuns } from '../runtime/run/active-runs.js';
import { type RunHost, Shutdown } from '../runtime/run/run-host.js';
import { type RunPolicy, TaskRegistry, type Wish } from '../runtime/run/run-task.js';
import { jsonText, parsed } from '../runtime/run/run-values.js';
import { type Retention, Sweep } from '../runtime/run/sweep.js';
import { Scheduler } from '../runtime/schedule/scheduler.js';
import { GuardError, invalidArgument } from '../value/error.js';
import { encodeKey } from '../value/key.js';
import { checkFunction, checkOptions } from '../value/options.js';
import type { TasksApi } from '../api/tasks.js';
import { RunDesk } from './run-desk.js';
import { TaskDesk } from './task-desk.js';
import { ofTask, scheduleOf, seriesOf } from './schedule-options.js';
import { policyOf, RUN_OPTIONS, type RunDefaults, TASK_OPTIONS, withCall } from './run-options.js';

/** What the runs of a guard are made of. */
export interface RunFacadeParts {
  readonly locks: LockService;
  readonly runs: RunStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly namespace: string;
  readonly label: string;
  readonly events: Events;
  readonly policy: Policy;
  readonly defaults: RunDefaults;
  readonly sweepIntervalMs: number;
  readonly retain: Retention;
}

/** The runs of one guard, with the part of its life that is theirs. */
export interface RunFacade extends RunApi {
  readonly tasks: TasksApi;
  /** The part of `guard.health()` that is about the node. */
  health(): Omit<GuardHealth, 'unavailable'>;
  /** Ends node and sweep, asks running work to finish, and makes it stop after the grace. Bounded. */
  close(graceMs: number): Promise<void>;
}

/** Makes the single-run part of a guard. */
export function createRunFacade(parts: RunFacadeParts): RunFacade {
  return new Runs(parts);
}

class Runs implements RunFacade {
  readonly runs: RunsApi;
  readonly tasks: TasksApi;
  private readonly host: RunHost;
  private readonly engine: RunEngine;
  private node:
    { readonly presence: NodePresence; readonly sweep: Sweep; readonly scheduler: Scheduler } | undefined;
  private starting: Promise<void> | undefined;

  constructor(private readonly parts: RunFacadeParts) {
    this.host = hostOf(parts);
    this.engine = new RunEngine(this.host);
    this.tasks = new TaskDesk(this.host, this.engine);
    this.runs = new RunDesk(this.host, parts.defaults.minTtlMs);
  }

  run<T>(task: string, work: (run: Run) => T | PromiseLike<T>): Promise<RunOutcome<T>>;
  run<T>(task: string, options: RunOptions, work: (run: Run) => T | PromiseLike<T>): Promise<RunOutcome<T>>;
  async run<T>(task: string, ...rest: readonly unknown[]): Promise<RunOutcome<T>> {
    const [options, work] = rest.length > 1 ? rest : [{}, rest[0]];
    const name = encodeKey('task', task);
    const outcome = await this.engine.call(ofTask(name, () => this.wishOf(name, options, work)));
    return outcome as RunOutcome<T>;
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
  task(name: string, ...rest: readonly unknown[]): Task<unknown, unknown> {
    const [options, work] = rest.length > 1 ? rest : [{}, rest[0]];
    const task = encodeKey('name', name);
    const { key, compensate, policy, schedule } = ofTask(task, () => this.settingsOf(task, options, work));
    if (this.host.stopSignal.aborted) throw closedError();
    const workFor = workOf(work as Work, compensate);
    this.host.tasks.add({ name: task, policy, schedule, workFor });
    return this.handle(task, policy, key, workFor);
  }

  async start(options: StartOptions = {}): Promise<void> {
    checkOptions('start options', options, ['tasks', 'ref']);
    const { tasks, ref = true } = options;
    if (typeof ref !== 'boolean') throw invalidArgument('ref', ref, 'must be true or false');
    const names: unknown = tasks ?? [];
    if (!Array.isArray(names)) throw invalidArgument('tasks', names, 'must be a list of names');
    for (const name of tasks ?? []) {
      if (this.host.tasks.get(name) !== undefined) continue;
      throw invalidArgument('tasks', name, 'must name tasks that are registered');
    }
    if (this.host.stopSignal.aborted) throw closedError();
    this.starting ??= runOutside(() => this.begin(tasks, ref)).catch((error: unknown) => {
      this.starting = undefined;
      throw this.host.stopSignal.aborted && GuardError.is(error, 'aborted') ? closedError() : error;
    });
    return this.starting;
  }

  health(): Omit<GuardHealth, 'unavailable'> {
    const { host, node } = this;
    const isClosed = host.stopSignal.aborted;
    return {
      state: isClosed ? 'closed' : node === undefined ? 'idle' : 'started',
      skewMs: host.time.skewMs(),
      missedHeartbeats: node?.presence.missed ?? 0,
      plans: !isClosed && node !== undefined && !node.scheduler.isOut,
    };
  }

  async close(graceMs: number): Promise<void> {
    // Schedules and sweeps end first: nothing new is begun while the rest is asked to finish.
    const { node } = this;
    const swept = Promise.all([node?.scheduler.end(), node?.sweep.end()]);
    await this.engine.close(graceMs);
    await swept;
    await this.starting?.catch(() => undefined);
    await this.node?.presence.end();
    this.host.shutdown.end();
  }

  private async begin(tasks: readonly string[] | undefined, ref: boolean): Promise<void> {
    const { host, engine } = this;
    await host.time.refresh();
    const names = (): readonly string[] => tasks ?? host.tasks.names();
    const presence = new NodePresence(host, names);
    await presence.begin();
    const sweep = new Sweep(host, engine, names, this.parts.retain);
    const wanted = (name: string): boolean => tasks === undefined || tasks.includes(name);
    const isMissing = (): boolean => presence.isMissing;
    const lacksLock = (): boolean => presence.lacksLock;
    const { keysMs } = this.parts.retain;
    const scheduler = new Scheduler(host, engine, { wanted, isMissing, lacksLock, ref, keysMs });
    this.node = { presence, sweep, scheduler };
    if (host.stopSignal.aborted) return;
    sweep.begin();
    await scheduler.begin();
  }

  private wishOf(task: string, options: unknown, work: unknown): Wish {
    checkFunction('work', work);
    checkOptions('run options', options, RUN_OPTIONS);
    const { key, input, compensate, ...settings } = (options ?? {}) as RunOptions;
    const series = seriesOf({ ...settings, key });
    if (compensate !== undefined) checkFunction('compensate', compensate);
    return {
      task,
      policy: policyOf({ ...settings, key }, this.parts.defaults),
      key: key === undefined ? undefined : callersKey(this.host, task, key),
      calendar: series?.calendar,
      input: jsonText('input', input),
      work: work as (run: Run) => unknown,
      compensate,
    };
  }

  private settingsOf(task: string, options: unknown, work: unknown) {
    checkFunction('work', work);
    checkOptions('task options', options, TASK_OPTIONS);
    const { key, compensate, ...settings } = (options ?? {}) as TaskOptions<unknown>;
    if (key !== undefined) checkFunction('key', key);
    if (compensate !== undefined) checkFunction('compensate', compensate);
    const policy = policyOf({ ...settings, key }, this.parts.defaults);
    return { key, compensate, policy, schedule: scheduleOf(task, { ...settings, ...policy, key }) };
  }

  private handle(
    task: string,
    policy: RunPolicy,
    keyOf: TaskOptions<unknown>['key'],
    workFor: ReturnType<typeof workOf>,
  ): Task<unknown, unknown> {
    const run = async (input: unknown, options?: CallOptions): Promise<RunOutcome<unknown>> => {
      const own = withCall(policy, options);
      const given = keyFor(keyOf, input, options);
      const key = given === undefined ? undefined : callersKey(this.host, task, given.key);
      const text = jsonText('input', input);
      return this.engine.call({
        task,
        policy: key === undefined ? own : { ...own, windowMs: undefined },
        key,
        input: text,
        ...workFor(text),
      });
    };
    const callable = (input: unknown): Promise<RunOutcome<unknown>> => run(input);
    Object.defineProperty(callable, 'name', { value: task, configurable: true });
    return Object.assign(callable, { run });
  }
}

/** The key of one call: its own, or the task's of the input, which must not come out as nothing. */
function keyFor(
  keyOf: TaskOptions<unknown>['key'],
  input: unknown,
  options: CallOptions | undefined,
): { readonly key: unknown } | undefined {
  if (options?.key !== undefined) return { key: options.key };
  if (options?.window !== undefined || keyOf === undefined) return undefined;
  return { key: keyOf(input) };
}

type Work = (run: Run, input: unknown) => unknown;

type WorkFor = (input: string | undefined) => {
  readonly work: (run: Run) => unknown;
  readonly compensate?: (run: Run) => unknown;
};

/** Every attempt gets its own copy out of the record, on whatever node: what works here works after a takeover. */
function workOf(work: Work, compensate: TaskOptions<unknown>['compensate']): WorkFor {
  return (text) => ({
    work: (run) => work(run, parsed(text)),
    ...(compensate === undefined ? {} : { compensate: (run: Run) => compensate(run, parsed(text)) }),
  });
}

function hostOf(parts: RunFacadeParts): RunHost {
  const { locks, runs: store, clock, random, namespace, events, label } = parts;
  const outage = new Outage(store.name, events, parts.policy, clock);
  const shutdown = new Shutdown();
  const book = new RunBook({ store, namespace, clock, random, outage });
  return {
    namespace,
    locks,
    lockOutages: new LockOutages(events, clock, locks.backendName),
    book,
    time: book.time,
    clock,
    random,
    events,
    node: { id: random.id(), label },
    tasks: new TaskRegistry(),
    sweepIntervalMs: parts.sweepIntervalMs,
    active: new ActiveRuns(namespace),
    shutdown,
    stopSignal: shutdown.signal,
  };
}
