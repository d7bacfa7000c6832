/** What an application says about a guard when it imports the module. */
import { checkOptions, type GuardOptions, invalidArgument, type StartOptions } from '@guard/core';
import type { FactoryProvider, ModuleMetadata } from '@nestjs/common';

/** Options of a guard, and what the module does with it. */
export interface GuardModuleOptions extends GuardOptions {
  /**
   * Whether this process becomes a started node when the application has been bootstrapped: it then follows schedules,
   * retries what is due and takes over what others left behind. `'elsewhere'`: it does not, and other processes of the
   * application do. `false`: nobody does; methods that need a started node are then refused. Default `true`.
   */
  readonly start?: boolean | 'elsewhere' | StartOptions;
}

/** How a guard is found. */
export interface GuardRegistrationOptions {
  /** For an application with several guards: see `@InjectGuard(name)` and `@GuardedBy(name)`. Default: none. */
  readonly name?: string;
  /** Whether every module can inject the guard. Methods are guarded in all modules anyway. Default `true`. */
  readonly global?: boolean;
}

/** The same where the options need other providers. */
export interface GuardModuleAsyncOptions
  extends GuardRegistrationOptions, Pick<ModuleMetadata, 'imports'>, Pick<FactoryProvider, 'inject'> {
  readonly useFactory: (
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever `inject` names
    ...injected: any[]
  ) => GuardModuleOptions | Promise<GuardModuleOptions>;
}

const REGISTRATION_OPTIONS: readonly string[] = ['name', 'global'];

/**
 * Parts what says how a guard is found from what it is made of.
 *
 * @throws GuardError `invalid-argument`.
 */
export function partsOf(options: GuardModuleOptions & GuardRegistrationOptions): {
  readonly found: GuardRegistrationOptions;
  readonly made: GuardModuleOptions;
} {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw invalidArgument('options', options, 'must be the options of a guard');
  }
  const { name, global, ...made } = options;
  const found = {
    ...(name === undefined ? {} : { name: checkName(name) }),
    ...(global === undefined ? {} : { global: checkGlobal(global) }),
  };
  return { found, made };
}

/** @throws GuardError `invalid-argument`: no factory, or an option that there is not. */
export function checkAsync(options: GuardModuleAsyncOptions): void {
  checkOptions('forRootAsync options', options, [...REGISTRATION_OPTIONS, 'imports', 'inject', 'useFactory']);
  if (typeof (options as Partial<GuardModuleAsyncOptions> | undefined)?.useFactory !== 'function') {
    throw invalidArgument('useFactory', options?.useFactory, 'must be a function that answers the options');
  }
  if (options.global !== undefined) checkGlobal(options.global);
  for (const name of ['imports', 'inject'] as const) {
    const list: unknown = options[name];
    if (list !== undefined && !Array.isArray(list)) throw invalidArgument(name, list, 'must be a list');
  }
}

function checkGlobal(global: unknown): boolean {
  if (typeof global === 'boolean') return global;
  throw invalidArgument('global', global, 'must be true or false');
}

/** @throws GuardError `invalid-argument`: no text, or an empty one. */
export function checkName(name: unknown): string {
  if (typeof name === 'string' && name !== '') return name;
  throw invalidArgument('name', name, 'must be the name of a guard');
}
