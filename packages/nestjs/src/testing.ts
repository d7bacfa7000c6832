/**
 * A guard for tests of an application: in memory, on whatever clock the test holds, with everything it tells recorded;
 * or switched off, so that decorated methods are plain methods.
 */
import {
  type Clock,
  type Guard,
  type GuardEvents,
  invalidArgument,
  memoryLocks,
  memoryState,
  type RunOptions,
  systemClock,
  systemRandom,
} from '@guard/core';
import { type DynamicModule, Module } from '@nestjs/common';
import { GuardModule } from './guard-module.js';
import { type GuardModuleOptions, type GuardRegistrationOptions, partsOf } from './options.js';
import { AROUND, type AroundOptions } from './registration.js';

/** Options of a guard for tests. What is not given is in memory. */
export interface GuardTestingOptions extends Partial<GuardModuleOptions> {
  /** Told everything. */
  readonly recorder?: GuardRecorder;
  /**
   * `true`: decorated methods run whenever they are called, at the same time too; nothing is skipped, retried or
   * started by itself. `currentRun()` and `currentLock()` are there.
   */
  readonly off?: boolean;
}

/** One thing that a guard told. */
export type Recorded = {
  readonly [E in keyof GuardEvents]: { readonly event: E; readonly payload: GuardEvents[E] };
}[keyof GuardEvents];

const EVENTS = [
  ...(['lock-granted', 'lock-released', 'lock-lost', 'lock-suspect', 'lock-forced', 'claim-queued'] as const),
  ...([
    'claim-cancelled',
    'run-started',
    'run-completed',
    'run-failed',
    'run-skipped',
    'run-taken-over',
  ] as const),
  ...(['run-expired', 'run-on-hold', 'run-refused', 'run-long', 'run-unguarded', 'alarm', 'error'] as const),
  ...(['schedule-conflict', 'clock-skew', 'loop-lag', 'backend-unavailable', 'backend-recovered'] as const),
] satisfies readonly (keyof GuardEvents)[];

/** Keeps what guards tell, in order. */
export class GuardRecorder {
  private readonly told: Recorded[] = [];

  /** Everything, or what was told of one event. */
  events(): readonly Recorded[];
  events<E extends keyof GuardEvents>(event: E): readonly GuardEvents[E][];
  events(event?: keyof GuardEvents): readonly unknown[] {
    if (event === undefined) return [...this.told];
    return this.told.filter((one) => one.event === event).map(({ payload }) => payload);
  }

  /** Names of the tasks whose runs have completed, in order. */
  completed(): readonly string[] {
    return this.events('run-completed').map(({ run }) => run.task);
  }

  /** Tasks whose runs were skipped, and why: `settle: completed`. */
  skipped(): readonly string[] {
    return this.events('run-skipped').map(({ task, reason }) => `${task}: ${reason}`);
  }

  /** Forgets everything so far. */
  clear(): void {
    this.told.length = 0;
  }

  /** Listens to a guard from now on. */
  listenTo(guard: Guard): void {
    for (const event of EVENTS) guard.on(event, (payload) => this.told.push({ event, payload } as Recorded));
  }
}

/**
 * The module for tests.
 *
 * @example
 * const clock = new VirtualClock();
 * const recorder = new GuardRecorder();
 * const module = Test.createTestingModule({
 *   imports: [GuardTestingModule.forRoot({ clock, recorder })],
 *   providers: [Billing],
 * });
 */
@Module({})
export class GuardTestingModule {
  /** A guard for tests instead of `GuardModule.forRoot(…)`. */
  static forRoot(options: GuardTestingOptions & GuardRegistrationOptions = {}): DynamicModule {
    const { found, made } = partsOf(options as GuardModuleOptions & GuardRegistrationOptions);
    return GuardModule.forRoot({ ...found, ...GuardTestingModule.options(made) });
  }

  /**
   * Options of a guard for tests, for an application that registers its own:
   * `builder.overrideProvider(getGuardOptionsToken()).useValue(GuardTestingModule.options({ clock }))`.
   */
  static options(options: GuardTestingOptions = {}): GuardModuleOptions {
    const { recorder, off = false, clock = systemClock, ...given } = options;
    if (typeof off !== 'boolean') throw invalidArgument('off', off, 'must be true or false');
    if (recorder !== undefined && typeof (recorder as Partial<GuardRecorder>)?.listenTo !== 'function')
      throw invalidArgument('recorder', recorder, 'must be a GuardRecorder');
    if (typeof (clock as Partial<Clock>)?.now !== 'function')
      throw invalidArgument('clock', clock, 'must be a clock, such as a VirtualClock');
    const around = (guard: Guard): Guard => {
      recorder?.listenTo(guard);
      return off ? switchedOff(guard) : guard;
    };
    const made: AroundOptions = {
      locks: memoryLocks({ clock }),
      ...(given.runs === undefined ? { state: memoryState({ clock }) } : {}),
      clock,
      ...(off ? { start: 'elsewhere' } : {}),
      ...given,
      [AROUND]: around,
    };
    return made;
  }
}

/** A guard whose locks and runs never meet each other: everything gets a key that nobody shares. */
function switchedOff(guard: Guard): Guard {
  const alone = (key: unknown): string => `${String(key)} ${systemRandom.id()}`;
  const run = (task: string, ...rest: readonly unknown[]): unknown => {
    const [options, work] = rest.length > 1 ? rest : [{}, rest[0]];
    const { input, key = 'off' } = options as RunOptions;
    const kept = { key: alone(key), ...(input === undefined ? {} : { input }) };
    return guard.run(task, kept, work as () => unknown);
  };
  const withLock = (key: unknown, ...rest: readonly unknown[]): unknown =>
    guard.withLock(alone(key), rest.at(-1) as () => unknown);
  const instead: Readonly<Record<PropertyKey, unknown>> = { run, withLock };
  return new Proxy(guard, {
    get: (target, name) => {
      const value: unknown = instead[name] ?? Reflect.get(target, name, target);
      return typeof value === 'function' && !(name in instead) ? (value.bind(target) as unknown) : value;
    },
  });
}
