/**
 * One guard of an application: made when the container needs it, which opens nothing and starts nothing; started when
 * the application has been bootstrapped; closed before the application's clients are.
 */
import {
  createGuard,
  type Guard,
  type GuardError,
  type GuardOptions,
  invalidArgument,
  type StartOptions,
} from '@guard/core';
import type { GuardModuleOptions } from './options.js';

const BRAND = Symbol.for('@guard/nestjs/registration@1');
/** Under this symbol, options may carry what stands before the guard: tests switch it off, or listen. */
export const AROUND = Symbol.for('@guard/nestjs/around');

const MEMORY = 'memory';

/** Options that `GuardTestingModule` makes. */
export interface AroundOptions extends GuardModuleOptions {
  readonly [AROUND]?: (guard: Guard) => Guard;
}

/** A guard with its name and what is known about it. */
export class GuardRegistration {
  readonly [BRAND] = true;
  readonly guard: Guard;
  readonly options: GuardOptions;
  /** `'idle'`: here, and for no tasks. `'none'`: it has nowhere to keep runs. */
  readonly starts: 'here' | 'idle' | 'elsewhere' | 'nowhere' | 'none';
  private readonly startOptions: StartOptions;

  /** @throws GuardError `invalid-argument`, as of `createGuard`. */
  constructor(
    readonly name: string,
    given: AroundOptions,
  ) {
    if (typeof given !== 'object' || (given as unknown) === null) throw noOptions(name, given);
    checkAnswered(given);
    const { start = true, [AROUND]: around, ...options } = given;
    this.options = options;
    const guard = createGuard(options);
    this.guard = around === undefined ? guard : around(guard);
    this.startOptions = typeof start === 'object' ? start : {};
    this.starts = this.hasRuns ? startsOf(start) : 'none';
  }

  /** Whether there is a store for runs. */
  get hasRuns(): boolean {
    return this.options.runs !== undefined || this.options.state !== undefined;
  }

  /**
   * What keeps the runs, so that two guards of one store can be told: its name, which has its address; of one in memory,
   * which has none, the store itself.
   */
  get store(): unknown {
    const store = this.options.runs ?? this.options.state;
    return store === undefined || store.name === MEMORY ? store : store.name;
  }

  /** The tasks that this node is started for; `undefined`: all of them. */
  get tasks(): readonly string[] | undefined {
    return this.startOptions.tasks;
  }

  /** Where locks and runs are kept, for people. */
  get places(): string {
    const { locks, runs, state } = this.options;
    const kept = (runs ?? state)?.name;
    return `locks in ${locks.name}, ${kept === undefined ? 'no runs' : `runs in ${kept}`}`;
  }

  /** @throws what `guard.start` throws: an application that cannot start its node does not come up. */
  async start(): Promise<void> {
    if (this.starts === 'here' || this.starts === 'idle') await this.guard.start(this.startOptions);
  }

  /** Whether a value of the container is one, made by whichever build of this package. */
  static is(value: unknown): value is GuardRegistration {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

function noOptions(name: string, given: unknown): GuardError {
  const factory = `what the useFactory of GuardModule.forRootAsync for the guard '${name}' answered`;
  return invalidArgument(factory, given, 'must be the options of a guard');
}

/** How a guard is found has to be known before a factory can be asked. */
function checkAnswered(given: AroundOptions): void {
  for (const name of ['name', 'global'] as const) {
    if (name in given)
      throw invalidArgument(name, (given as { readonly [N in typeof name]?: unknown })[name], BESIDE);
  }
}

const BESIDE = 'belongs beside useFactory, in the options of forRootAsync';

function startsOf(start: unknown): 'here' | 'idle' | 'elsewhere' | 'nowhere' {
  if (start === 'elsewhere') return 'elsewhere';
  if (typeof start === 'boolean') return start ? 'here' : 'nowhere';
  if (typeof start === 'object' && start !== null) {
    const { tasks } = start as { readonly tasks?: unknown };
    if (tasks !== undefined && !isNames(tasks))
      throw invalidArgument('start.tasks', tasks, 'must be a list of task names');
    return tasks?.length === 0 ? 'idle' : 'here';
  }
  throw invalidArgument('start', start, `must be true, false, 'elsewhere' or the options of guard.start`);
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
